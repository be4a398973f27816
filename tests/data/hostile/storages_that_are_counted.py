# weak references to storages end with the memory, as MemTracker of torch.distributed expects
# status: 0
# says: alive 1, then 0
import weakref

import torch

counted = []
for _ in range(3):
    x = torch.ones(1 << 20, device="cuda")
    counted.append(weakref.ref(x.untyped_storage()))


def alive():
    return sum(storage() is not None for storage in counted)


before = alive()
del x
print(f"alive {before}, then {alive()}")
