"""A program whose ranks send each other objects through every collective of torch.distributed that does. It knows nothing of metaprof."""
import os

import torch
import torch.distributed as dist

rank = int(os.environ["RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl")
sent = ["a" * 20, {"from": 0}] if rank == 0 else [None, None]
dist.broadcast_object_list(sent, src=0)
assert sent == ["a" * 20, {"from": 0}], sent
found = [None] * dist.get_world_size()
dist.all_gather_object(found, "x" * (3 + 7 * rank))
assert found == ["x" * (3 + 7 * other) for other in range(dist.get_world_size())], found
if rank == 0:
    dist.send_object_list([{"k": 1}, 2], dst=1)
elif rank == 1:
    received = [None, None]
    dist.recv_object_list(received, src=0)
    assert received == [{"k": 1}, 2], received
half = dist.new_group([1])
if rank == 1:
    alone = torch.tensor([7], device="cuda")
    dist.all_reduce(alone, group=half)
    assert alone.item() == 7
dist.destroy_process_group()
print("all as sent")
