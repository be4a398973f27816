#!/usr/bin/env python3
"""The recomputation that our plans cost beside others', on the same inputs: our costs in, their plans out, every plan run by our engine.

    compare_planners.py METAPROF PYTHON OUT.csv [--models tests/data/models] [--only WORD] [--budgets 100%,80%,60%,45%,35%]

PYTHON has torch, pulp and scipy. The others are the framework's memory-budget solvers (torch._functorch: dp, ilp, greedy), its SAC integer programme
(torch.distributed._tools.sac_ilp), and as built in rotor's schedules, square-root checkpointing and a knapsack of modules' calls. Of each the
plans for many values of its own budget are run, and the cheapest that stays within ours counts. A row of OUT.csv: model, options, budget, its bytes,
planner, peak, FLOPs computed again as a share of the step's ("": no plan holds). "ours" is the best of our usual strategies, "best other" the best of
the others, "ours at its peak" our best plan with the peak of that as the budget. Rows that OUT.csv has already are left out, and others' plans that
OUT.csv.d has already are not made again.
The table is printed. Exit status: 0 ours is nowhere worse at the same peak, 1 it is somewhere.
"""
import argparse
import csv
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
# Sizes at which what the forward keeps is most of a step's memory.
MODELS = [
    ("resnet50", ["--optimizer", "sgd"]),
    ("gpt2", ["--optimizer", "sgd", "--batch", "16"]),
    ("bert_base", ["--optimizer", "sgd", "--batch", "64"]),
    ("llama_3_2_1b", ["--optimizer", "sgd", "--precision", "bf16", "--batch", "8"]),
    ("vit_b_16", ["--optimizer", "sgd", "--batch", "64"]),
    ("unet", ["--optimizer", "sgd", "--batch", "32"]),
]
SHARES = [part / 20 for part in range(21)]
USUAL = ("modules", "chain", "operators")
BUILT_IN = ("rotor", "square-root", "knapsack")
SECONDS = 20  # for their integer programme, in place of its own 180


# --- in PYTHON: their solvers

def knapsack_plans(costs):
    """All modules of lists computed again, and the results kept that a solver chooses, for shares of the memory of all."""
    from torch._functorch._activation_checkpointing import knapsack
    solvers = {"dp": knapsack.dp_knapsack, "ilp": knapsack.ilp_knapsack, "greedy": knapsack.greedy_knapsack}
    modules = [(path, one) for one in costs["classes"] if one["in_list"] for path in one["modules"]]
    items = [(path, call) for path, one in modules for call in one["calls"]]
    all_bytes = sum(call["bytes"] for _, call in items) or 1
    # The framework's estimator of run times is "flops" unless it is told otherwise.
    all_flops = sum(call["flops"] for _, call in items) or 1
    memory, times = [call["bytes"] / all_bytes for _, call in items], [call["flops"] / all_flops for _, call in items]
    for name, solver in solvers.items():
        for share in SHARES:
            kept = [items[number] for number in solver(memory, times, share)[1]]
            yield name, [word(path, [call for other, call in kept if other == path]) for path, _ in modules]


def sac_plans(costs, sac, peak):
    """Modules, and the share of each to discard, by the framework's integer programme; its second one says which results stay."""
    import types
    from torch.distributed._tools import ilp_utils, sac_ilp
    solver = sac_ilp.PULP_CBC_CMD
    sac_ilp.PULP_CBC_CMD = lambda **options: solver(**{**options, "timeLimit": SECONDS})
    for module in sac["mod_stats"]:
        module["is_leaf"] |= module["sac_memory"] == 0 == module["act_fw_per_module"]  # it divides by these
    of_path = {path: one for one in costs["classes"] for path in one["modules"]}
    for share in SHARES[6::2]:
        chosen, _, _ = sac_ilp.sac_milp(ilp_utils.parse_module_info(json.loads(json.dumps(sac))), share * peak / 2**30)
        words = []
        for name, discarded in chosen.items():
            path = name.partition(".")[2]
            calls = of_path.get(path, {"calls": []})["calls"]
            stats = types.SimpleNamespace(func_names=[call["op"] for call in calls], memory=[call["bytes"] for call in calls],
                                          runtimes=[call["seconds"] for call in calls], view_like_ops=[], rand_ops=[], inplace_ops=[],
                                          force_store_random=False)
            stays = sac_ilp.get_optimal_checkpointing_policy_per_module(stats, 1 - discarded) if calls else []
            words.append(word(path, [call for call, stay in zip(calls, stays) if stay]))
        yield "sac", words


def word(path, kept):
    numbers = {}
    for call in kept:
        numbers.setdefault(call["op"], []).append(call["number"])
    said = " ".join(f"={op}:{','.join(map(str, sorted(which)))}" for op, which in numbers.items())
    return f"{path}{{{said}}}" if said else path


def solve():
    given = json.load(sys.stdin)
    plans = [*knapsack_plans(given["costs"]), *sac_plans(given["costs"], given["sac"], given["costs"]["peak"])]
    json.dump({"strategies": [{"strategy": name, "checkpoint": words} for name, words in plans]}, sys.stdout)


# --- here

def answer(command, **more):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, **more)
    if not done.stdout:
        sys.exit(f"{' '.join(map(str, command))}: {done.stderr[-2000:]}")
    return json.loads(done.stdout)


def plan(options, name, words, *more):
    return answer([options.metaprof, "plan", options.models / f"{name}.pt2", *words, "--steps", "2", "--workspaces", "none", "--json", "-", *more])


def theirs(options, name, words, work):
    """All plans of all others, run: rows of `plan --json`."""
    file, costs = work / f"{name}.json", work / "costs.json"
    if file.exists():
        return plan(options, name, words, "--budget", "100%", "--plan", file)
    plan(options, name, words, "--budget", "100%", "--strategy", "modules", "--costs", costs)
    sac = answer([options.metaprof, "plan-input", options.models / f"{name}.pt2", *words, "--workspaces", "none", "--format", "sac"])
    given = json.dumps({"costs": json.loads(costs.read_text()), "sac": sac})
    plans = answer([options.python, __file__, "--solve"], input=given)
    unique = {(one["strategy"], " ".join(one["checkpoint"])): one for one in plans["strategies"]}
    file.write_text(json.dumps({"strategies": list(unique.values())}))
    return plan(options, name, words, "--budget", "100%", "--plan", file)


def compare(options, name, words, budget, ran, work):
    """Rows: planner, peak, share of FLOPs."""
    ours = plan(options, name, words, "--budget", budget, "--strategy", ",".join(USUAL + BUILT_IN))
    best, share = {}, lambda row: row["recompute_flops"] / ours["plain"]["flops"]
    rows = ours["strategies"] + ran["strategies"]
    for row in rows:
        known = best.get(row["strategy"])
        if row["peak"] <= ours["budget"] and (known is None or row["recompute_flops"] < known["recompute_flops"]):
            best[row["strategy"]] = row
    for who, names in (("ours", USUAL), ("best other", [name for name in best if name not in USUAL])):
        among = [best[name] for name in names if name in best]
        if among:
            best[who] = min(among, key=lambda row: (row["recompute_flops"], row["peak"]))
    if "best other" in best:
        at = plan(options, name, words, "--budget", str(best["best other"]["peak"]))
        best["ours at its peak"] = at if at["holds"] else None
    for planner in ("ours", *USUAL, *BUILT_IN, "dp", "ilp", "greedy", "sac", "best other", "ours at its peak"):
        row = best.get(planner)
        yield [name, " ".join(words), budget, ours["budget"], planner, row["peak"] if row else "", f"{share(row):.6f}" if row else ""]


def show(rows):
    """Markdown; 1 if ours is worse somewhere at the same peak."""
    planners = [*USUAL, *BUILT_IN, "dp", "ilp", "greedy", "sac", "best other", "ours at its peak"]
    print("| model | budget | " + " | ".join(planners) + " |\n|---|---|" + "--:|" * len(planners))
    cases, count = {}, {"better": 0, "equal": 0, "worse": 0, "of no FLOPs": 0, "where no other holds": 0}
    for name, _, budget, _, planner, _, share in rows:
        cases.setdefault((name, budget), {})[planner] = share
    for (name, budget), of in cases.items():
        cells = [f"{100 * float(of[planner]):.1f}" if of.get(planner) else "–" for planner in planners]
        print(f"| {name} | {budget} | " + " | ".join(cells) + " |")
        count[verdict(of)] += 1
    print(f"at the peak of the best other: {', '.join(f'{number} {word}' for word, number in count.items())}")
    return 1 if count["worse"] else 0


def verdict(of):
    """Ours beside the best other's plan, at the peak of that."""
    if not of.get("best other"):
        return "where no other holds"
    other, own = float(of["best other"]), of.get("ours at its peak")
    if not own or float(own) > other + 1e-9:
        return "worse"
    if other == 0:
        return "of no FLOPs"  # nothing is better
    return "better" if float(own) < other - 1e-9 else "equal"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("metaprof")
    parser.add_argument("python")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--models", type=pathlib.Path, default=HERE.parents[1] / "tests/data/models")
    parser.add_argument("--only", default="")
    parser.add_argument("--budgets", default="100%,80%,60%,45%,35%")
    options = parser.parse_args()
    work = pathlib.Path(f"{options.out}.d")
    work.mkdir(parents=True, exist_ok=True)
    done = {tuple(row[:3]) for row in csv.reader(open(options.out))} if options.out.exists() else set()
    for name, words in MODELS:
        budgets = [budget for budget in options.budgets.split(",") if (name, " ".join(words), budget) not in done]
        if options.only not in name or not budgets:
            continue
        ran = theirs(options, name, words, work)
        for budget in budgets:
            with options.out.open("a") as out:
                csv.writer(out).writerows(compare(options, name, words, budget, ran, work))
    return show(list(csv.reader(open(options.out))))


if __name__ == "__main__":
    sys.exit(solve() if sys.argv[1:] == ["--solve"] else main())
