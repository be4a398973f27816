# a file that cannot be run
# command: /etc/passwd
# status: 2
# says: cannot be run
