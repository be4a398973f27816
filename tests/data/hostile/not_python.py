# not Python
# command: true
# status: 2
# says: the recorder was not loaded
