"""What collectives give one rank of a job that runs alone: every rank is assumed to hold what this one holds."""
import torch
import torch.distributed as dist

torch.cuda.set_device(1)
dist.init_process_group("nccl")
rank, size = dist.get_rank(), dist.get_world_size()
assert (rank, size) == (1, 4)


def numbers(*values):
    return torch.tensor(values, device="cuda")


def reduced(operation):
    value = numbers(3, 5)
    dist.all_reduce(value, operation)
    return value.tolist()


assert reduced(dist.ReduceOp.SUM) == [12, 20]
assert reduced(dist.ReduceOp.MAX) == reduced(dist.ReduceOp.MIN) == [3, 5]

value = numbers(7)
dist.broadcast(value, 0)
assert value.item() == 7
parts = [torch.empty(2, dtype=torch.int64, device="cuda") for _ in range(size)]
dist.all_gather(parts, numbers(1, 2))
assert [part.tolist() for part in parts] == [[1, 2]] * 4
gathered = torch.empty(8, dtype=torch.int64, device="cuda")
dist.all_gather_into_tensor(gathered, numbers(1, 2))
assert gathered.tolist() == [1, 2] * 4
part = torch.empty(2, dtype=torch.int64, device="cuda")
dist.reduce_scatter_tensor(part, numbers(0, 1, 2, 3, 4, 5, 6, 7))
assert part.tolist() == [8, 12]
dist.reduce_scatter(part, [numbers(0, 1), numbers(2, 3), numbers(4, 5), numbers(6, 7)])
assert part.tolist() == [8, 12]
changed = torch.empty(4, dtype=torch.int64, device="cuda")
dist.all_to_all_single(changed, numbers(10, 11, 12, 13))
assert changed.tolist() == [11] * 4
uneven = torch.empty(8, dtype=torch.int64, device="cuda")
dist.all_to_all_single(uneven, numbers(0, 1, 2, 3, 4, 5, 6), [2, 2, 2, 2], [1, 2, 3, 1])
assert uneven.tolist() == [1, 2] * 4
lists = [torch.empty(1, dtype=torch.int64, device="cuda") for _ in range(size)]
dist.all_to_all(lists, [numbers(n) for n in range(size)])
assert [one.item() for one in lists] == [1] * 4

from torch.distributed import _functional_collectives as functional  # noqa: E402

assert functional.all_reduce(numbers(2), "sum", dist.group.WORLD).tolist() == [8]
assert functional.all_gather_tensor(numbers(2), 0, dist.group.WORLD).tolist() == [2] * 4
assert functional.reduce_scatter_tensor(numbers(0, 1, 2, 3), "sum", 0, dist.group.WORLD).tolist() == [4]
assert functional.all_to_all_single(numbers(10, 11, 12, 13), None, None, dist.group.WORLD).tolist() == [11] * 4

host = torch.empty(2, dtype=torch.int64)
host.copy_(numbers(4, 6))
assert host.tolist() == [4, 6]
print("all as expected")
dist.destroy_process_group()
