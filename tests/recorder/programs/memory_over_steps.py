"""Programs of a few steps whose memory stays (`constant`) or grows (`growing`): `memory_over_steps.py NAME` runs one."""

import collections
import copy
import functools
import io
import random
import sys
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset


def net(width=512, layers=3):
    return nn.Sequential(*[model for _ in range(layers) for model in (nn.Linear(width, width), nn.GELU())], nn.Linear(width, 10)).cuda()


def batch(size=256, width=512):
    return (torch.randn(size, width, device="cuda"), torch.zeros(size, dtype=torch.long, device="cuda"))


STEPS = 10


def setup(**k):
    model = net(**k)
    return (model, torch.optim.AdamW(model.parameters(), lr=0.001))


def step(model, optimizer, x, y, pre=lambda loss: loss):
    optimizer.zero_grad()
    loss = pre(F.cross_entropy(model(x), y))
    loss.backward()
    optimizer.step()
    return loss


CONSTANT, GROWING = {}, {}


def constant(f):
    CONSTANT[f.__name__] = f
    return f


def growing(f):
    GROWING[f.__name__] = f
    return f


@constant
def plain():
    model, optimizer = setup()
    for _ in range(STEPS):
        x, y = batch()
        step(model, optimizer, x, y)


@constant
def item_list():
    model, optimizer = setup()
    losses = []
    for _ in range(STEPS):
        x, y = batch()
        losses.append(step(model, optimizer, x, y).item())


@constant
def scalars_detached_small():
    model, optimizer = setup()
    losses = []
    for _ in range(STEPS):
        x, y = batch()
        losses.append(step(model, optimizer, x, y).detach().cpu())


@constant
def scheduler():
    model, optimizer = setup()
    s = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
    for _ in range(STEPS):
        x, y = batch()
        step(model, optimizer, x, y)
        s.step()


@constant
def ema():
    model, optimizer = setup()
    e = torch.optim.swa_utils.AveragedModel(model)
    for _ in range(STEPS):
        x, y = batch()
        step(model, optimizer, x, y)
        e.update_parameters(model)


@constant
def swa_late():
    model, optimizer = setup()
    e = None
    for i in range(STEPS):
        x, y = batch()
        step(model, optimizer, x, y)
        if i == 4:
            e = torch.optim.swa_utils.AveragedModel(model)
        if e:
            e.update_parameters(model)


@constant
def accumulation():
    model, optimizer = setup()
    for i in range(4 * STEPS):
        x, y = batch()
        F.cross_entropy(model(x), y).backward()
        if i % 4 == 3:
            optimizer.step()
            optimizer.zero_grad()


@constant
def amp_scaler():
    model, optimizer = setup()
    s = torch.amp.GradScaler("cuda")
    for _ in range(STEPS):
        x, y = batch()
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.float16):
            l = F.cross_entropy(model(x), y)
        s.scale(l).backward()
        s.step(optimizer)
        s.update()


@constant
def validation_each_epoch():
    model, optimizer = setup()
    for e in range(3):
        model.train()
        for _ in range(4):
            x, y = batch()
            step(model, optimizer, x, y)
        model.eval()
        with torch.no_grad():
            out = torch.cat([model(batch()[0]) for _ in range(6)])
        acc = out.argmax(1).float().mean().item()
        del out


@constant
def validation_kept_var():
    model, optimizer = setup()
    for e in range(4):
        for _ in range(3):
            x, y = batch()
            step(model, optimizer, x, y)
        with torch.no_grad():
            preds = torch.cat([model(batch()[0]) for _ in range(6)])


@constant
def ragged():
    model, optimizer = setup()
    r = random.Random(1)
    for _ in range(2 * STEPS):
        x, y = batch(r.randint(32, 512))
        step(model, optimizer, x, y)


@constant
def longer_and_longer():
    model, optimizer = setup()
    for i in range(STEPS):
        x, y = batch(64 * (i + 1))
        step(model, optimizer, x, y)


@constant
def shorter_and_shorter():
    model, optimizer = setup()
    for i in range(STEPS):
        x, y = batch(64 * (STEPS - i))
        step(model, optimizer, x, y)


@constant
def deque_of_batches():
    model, optimizer = setup()
    last = collections.deque(maxlen=3)
    for _ in range(STEPS):
        x, y = batch()
        last.append(model(x).detach())
        step(model, optimizer, x, y)


@constant
def replay_full():
    model, optimizer = setup()
    buf = torch.zeros(5000, 512, device="cuda")
    n = 0
    for _ in range(STEPS):
        x, y = batch()
        buf[n : n + 256] = x
        n = (n + 256) % 4500
        step(model, optimizer, buf[:256], y)


@constant
def moco_queue():
    model, optimizer = setup()
    q = torch.randn(512, 4096, device="cuda")
    p = 0
    for _ in range(STEPS):
        x, _ = batch()
        optimizer.zero_grad()
        f = model[0](x)
        l = (f @ q).logsumexp(1).mean()
        l.backward()
        optimizer.step()
        with torch.no_grad():
            q[:, p : p + 256] = f.T
            p = (p + 256) % 4096


@constant
def tbptt():
    r = nn.LSTM(128, 256).cuda()
    optimizer = torch.optim.SGD(r.parameters(), 0.1)
    h = None
    for _ in range(STEPS):
        x = torch.randn(32, 16, 128, device="cuda")
        optimizer.zero_grad()
        y, h = r(x, h)
        y.sum().backward()
        optimizer.step()
        h = tuple((t.detach() for t in h))


@constant
def gan():
    g, d = (net(), net())
    og, od = (torch.optim.Adam(g.parameters()), torch.optim.Adam(d.parameters()))
    for _ in range(STEPS):
        x, _ = batch()
        fake = F.pad(g(x), (0, 502))
        od.zero_grad()
        (d(x).mean() - d(fake.detach()).mean()).backward()
        od.step()
        og.zero_grad()
        d(fake).mean().backward()
        og.step()


@constant
def lbfgs():
    model = net(layers=1)
    optimizer = torch.optim.LBFGS(model.parameters(), history_size=3, max_iter=2)
    x, y = batch()

    def c():
        optimizer.zero_grad()
        l = F.cross_entropy(model(x), y)
        l.backward()
        return l

    for _ in range(STEPS):
        optimizer.step(c)


@constant
def lbfgs_default():
    model = net(layers=1)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3, history_size=5)
    x, y = batch()

    def c():
        optimizer.zero_grad()
        l = F.cross_entropy(model(x), y)
        l.backward()
        return l

    for _ in range(8):
        optimizer.step(c)


@constant
def unfreezing():
    model = net(layers=6)
    ls = [l for l in model if isinstance(l, nn.Linear)]
    for p in model.parameters():
        p.requires_grad_(False)
    for p in ls[-1].parameters():
        p.requires_grad_(True)
    optimizer = torch.optim.AdamW(model.parameters())
    for i in range(14):
        if i % 2 == 0 and i // 2 < len(ls):
            [p.requires_grad_(True) for p in ls[-1 - i // 2].parameters()]
        x, y = batch()
        step(model, optimizer, x, y)


@constant
def folds():
    for f in range(4):
        model, optimizer = setup()
        for _ in range(4):
            x, y = batch()
            step(model, optimizer, x, y)


@constant
def folds_best_state_cpu():
    best = []
    for f in range(4):
        model, optimizer = setup()
        for _ in range(3):
            x, y = batch()
            step(model, optimizer, x, y)
        best.append({k: v.cpu() for k, v in model.state_dict().items()})


@constant
def empty_cache():
    model, optimizer = setup()
    for _ in range(STEPS):
        x, y = batch()
        step(model, optimizer, x, y)
        torch.cuda.empty_cache()


@constant
def checkpointed():
    model, optimizer = setup()
    for _ in range(STEPS):
        x, y = batch()
        step(lambda z: checkpoint(model, z, use_reentrant=False), optimizer, x.requires_grad_(), y)


@constant
def hook_last():
    model, optimizer = setup()
    seen = {}
    model[0].register_forward_hook(lambda mod, i, out: seen.__setitem__("a", out))
    for _ in range(STEPS):
        x, y = batch()
        step(model, optimizer, x, y)


@constant
def hook_detached_last():
    model, optimizer = setup()
    seen = [None]
    model[0].register_forward_hook(lambda mod, i, out: seen.__setitem__(0, out.detach().clone()))
    for _ in range(STEPS):
        x, y = batch()
        step(model, optimizer, x, y)


@constant
def loader():
    d = DataLoader(TensorDataset(torch.randn(2048, 512), torch.zeros(2048, dtype=torch.long)), 256)
    model, optimizer = setup()
    for _ in range(2):
        for x, y in d:
            step(model, optimizer, x.cuda(), y.cuda())


@constant
def dataset_on_gpu():
    X, Y = (torch.randn(4096, 512, device="cuda"), torch.zeros(4096, dtype=torch.long, device="cuda"))
    model, optimizer = setup()
    for i in range(STEPS):
        j = torch.randperm(4096, device="cuda")[:256]
        step(model, optimizer, X[j], Y[j])


@constant
def clip():
    model, optimizer = setup()
    for _ in range(STEPS):
        x, y = batch()
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        n = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


@constant
def norms_list_item():
    model, optimizer = setup()
    n = []
    for _ in range(STEPS):
        x, y = batch()
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        n.append(float(nn.utils.clip_grad_norm_(model.parameters(), 1.0)))
        optimizer.step()


@constant
def set_to_none_false():
    model, optimizer = setup()
    for _ in range(STEPS):
        x, y = batch()
        optimizer.zero_grad(set_to_none=False)
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@constant
def two_optimizers():
    model = net()
    a, b = (torch.optim.SGD(model[:3].parameters(), 0.1), torch.optim.AdamW(model[3:].parameters()))
    for _ in range(STEPS):
        x, y = batch()
        a.zero_grad()
        b.zero_grad()
        F.cross_entropy(model(x), y).backward()
        a.step()
        b.step()


@constant
def greedy_generate():
    emb = nn.Embedding(1000, 256).cuda()
    l = nn.TransformerEncoderLayer(256, 4, batch_first=True).cuda()
    h = nn.Linear(256, 1000).cuda()
    with torch.no_grad():
        for p in range(3):
            ids = torch.zeros(4, 8, dtype=torch.long, device="cuda")
            for _ in range(24):
                ids = torch.cat([ids, h(l(emb(ids)))[:, -1:].argmax(-1)], 1)


@constant
def train_then_generate():
    emb = nn.Embedding(1000, 256).cuda()
    l = nn.TransformerEncoderLayer(256, 4, batch_first=True).cuda()
    h = nn.Linear(256, 1000).cuda()
    optimizer = torch.optim.AdamW([*emb.parameters(), *l.parameters(), *h.parameters()])
    for e in range(3):
        for _ in range(3):
            ids = torch.zeros(8, 64, dtype=torch.long, device="cuda")
            optimizer.zero_grad()
            F.cross_entropy(h(l(emb(ids))).flatten(0, 1), ids.flatten()).backward()
            optimizer.step()
        with torch.no_grad():
            ids = torch.zeros(4, 8, dtype=torch.long, device="cuda")
            for _ in range(12):
                ids = torch.cat([ids, h(l(emb(ids)))[:, -1:].argmax(-1)], 1)


@constant
def kv_cache_per_prompt():
    w = nn.Linear(256, 768).cuda()
    with torch.no_grad():
        for p in range(4):
            ks = []
            vs = []
            for _ in range(30):
                q, k, v = w(torch.randn(8, 1, 256, device="cuda")).chunk(3, -1)
                ks.append(k)
                vs.append(v)
                F.scaled_dot_product_attention(q, torch.cat(ks, 1), torch.cat(vs, 1))


@constant
def static_kv():
    w = nn.Linear(256, 768).cuda()
    K = torch.zeros(8, 128, 256, device="cuda")
    V = torch.zeros_like(K)
    with torch.no_grad():
        for t in range(60):
            q, k, v = w(torch.randn(8, 1, 256, device="cuda")).chunk(3, -1)
            K[:, t : t + 1] = k
            V[:, t : t + 1] = v
            F.scaled_dot_product_attention(q, K, V)


@constant
def offload_logs():
    model, optimizer = setup()
    logs = []
    for _ in range(STEPS):
        x, y = batch()
        l = step(model, optimizer, x, y)
        logs.append((l.item(), [p.grad.norm().item() for p in model.parameters()]))


@constant
def running_loss_item():
    model, optimizer = setup()
    t = 0.0
    for _ in range(STEPS):
        x, y = batch()
        t += step(model, optimizer, x, y).item()


@constant
def running_loss_detach():
    model, optimizer = setup()
    t = torch.zeros((), device="cuda")
    for _ in range(STEPS):
        x, y = batch()
        t += step(model, optimizer, x, y).detach()


@constant
def adversarial():
    model, optimizer = setup()
    for _ in range(STEPS):
        x, y = batch()
        x.requires_grad_()
        (g,) = torch.autograd.grad(F.cross_entropy(model(x), y), x)
        step(model, optimizer, (x + 0.1 * g.sign()).detach(), y)


@constant
def penalty_once():
    model, optimizer = setup()
    for _ in range(STEPS):
        x, y = batch()
        x.requires_grad_()
        optimizer.zero_grad()
        out = model(x).sum()
        (g,) = torch.autograd.grad(out, x, create_graph=True)
        ((g.norm(2, 1) - 1) ** 2).mean().backward()
        optimizer.step()


@constant
def distill():
    t = net(layers=5).eval()
    model, optimizer = setup()
    for _ in range(STEPS):
        x, y = batch()
        with torch.no_grad():
            q = t(x).softmax(-1)
        optimizer.zero_grad()
        F.kl_div(model(x).log_softmax(-1), q).backward()
        optimizer.step()


@constant
def maml():
    model = net(layers=1)
    optimizer = torch.optim.Adam(model.parameters())
    P = dict(model.named_parameters())
    for _ in range(6):
        x, y = batch()
        g = torch.autograd.grad(F.cross_entropy(torch.func.functional_call(model, P, (x,)), y), list(P.values()), create_graph=True)
        Q = {k: p - 0.1 * d for (k, p), d in zip(P.items(), g)}
        optimizer.zero_grad()
        F.cross_entropy(torch.func.functional_call(model, Q, (x,)), y).backward()
        optimizer.step()


@constant
def resume_in_loop():
    model, optimizer = setup()
    s = None
    for e in range(4):
        if s:
            model.load_state_dict(s[0])
            optimizer.load_state_dict(s[1])
        for _ in range(3):
            x, y = batch()
            step(model, optimizer, x, y)
        s = ({k: v.clone() for k, v in model.state_dict().items()}, optimizer.state_dict())


@constant
def best_state_on_gpu():
    model, optimizer = setup()
    best = None
    for e in range(6):
        x, y = batch()
        step(model, optimizer, x, y)
        best = {k: v.clone() for k, v in model.state_dict().items()}


@constant
def save_each_epoch():
    model, optimizer = setup()
    for e in range(4):
        for _ in range(3):
            x, y = batch()
            step(model, optimizer, x, y)
        torch.save(model.state_dict(), io.BytesIO())


@constant
def prefetch():
    model, optimizer = setup()
    s = torch.cuda.Stream()
    nxt = torch.randn(256, 512).pin_memory()
    cur = nxt.cuda()
    for _ in range(STEPS):
        with torch.cuda.stream(s):
            other = nxt.cuda(non_blocking=True)
        step(model, optimizer, cur, torch.zeros(256, dtype=torch.long, device="cuda"))
        torch.cuda.current_stream().wait_stream(s)
        other.record_stream(torch.cuda.current_stream())
        cur = other


@constant
def conv_batchnorm():
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.Conv2d(32, 32, 3, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(32, 10),
    ).cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    for _ in range(STEPS):
        step(model, optimizer, torch.randn(16, 3, 32, 32, device="cuda"), torch.zeros(16, dtype=torch.long, device="cuda"))


@constant
def multires():
    model = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for i in range(2 * STEPS):
        s = (32, 48, 64, 96)[i % 4]
        step(model, optimizer, torch.randn(16, 3, s, s, device="cuda"), torch.zeros(16, dtype=torch.long, device="cuda"))


@constant
def retain_graph_two_losses():
    model, optimizer = setup()
    for _ in range(STEPS):
        x, y = batch()
        optimizer.zero_grad()
        out = model(x)
        F.cross_entropy(out, y).backward(retain_graph=True)
        out.square().mean().backward()
        optimizer.step()


@constant
def caught_nan_skip():
    model, optimizer = setup()
    for i in range(STEPS):
        x, y = batch()
        try:
            if i % 3 == 2:
                raise ValueError("bad batch")
            step(model, optimizer, x, y)
        except ValueError:
            continue


@constant
def warm_cache_dict():
    model, optimizer = setup()
    cache = {}
    for i in range(3 * STEPS):
        k = i % 3
        if k not in cache:
            cache[k] = torch.randn(256, 512, device="cuda")
        step(model, optimizer, cache[k], torch.zeros(256, dtype=torch.long, device="cuda"))


@constant
def lru_positions():

    @functools.lru_cache(4)
    def pos(n):
        return torch.randn(n, 512, device="cuda")

    model, optimizer = setup()
    for i in range(2 * STEPS):
        n = (64, 128, 192, 256)[i % 4]
        step(model, optimizer, pos(n), torch.zeros(n, dtype=torch.long, device="cuda"))


@constant
def optimizer_switch():
    model, optimizer = setup()
    for i in range(STEPS):
        if i == 5:
            optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
        x, y = batch()
        step(model, optimizer, x, y)


@constant
def per_sample():
    model = net(layers=1)
    P = {k: p.detach() for k, p in model.named_parameters()}
    f = torch.func.vmap(torch.func.grad(lambda P, x, y: F.cross_entropy(torch.func.functional_call(model, P, (x[None],)), y[None])), (None, 0, 0))
    for _ in range(6):
        x, y = batch(16)
        g = f(P, x, y)


@constant
def ppo_like():
    model, optimizer = setup()
    for it in range(4):
        traj = []
        with torch.no_grad():
            for t in range(8):
                x, _ = batch(64)
                traj.append((x, model(x)))
        for ep in range(2):
            for x, old in traj:
                optimizer.zero_grad()
                (model(x) - old).square().mean().backward()
                optimizer.step()


@constant
def dqn_target():
    model, optimizer = setup()
    t = copy.deepcopy(model)
    for i in range(STEPS):
        x, y = batch()
        with torch.no_grad():
            q = t(x).max(1).values
        optimizer.zero_grad()
        (model(x).max(1).values - q).square().mean().backward()
        optimizer.step()
        if i % 4 == 3:
            t.load_state_dict(model.state_dict())


@constant
def compile_free_inference():
    model = net().eval()
    with torch.inference_mode():
        for _ in range(20):
            model(batch()[0]).argmax(1).tolist()


@constant
def eval_dict_metrics():
    model, optimizer = setup()
    conf = torch.zeros(10, 10, device="cuda")
    for e in range(4):
        for _ in range(3):
            x, y = batch()
            step(model, optimizer, x, y)
        with torch.no_grad():
            for _ in range(4):
                x, y = batch()
                p = model(x).argmax(1)
                conf.index_put_((y, p), torch.ones(256, device="cuda"), accumulate=True)


@constant
def embeddings_sparse():
    e = nn.EmbeddingBag(10000, 128, sparse=True).cuda()
    optimizer = torch.optim.SparseAdam(e.parameters())
    for _ in range(STEPS):
        optimizer.zero_grad()
        e(torch.zeros(64, 16, dtype=torch.long, device="cuda")).sum().backward()
        optimizer.step()


@constant
def spectral_norm():
    model = nn.Sequential(nn.utils.parametrizations.spectral_norm(nn.Linear(512, 512)), nn.ReLU(), nn.Linear(512, 10)).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(STEPS):
        x, y = batch()
        step(model, optimizer, x, y)


@constant
def sum_of_outputs_after_backward():
    model, optimizer = setup()
    total = 0
    for _ in range(STEPS):
        x, y = batch()
        optimizer.zero_grad()
        out = model(x)
        l = F.cross_entropy(out, y)
        l.backward()
        optimizer.step()
        total = total + out.sum()


@growing
def loss_list():
    model, optimizer = setup()
    losses = []
    for _ in range(STEPS):
        x, y = batch()
        optimizer.zero_grad()
        l = F.cross_entropy(model(x), y)
        l.backward(retain_graph=True)
        optimizer.step()
        losses.append(l)


@growing
def outputs_kept():
    model, optimizer = setup()
    outs = []
    for _ in range(STEPS):
        x, y = batch()
        optimizer.zero_grad()
        h = model[:4](x)
        F.cross_entropy(model[4:](h), y).backward()
        optimizer.step()
        outs.append(h.detach())


@growing
def inputs_kept():
    model, optimizer = setup()
    seen = []
    for _ in range(STEPS):
        x, y = batch()
        seen.append(x)
        step(model, optimizer, x, y)


@growing
def hidden_not_detached():
    r = nn.GRU(128, 256).cuda()
    opt = torch.optim.SGD(r.parameters(), 0.1)
    h = torch.zeros(1, 16, 256, device="cuda")
    for _ in range(STEPS):
        x = torch.randn(32, 16, 128, device="cuda")
        y, h = r(x, h)
        opt.zero_grad()
        y.sum().backward(retain_graph=True)


@growing
def hook_append():
    model, optimizer = setup()
    acts = []
    model[0].register_forward_hook(lambda mod, i, out: acts.append(out.detach()))
    for _ in range(STEPS):
        x, y = batch()
        step(model, optimizer, x, y)


@growing
def eval_with_graph():
    model, optimizer = setup()
    x, y = batch()
    step(model, optimizer, x, y)
    preds = []
    for _ in range(20):
        preds.append(model(batch()[0]))


@growing
def grads_log():
    model, optimizer = setup()
    log = []
    for _ in range(STEPS):
        x, y = batch()
        step(model, optimizer, x, y)
        log.append([p.grad.clone() for p in model.parameters()])


@growing
def cat_predictions():
    model, optimizer = setup()
    all_ = torch.empty(0, 512, device="cuda")
    for _ in range(STEPS):
        x, y = batch(1024)
        step(model, optimizer, x, y)
        all_ = torch.cat([all_, model[:2](x).detach()])


@growing
def replay_list():
    model, optimizer = setup()
    buf = []
    for _ in range(12):
        x, y = batch()
        buf.append((x, y))
        bx, by = buf[0]
        step(model, optimizer, bx, by)


@growing
def cache_by_step():
    model, optimizer = setup()
    cache = {}
    for i in range(STEPS):
        x, y = batch()
        cache[i] = model[:2](x).detach()
        step(model, optimizer, x, y)


@growing
def create_graph_cycle():
    model, optimizer = setup()
    for _ in range(STEPS):
        x, y = batch()
        optimizer.zero_grad()
        l = F.cross_entropy(model(x), y)
        l.backward(create_graph=True)
        optimizer.step()
        model.last = [p.grad for p in model.parameters()]
        model.old = getattr(model, "old", []) + [model.last]


@growing
def adapters_added():
    model, optimizer = setup()
    ads = nn.ModuleList()
    for i in range(STEPS):
        a = nn.Linear(512, 512).cuda()
        ads.append(a)
        optimizer.add_param_group({"params": a.parameters()})
        x, y = batch()
        optimizer.zero_grad()
        F.cross_entropy(model(a(x)), y).backward()
        optimizer.step()


@growing
def tracebacks():
    model, optimizer = setup()
    errors = []

    def bad(x):
        h = model[:4](x).detach()
        raise RuntimeError("nan")

    for _ in range(STEPS):
        x, y = batch()
        step(model, optimizer, x, y)
        try:
            bad(x)
        except RuntimeError as e:
            errors.append(e)


@growing
def snapshots_on_gpu():
    model, optimizer = setup()
    states = []
    for _ in range(STEPS):
        x, y = batch()
        step(model, optimizer, x, y)
        states.append({k: v.clone() for k, v in model.state_dict().items()})


@growing
def ema_of_loss_graph():
    model, optimizer = setup()
    avg = 0
    for _ in range(STEPS):
        x, y = batch()
        optimizer.zero_grad()
        l = F.cross_entropy(model(x), y)
        avg = 0.9 * avg + 0.1 * model(x).mean()
        l.backward()
        optimizer.step()


@growing
def generate_cache_never_freed():
    w = nn.Linear(1024, 3072).cuda()
    ks = []
    with torch.no_grad():
        for t in range(40):
            q, k, v = w(torch.randn(64, 1, 1024, device="cuda")).chunk(3, -1)
            ks.append((k.clone(), v.clone()))


@growing
def closures():
    model, optimizer = setup()
    fs = []
    for _ in range(STEPS):
        x, y = batch()
        step(model, optimizer, x, y)
        fs.append(lambda x=x: model(x))


if __name__ == "__main__":
    torch.manual_seed(0)
    {**CONSTANT, **GROWING}[sys.argv[1]]()
