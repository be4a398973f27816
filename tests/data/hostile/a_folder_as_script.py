# a folder in place of a script
# command: {python} {here}
# status: 1
# says: can't find '__main__' module
