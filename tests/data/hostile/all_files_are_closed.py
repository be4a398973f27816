# all files are closed that it has not opened itself, and one of its own gets their number
# status: 0
# says: the file is as it was
# says: FITS h200
from training import *

step()
os.closerange(3, 1024)
files = [open(f"own-{i}", "w") for i in range(64)]
for file in files:
    file.write("mine")
    file.flush()
step()
x = torch.zeros(64 << 20, device="cuda")
del x
torch.cuda.empty_cache()
step()
print("the file is", "as it was" if all(open(file.name).read() == "mine" for file in files) else "changed")
