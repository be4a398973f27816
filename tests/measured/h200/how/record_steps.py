"""Records the configurations of record_list.json, several at once, each in a fork.   OUT END GIB

END is a time in seconds since 1970, GIB the memory that all together may take. peaks.json has the reserved peak of each
configuration, as it was recorded without a GPU.
"""

import json, os, pathlib, sys, time, signal

K = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(K / "tools"))
W, END, GIB = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
import torch

real_count = torch._C._cuda_getDeviceCount
torch._C._cuda_getDeviceCount = lambda: 1
import torch._dynamo, transformers, torchvision, timm, zoo, oplog, record_model as R, real_build  # noqa
from torch.utils import checkpoint  # noqa

R.build = real_build.build
R.emulated = lambda: False
oplog.extension()
torch.set_num_threads(1)
ref = json.load(open(K / "peaks.json"))
todo = [
    c
    for c in json.load(open(K / "tools/record_list.json"))
    if not c.get("memory_mib")
    and c.get("device", "h200") == "h200"
    and not c["model"].startswith("llama_3_1_8b")
    and not c.get("expect_oom")
]
seen = {}
for c in todo:
    c["_k"] = seen[c["model"]] = seen.get(c["model"], 0) + 1
todo.sort(key=lambda c: c["_k"])
gib = lambda c: ref.get(R.config_id(R.DEFAULTS | {k: v for k, v in c.items() if k != "_k"}), 6 << 30) / 2**30 + 0.8
live, used, done, failed = {}, 0.0, 0, []


def child(c):
    out = W + "/models"
    if c["alloc_conf"]:
        os.environ["PYTORCH_ALLOC_CONF"] = c["alloc_conf"]
    os.environ |= c["env"]
    R.record(c, out, marks=False)


def reap(block):
    global used, done
    while live:
        pid, st = os.waitpid(-1, 0 if block else os.WNOHANG)
        if pid == 0:
            return
        c, g = live.pop(pid)
        used -= g
        done += st == 0
        if st:
            failed.append(c)
        if block:
            return


for c in todo:
    c = R.DEFAULTS | {k: v for k, v in c.items() if k != "_k"}
    g = gib(c)
    if g > GIB:
        print("too large", R.config_id(c), g)
        continue
    while live and (used + g > GIB or len(live) >= 7):
        reap(True)
    if time.time() > END - 12:
        print("no time from", R.config_id(c))
        break
    pid = os.fork()
    if pid == 0:
        try:
            signal.alarm(int(max(5, END - time.time())))
            torch._C._cuda_getDeviceCount = real_count
            child(c)
        except BaseException as e:
            print(R.config_id(c), repr(e)[:300], flush=True)
            os._exit(1)
        os._exit(0)
    live[pid] = (c, g)
    used += g
while live:
    reap(True)
print(done, "recorded,", len(failed), "failed:", *[R.config_id(c) for c in failed])
