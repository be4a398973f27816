# isolated Python
# command: {python} -I -c "import torch"
# status: 2
# says: the recorder was not loaded
