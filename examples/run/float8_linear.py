"""Linear layers that multiply in 8-bit floats, forward and backward, as torchao's float8 training does."""
import torch

E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2


def tensorwise(x, dtype):
    """x in 8 bits with one scale, and what it is multiplied by to be x again."""
    scale = torch.finfo(dtype).max / x.abs().max().float().clamp(min=1e-12)
    return (x.float() * scale).to(dtype), scale.reciprocal()


def rowwise(x, dtype):
    """The same with a scale for each row."""
    scale = torch.finfo(dtype).max / x.abs().amax(dim=1, keepdim=True).float().clamp(min=1e-12)
    return (x.float() * scale).to(dtype), scale.reciprocal()


class Float8Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, by_rows):
        ctx.save_for_backward(x, weight)
        ctx.with_bias = bias is not None
        cast = rowwise if by_rows else tensorwise
        rows, scale_x = cast(x, E4M3)
        columns, scale_w = cast(weight, E4M3)
        return torch._scaled_mm(rows, columns.t(), scale_x, scale_w.t(), bias=bias, out_dtype=x.dtype, use_fast_accum=True)

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        narrow, scale_g = tensorwise(grad, E5M2)
        columns, scale_w = tensorwise(weight.t().contiguous(), E4M3)
        grad_x = torch._scaled_mm(narrow, columns.t(), scale_g, scale_w, out_dtype=grad.dtype)
        across, scale_x = tensorwise(x.t().contiguous(), E4M3)
        grad_weight = torch._scaled_mm(narrow.t().contiguous(), across.t(), scale_g, scale_x, out_dtype=grad.dtype)
        return grad_x, grad_weight, grad.sum(0) if ctx.with_bias else None, None


class Float8Linear(torch.nn.Linear):
    def __init__(self, inputs, outputs, by_rows):
        super().__init__(inputs, outputs, dtype=torch.bfloat16)
        self.by_rows = by_rows

    def forward(self, x):
        rows = x.reshape(-1, x.shape[-1])
        return Float8Product.apply(rows, self.weight, self.bias, self.by_rows).reshape(*x.shape[:-1], -1)


net = torch.nn.Sequential(Float8Linear(1024, 4096, False), torch.nn.GELU(), Float8Linear(4096, 1024, True)).cuda()
optimizer = torch.optim.AdamW(net.parameters())
for step in range(2):
    net(torch.randn(4, 64, 1024, device="cuda", dtype=torch.bfloat16)).float().pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
print("peak", torch.cuda.max_memory_allocated())
