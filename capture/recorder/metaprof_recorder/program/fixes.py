"""Changes that need no other model: which of them the program could use, and some of them made.

Every run says which would do something (`rows`). A run with METAPROF_RECORD_FIX makes those that it names, one a line, as if the program were written so:
a name, or a name with what it is made with (`batch=16`, `no_grad=/me/val.py:20`).
"""
import functools
import inspect

from metaprof_recorder.program.modules import ByModule

CHANGES = {  # as a user writes them
    "checkpoint": "model.gradient_checkpointing_enable(), or torch.utils.checkpoint.checkpoint(block, …, use_reentrant=False) of each block",
    "autocast": "with torch.autocast(\"cuda\", torch.bfloat16): around the calls of models that train",
    "no_grad": "with torch.no_grad(): around the call in {}, which no backward follows",
    "empty_cache": "torch.cuda.empty_cache() between training and evaluation",
    "map_location": "torch.load(…, map_location=\"cpu\")",
    "bucket_view": "DistributedDataParallel(…, gradient_as_bucket_view=True)",
    "autocast_cache": "torch.autocast(…, cache_enabled=False)",
    "set_to_none": "optimizer.zero_grad(set_to_none=True)",
    "fused": "the optimizer with fused=True",
    "foreach": "the optimizer with foreach=False",
    "batch": "DataLoader(…, batch_size={})",
}
CHECKPOINT, AUTOCAST, NO_GRAD, EMPTY, CPU, BUCKETS, CACHE, TO_NONE, FUSED, LOOP, BATCH = CHANGES
MOST_LINES = 4  # whose calls are tried without gradients


class Line:
    """Calls of models with gradients. `goes_back`: a backward went through what one of them returned."""
    __slots__ = ("calls", "goes_back")

    def __init__(self):
        self.calls, self.goes_back = 0, False


class Fixes:
    """`chosen`: the changes that are made, one a line. `tensors_in(object)`: of nested lists and dictionaries. `line()`: the program's, that runs now."""

    def __init__(self, torch, chosen, tensors_in, line):
        self._torch, self._tensors_in, self._line_now = torch, tensors_in, line
        self._chosen = dict(text.partition("=")[::2] for text in chosen.splitlines() if not text.startswith(NO_GRAD + "="))
        self._without_graph = {text.partition("=")[2] for text in chosen.splitlines() if text.startswith(NO_GRAD + "=")}
        self._leaving = []         # what ends with the call of the module in progress
        self._looked = ByModule()  # those whose blocks have been looked for
        self._trains = None        # whether the last call of a module did; None: there was none
        self._lines = {}           # of the program, which call models with gradients
        self._line = None          # of the call in progress
        self._largest_batch = 0    # that a DataLoader gives
        self.found = []

    def rows(self):
        """The changes that would do something. `largest`: the number that the program has now."""
        rows = [{"name": name, "change": CHANGES[name]} for name in self.found]
        without = [line for line, seen in self._lines.items() if seen.calls > 1 and not seen.goes_back]
        rows += [{"name": f"{NO_GRAD}={line}", "change": CHANGES[NO_GRAD], "line": line} for line in without[:MOST_LINES]]
        if self._largest_batch > 1:
            rows.append({"name": BATCH, "change": CHANGES[BATCH], "largest": self._largest_batch})
        return rows

    def _applies(self, name):
        """Notes that a change would do something here. Gives whether it is to be made."""
        if name not in self.found:
            self.found.append(name)
        return name in self._chosen

    def install(self, optimizers):
        """`optimizers`: classes of them."""
        torch = self._torch
        for kind in optimizers:
            if "__init__" in kind.__dict__:
                kind.__init__ = self._around_constructor(kind.__init__)
            if "zero_grad" in kind.__dict__:
                kind.zero_grad = self._around_zero_grad(kind.zero_grad)
        torch.load = self._around_load(torch.load)
        torch.autocast.__init__ = self._around_autocast(torch.autocast.__init__)
        parallel = torch.nn.parallel.DistributedDataParallel
        parallel.__init__ = self._around_parallel(parallel.__init__)
        loader = torch.utils.data.dataloader._BaseDataLoaderIter
        loader._next_index = self._around_next_batch(loader._next_index)

    # ---- optimizers

    def _around_constructor(self, original):
        names = inspect.signature(original).parameters

        @functools.wraps(original)
        def call(optimizer, *arguments, **options):
            if "foreach" in names and not options.get("fused") and not options.get("capturable"):
                if options.get("foreach") is not False and self._applies(LOOP):
                    options["foreach"] = False
                if "fused" in names and not options.get("differentiable") and self._applies(FUSED):
                    options.pop("foreach", None)
                    options["fused"] = True
            return original(optimizer, *arguments, **options)
        return call

    def _around_zero_grad(self, original):
        @functools.wraps(original)
        def call(optimizer, *arguments, **options):
            keeps_zeros = not (arguments[0] if arguments else options.get("set_to_none", True))
            if keeps_zeros and self._applies(TO_NONE):
                arguments, options = (), {"set_to_none": True}
            return original(optimizer, *arguments, **options)
        return call

    # ---- what takes memory by an option

    def _around_load(self, original):
        torch = self._torch

        @functools.wraps(original)
        def call(*arguments, **options):
            where = arguments[1] if len(arguments) > 1 else options.get("map_location")
            if len(arguments) > 1 or not torch.cuda.is_initialized() or str(where) == "cpu":
                return original(*arguments, **options)
            if CPU in self._chosen:
                options["map_location"] = "cpu"
            before = torch.cuda.memory_allocated()
            result = original(*arguments, **options)
            if torch.cuda.memory_allocated() > before:
                self._applies(CPU)
            return result
        return call

    def _around_autocast(self, original):
        @functools.wraps(original)
        def call(autocast, device_type, *arguments, **options):
            if device_type == "cuda" and len(arguments) < 3 and options.get("cache_enabled") is not False and options.get("enabled", True) and self._applies(CACHE):
                options["cache_enabled"] = False
            return original(autocast, device_type, *arguments, **options)
        return call

    def _around_parallel(self, original):
        @functools.wraps(original)
        def call(module, *arguments, **options):
            if not options.get("gradient_as_bucket_view") and self._applies(BUCKETS):
                options["gradient_as_bucket_view"] = True
            return original(module, *arguments, **options)
        return call

    def _around_next_batch(self, original):
        @functools.wraps(original)
        def next_batch(loader):
            batch = original(loader)  # of which the samples are fetched, here or in a worker
            if not isinstance(batch, list):
                return batch
            self._largest_batch = max(self._largest_batch, len(batch))
            return batch[:int(self._chosen[BATCH])] if BATCH in self._chosen else batch
        return next_batch

    # ---- modules

    def enter(self, module):
        """An outermost module is called."""
        torch = self._torch
        self._empty_between(module)
        self._line = None
        if not torch.is_grad_enabled() or torch.jit.is_tracing() or next(module.parameters(), None) is None:
            return
        self._line = self._line_now()
        if self._line in self._without_graph:
            torch._C._set_grad_enabled(False)
            self._leaving.append(lambda: torch._C._set_grad_enabled(True))
        elif module.training:
            self._look_for_blocks(module)
            self._compute_in_bf16(module)

    def leave(self, result):
        """It has ended."""
        while self._leaving:
            self._leaving.pop()()
        line, self._line = self._line, None
        if line is not None:
            self._watch_backward(self._lines.setdefault(line, Line()), result)

    def _watch_backward(self, line, result):
        """A line's calls could do without a graph where no backward goes through what they return."""
        nodes = [tensor.grad_fn for tensor in self._tensors_in(result) if tensor.grad_fn is not None]
        if not nodes or not all(hasattr(node, "register_prehook") for node in nodes):
            return
        line.calls += 1
        if not line.goes_back:
            for node in nodes:
                node.register_prehook(functools.partial(self._note_backward, line))

    @staticmethod
    def _note_backward(line, _gradients):
        line.goes_back = True

    def _compute_in_bf16(self, module):
        torch = self._torch
        if torch.is_autocast_enabled("cuda") or not any(parameter.is_cuda and parameter.dtype == torch.float32 for parameter in module.parameters()):
            return
        if self._applies(AUTOCAST):
            region = torch.autocast("cuda", torch.bfloat16)
            region.__enter__()
            self._leaving.append(lambda: region.__exit__(None, None, None))

    def _empty_between(self, module):
        """From training to evaluation and back: what the one has left in the cache has other sizes than the other needs."""
        if next(module.parameters(), None) is None:  # a loss, which has no mode that counts
            return
        trains = module.training and self._torch.is_grad_enabled()
        if self._trains not in (None, trains) and self._applies(EMPTY):
            self._torch.cuda.empty_cache()
        self._trains = trains

    def _look_for_blocks(self, module):
        if self._looked.get(module):
            return
        self._looked.set(module, True)
        blocks = list(_blocks(self._torch, module))
        if not blocks or not self._applies(CHECKPOINT):
            return
        enable = next((inner.gradient_checkpointing_enable for inner in module.modules() if hasattr(type(inner), "gradient_checkpointing_enable")), None)
        if enable is not None:
            enable()
            return
        for block in blocks:
            block.forward = functools.partial(self._torch.utils.checkpoint.checkpoint, block.forward, use_reentrant=False)


def _blocks(torch, module):
    """The outermost of the modules that stand in a list with others of their class, and that are made of others."""
    containers = (torch.nn.ModuleList, torch.nn.Sequential)
    for inner in module.children():
        children = list(inner.children())
        if isinstance(inner, containers) and len(children) > 1 and len({type(child) for child in children}) == 1 and \
                all(next(child.children(), None) is not None and next(child.parameters(), None) is not None for child in children):
            yield from children
        else:
            yield from _blocks(torch, inner)
