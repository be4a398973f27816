# one rank of a large job calls collectives, sends and splits groups
# options: --world-size 64 --rank 9 --gpus 8
# status: 0
# says: FITS h200
import torch
import torch.distributed as dist

torch.cuda.set_device(1)
dist.init_process_group("nccl")
x = torch.ones(1024, device="cuda")
dist.all_reduce(x)
dist.send(x, 3)
dist.recv(x, 3)
parts = [torch.empty_like(x) for _ in range(dist.get_world_size())]
dist.all_gather(parts, x)
dist.all_reduce(x, group=dist.new_group(list(range(8, 16))))
dist.barrier()
dist.destroy_process_group()
