"""record_model.build for a real device: cheap values, spread as an initialisation would leave them."""

import record_model as R


def fill(module, args, torch):
    g = torch.Generator().manual_seed(0)
    base = torch.randn(1 << 20, generator=g) * 0.02
    with torch.no_grad():
        for n, p in module.named_parameters():
            if not p.is_floating_point():
                continue
            if p.dim() >= 2:
                f = p.data.view(-1) if p.is_contiguous() else None
                if f is None:
                    p.normal_(0, 0.02)
                    continue
                b = base.to(p.dtype)
                for i in range(0, f.numel(), 1 << 20):
                    f[i : i + (1 << 20)] = b[: min(1 << 20, f.numel() - i)]
            else:
                p.fill_(1.0 if n.endswith("weight") else 0.0)


def build(c, torch):
    keep = R.emulated
    R.emulated = lambda: True
    try:
        module, args = original(c, torch)
    finally:
        R.emulated = keep
    fill(module, args, torch)
    return module, args


original = R.build
