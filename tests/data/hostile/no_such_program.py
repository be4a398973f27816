# no such program
# command: /no/such/program
# status: 2
# says: there is no such program
