# a folder in place of a program
# command: {here}
# status: 2
# says: cannot be run
