"""Changes that need no other model: which of them the program could use, and one of them made.

Every run says which would do something (`found`). A run with METAPROF_RECORD_FIX makes the one that it names, as if the program were written so.
"""
import functools
import inspect

from metaprof_recorder.program.modules import ByModule

CHECKPOINT, NO_GRAD, CPU, BUCKETS, CACHE, TO_NONE, FUSED, LOOP = "checkpoint", "no_grad", "map_location", "bucket_view", "autocast_cache", "set_to_none", "fused", "foreach"
EMPTY = "empty_cache"


class Fixes:
    """`chosen`: the change that is made; "": none."""

    def __init__(self, torch, chosen=""):
        self._torch, self._chosen = torch, chosen
        self._has_grad_off = False  # within a module's call
        self._looked = ByModule()   # those whose blocks have been looked for
        self._trains = None         # whether the last call of a module did; None: there was none
        self.found = []

    def _applies(self, name):
        """Notes that a change would do something here. Gives whether it is to be made."""
        if name not in self.found:
            self.found.append(name)
        return name == self._chosen

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
            if CPU == self._chosen:
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

    # ---- modules

    def enter(self, module):
        """An outermost module is called."""
        torch = self._torch
        self._empty_between(module)
        if not torch.is_grad_enabled() or torch.jit.is_tracing():
            return
        if module.training:
            self._look_for_blocks(module)
        elif next(module.parameters(), None) is not None and self._applies(NO_GRAD):
            self._has_grad_off = True
            torch._C._set_grad_enabled(False)

    def _empty_between(self, module):
        """From training to evaluation and back: what the one has left in the cache has other sizes than the other needs."""
        if next(module.parameters(), None) is None:  # a loss, which has no mode that counts
            return
        trains = module.training and self._torch.is_grad_enabled()
        if self._trains not in (None, trains) and self._applies(EMPTY):
            self._torch.cuda.empty_cache()
        self._trains = trains

    def leave(self):
        """It has ended."""
        if self._has_grad_off:
            self._has_grad_off = False
            self._torch._C._set_grad_enabled(True)

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
