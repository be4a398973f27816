"""Products of matrices whose rows are on several ranks, while the ranks send them to each other: their memory is symmetric."""
import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symmetric

torch.cuda.set_device(0)
dist.init_process_group("nccl")
ranks = dist.get_world_size()
group = dist.init_device_mesh("cuda", (ranks,)).get_group().group_name
symmetric.enable_symm_mem_for_group(group)
rows, weight = torch.ones(256, 512, device="cuda", dtype=torch.bfloat16), torch.ones(512, 1024, device="cuda", dtype=torch.bfloat16)


def gather():
    gathered, (product,) = torch.ops.symm_mem.fused_all_gather_matmul(rows, [weight], 0, group)
    return gathered, product


gather()  # cuBLAS takes its workspaces
before = torch.cuda.memory_allocated()
gathered, product = gather()
assert gathered.shape == (256 * ranks, 512) and product.shape == (256 * ranks, 1024)
# The buffer that the ranks share is outside the allocator.
assert torch.cuda.memory_allocated() - before == gathered.nbytes + product.nbytes, torch.cuda.memory_allocated() - before
part = torch.ops.symm_mem.fused_matmul_reduce_scatter(gathered, weight, "sum", 0, group)
assert part.shape == (256, 1024)
print("as in the whole job")
