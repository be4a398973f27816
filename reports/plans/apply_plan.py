"""Computes parts of a model again in backward, as a plan of `metaprof plan` says.

    from THIS_FILE import apply_plan
    apply_plan(model)                # once, before the first step; `model` is the module that was planned

The plan is a value of `metaprof profile --checkpoint`. Modules named in it get another `forward`.
"""
import collections
import fnmatch
import functools
import re

import torch
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

PLAN = ""


class Item:
    """A word of the plan: modules, and what its braces say of them."""

    def __init__(self, word):
        self.first, _, self.last = word.partition("..")
        self.keep = {}  # operator -> numbers of its calls whose results stay; none: of all
        self.host = False
        self.inside = []

    def names(self, path):
        if self.last:
            return path == self.first
        # A backslash takes the meaning from a wildcard, which fnmatch does not know.
        patterns = re.sub(r"\\(.)", r"[\1]", self.first).split(".")
        segments = path.split(".")
        return len(segments) == len(patterns) and all(map(fnmatch.fnmatchcase, segments, patterns))


def items_of(tokens, around=None):
    """The items up to the brace that closes; words about the item around them are noted there."""
    items = []
    for token in tokens:
        if token == "}":
            break
        if token == "{":
            items[-1].inside = items_of(tokens, items[-1])
        elif token == ">host":
            around.host = True
        elif token.startswith("="):
            op, _, numbers = token[1:].partition(":")
            around.keep[op] = {int(number) for number in numbers.split(",") if number}
        else:
            items.append(Item(token))
    return items


def keeping(keep):
    """Contexts of a checkpoint in which results of some operators stay."""
    def contexts():
        calls = {False: collections.Counter(), True: collections.Counter()}

        def policy(context, op, *_, **__):
            name = op.name().partition("::")[2]  # "mm", "add.Tensor"
            if name not in keep:
                return CheckpointPolicy.PREFER_RECOMPUTE
            number = calls[context.is_recompute][name]
            calls[context.is_recompute][name] += 1
            stays = not keep[name] or number in keep[name]
            return CheckpointPolicy.MUST_SAVE if stays else CheckpointPolicy.PREFER_RECOMPUTE

        return create_selective_checkpoint_contexts(policy)
    return contexts


def on_host(forward):
    @functools.wraps(forward)
    def run(*arguments, **named):
        with torch.autograd.graph.save_on_cpu(pin_memory=True):
            return forward(*arguments, **named)
    return run


def as_planned(item, forward):
    if item.host:
        return on_host(forward)
    context = {"context_fn": keeping(item.keep)} if item.keep else {}
    return functools.partial(checkpoint, forward, use_reentrant=False, **context)


def hand_on(result, path):
    """The one tensor that a module gives to the next, and whether it is alone in a tuple."""
    in_tuple = isinstance(result, tuple) and len(result) == 1
    tensor = result[0] if in_tuple else result
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{path} gives more than one tensor to the module after it, so both cannot be recomputed as one")
    return tensor, in_tuple


def join(item, modules, paths):
    """The first module runs all of them, as planned; each of the others gives on what it is given."""
    forwards = [module.forward for module in modules]
    in_tuples = [False] * len(modules)
    others = []  # what the modules are given besides the tensor, as identities: nothing is kept alive

    def run_all(tensor, *rest, **named):
        for number, forward in enumerate(forwards):
            tensor, in_tuples[number] = hand_on(forward(tensor, *rest, **named), paths[number])
        return tensor

    run = as_planned(item, run_all)

    def identities(rest, named):
        return [id(value) for value in rest], {name: id(value) for name, value in named.items()}

    def first(tensor, *rest, **named):
        others[:] = [identities(rest, named)]
        tensor = run(tensor, *rest, **named)
        return (tensor,) if in_tuples[0] else tensor

    def other(number, tensor, *rest, **named):
        if others != [identities(rest, named)]:
            raise TypeError(f"{paths[number]} is given other arguments than {paths[0]}, so both cannot be recomputed as one")
        return (tensor,) if in_tuples[number] else tensor

    modules[0].forward = first
    for number in range(1, len(modules)):
        modules[number].forward = functools.partial(other, number)


def neighbours(model, item):
    """The modules from the first to the last, and their paths."""
    parent = item.first.rpartition(".")[0]
    children = {f"{parent}.{name}".lstrip("."): child for name, child in model.get_submodule(parent).named_children()}
    paths = list(children)
    begin, end = paths.index(item.first), paths.index(item.last)
    paths = paths[begin:end + 1] if begin <= end else paths[end:begin + 1][::-1]
    return [children[path] for path in paths], paths


def is_in(path, modules, are_inside):
    return any(path.startswith(module + ".") or (path == module and are_inside) for module in modules)


def apply_items(model, items, may_be):
    """To modules whose paths may be. Of those inside each other the outermost counts; its braces speak of what is in it."""
    paths = {path: module for path, module in model.named_modules() if may_be(path)}
    for item in items:
        if not any(map(item.names, paths)):
            raise ValueError(f"no module of the model is called {item.first!r}: it is not the one that was planned")
    found = {}
    for path in paths:  # outer ones first
        item = next((item for item in items if item.names(path)), None)
        if item and not is_in(path, found, False):
            found[path] = item
    for path, item in found.items():
        modules, names = neighbours(model, item) if item.last else ([paths[path]], [path])
        if item.inside:
            apply_items(model, item.inside, functools.partial(is_in, modules=names, are_inside=bool(item.last)))
        if item.last:
            join(item, modules, names)
        else:
            modules[0].forward = as_planned(item, modules[0].forward)


def apply_plan(model, plan=PLAN):
    """The model, which is changed."""
    items = items_of(iter(re.findall(r"[{}]|[^\s{}]+", plan)))
    if items:
        apply_items(model, items, lambda path: True)
    return model
