// The source of a library whose folder has headers only: a static library needs one object.
