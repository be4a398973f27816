"""What the program does without calling an operator: `.data` and `.grad`, backward, autocast, checkpointed regions, optimizers."""
import contextlib
import functools
import inspect
import sys
import weakref

from metaprof_recorder.capture.calls import Name
from metaprof_recorder.capture.dtypes import rebinds
from metaprof_recorder.capture.functions import tensors_in
from metaprof_recorder.process.import_hook import after_import
from metaprof_recorder.pytorch.higher_order import passing


def install(capture):
    torch = capture.torch
    _watch_data(capture, torch.Tensor, torch._C.TensorBase.data)
    _watch_gradient(capture, torch.Tensor, torch._C.TensorBase.grad)
    _watch_dtype(capture, torch.Tensor, torch._C.TensorBase.dtype)
    _watch_contiguous(capture, torch.Tensor, torch.Tensor.contiguous)
    _watch_subclass(capture, torch.Tensor)
    _watch_swap(capture, torch.utils)
    _hide_names(capture, weakref)
    _watch_higher_order(capture, torch)
    _watch_autocast(capture)
    _watch_checkpoint(capture)
    _watch_saved_tensors(capture)
    _watch_versions(capture)
    _watch_cache(capture)
    _watch_graphs(capture)
    _watch_compiler(capture)
    _watch_optimizers(capture)


class Watched(property):
    """In the place of a property of tensors. Who looks at it (torch's compiler does) finds the name of the original and its class."""

    def __init__(self, original, *functions):
        super().__init__(*functions, doc=original.__doc__)
        self.__objclass__, self.__name__ = original.__objclass__, original.__name__


def _concerns(capture, tensor):
    return capture.active() and (tensor.is_cuda or id(tensor) in capture._now.names)


def _watch_data(capture, owner, original):
    def read(tensor):
        data = original.__get__(tensor)
        if _concerns(capture, tensor) and data.is_cuda:
            capture.alias(data, tensor)
        return data

    def write(tensor, data):
        if capture.active() and isinstance(data, owner) and (data.is_cuda or _concerns(capture, tensor)):
            capture.step(f"set_data(%{capture.use(tensor)}, %{capture.use(data)})")
        original.__set__(tensor, data)
        capture.device.data_is_set(tensor, data)

    capture.patches.set(owner, "data", Watched(original, read, write))


def _watch_gradient(capture, owner, original):
    def read(tensor):
        gradient = original.__get__(tensor)
        if gradient is not None and _concerns(capture, tensor) and id(gradient) not in capture._now.names:
            leaf = capture.use(tensor)
            capture.call(f"{capture.made(gradient)} = step::gradient(%{leaf})")
        return gradient

    def write(tensor, gradient):
        if _concerns(capture, tensor):
            if gradient is not None:
                capture.step(f"set_gradient(%{capture.use(tensor)}, %{capture.use(gradient)})")
            elif original.__get__(tensor) is not None:
                capture.step(f"set_gradient(%{capture.use(tensor)}, None)")
        original.__set__(tensor, gradient)

    def delete(tensor):
        write(tensor, None)

    capture.patches.set(owner, "grad", Watched(original, read, write, delete))


def _watch_dtype(capture, owner, original):
    """Calls are given dtypes of tensors: in another precision they would be given others."""
    def read(tensor):
        dtype = original.__get__(tensor)
        if capture.active():
            name = capture._now.names.get(id(tensor))
            if name is not None:
                capture.dtypes.read(sys._getframe(1), dtype, name.numbers[-1])
        return dtype

    capture.patches.set(owner, "dtype", Watched(original, read))


def _watch_contiguous(capture, owner, original):
    """What is contiguous is given back without a call of the operator; in another precision it may not be."""
    @functools.wraps(original)
    def contiguous(tensor, *arguments, **options):
        result = original(tensor, *arguments, **options)
        if result is tensor and _concerns(capture, tensor):
            # Our own reference and that of the function that counts; a variable of the program's is one more.
            others = sys.getrefcount(tensor) - 3 - (capture._counts_tell and tensor._use_count() > 1)
            goes = others == 0 or (others == 1 and rebinds(sys._getframe(1)))
            formats = "".join(f", memory_format={capture._constants.text(one)}" for one in (*arguments, *options.values()))
            capture.unchanged(tensor, f"aten::contiguous({{}}{formats})", goes)
        return result

    capture.patches.set(owner, "contiguous", contiguous)


def _hide_names(capture, owner):
    """Who asks for the weak references to a tensor finds the program's own."""
    original = owner.getweakrefs

    @functools.wraps(original)
    def references(value):
        return [one for one in original(value) if type(one) is not Name]

    capture.patches.set(owner, "getweakrefs", references)
    capture.patches.set(owner, "getweakrefcount", lambda value: len(references(value)))


def _watch_swap(capture, owner):
    original = owner.swap_tensors

    @functools.wraps(original)
    def swap(first, second):
        if not capture.active():
            return original(first, second)
        return capture._now.exchange([first, second], capture._died, lambda: original(first, second))

    capture.patches.set(owner, "swap_tensors", swap)


def _watch_higher_order(capture, torch):
    operator = torch._ops.HigherOrderOperator
    capture.patches.set(operator, "dispatch", passing(torch, operator.dispatch))


def _watch_subclass(capture, owner):
    """A parameter is another object over the memory of the tensor that it is made of, which may be gone when the parameter is met."""
    original = owner._make_subclass

    @functools.wraps(original)
    def make(kind, tensor, *arguments, **options):
        made = original(kind, tensor, *arguments, **options)
        if _concerns(capture, tensor) and made.is_cuda:
            capture.alias(made, tensor)
        return made

    capture.patches.set(owner, "_make_subclass", staticmethod(make))


def _watch_autocast(capture):
    autocast = capture.torch.amp.autocast_mode.autocast
    enter, leave = autocast.__enter__, autocast.__exit__

    @functools.wraps(enter)
    def entered(self):
        result = enter(self)
        torch = capture.torch
        if capture.active():
            dtype = capture._constants.text(torch.get_autocast_dtype("cuda"))
            capture.step(f"autocast_enter({torch.is_autocast_enabled('cuda')}, {dtype}, {torch.is_autocast_cache_enabled()})")
        return result

    @functools.wraps(leave)
    def left(self, *arguments):
        if capture.active():
            capture.step("autocast_leave()")
        return leave(self, *arguments)

    capture.patches.set(autocast, "__enter__", entered)
    capture.patches.set(autocast, "__exit__", left)
    capture.patches.later(after_import("transformers.utils.generic", lambda module: _watch_maybe_autocast(capture, module)))


def _watch_maybe_autocast(capture, module):
    """transformers leaves out a region that switches autocast off where it is off. With autocast on, the program would have it."""
    original = getattr(module, "maybe_autocast", None)
    if original is None:
        return

    @functools.wraps(original)
    def call(*arguments, **options):
        context = original(*arguments, **options)
        return Off(capture) if isinstance(context, contextlib.nullcontext) and capture.active() else context

    capture.patches.set(module, "maybe_autocast", call)


class Off:
    """A region of the program in which autocast is off, where it is off already."""

    def __init__(self, capture):
        self._capture = capture

    def __enter__(self):
        dtype = self._capture._constants.text(self._capture.torch.get_autocast_dtype("cuda"))
        self._capture.step(f"autocast_enter(False, {dtype}, True)")

    def __exit__(self, *_):
        self._capture.step("autocast_leave()")


def _watch_checkpoint(capture):
    """What `checkpoint` calls, for programs hold `checkpoint` itself under names of their own."""
    import torch.utils.checkpoint as checkpoint
    generator, nothing = checkpoint._checkpoint_without_reentrant_generator, checkpoint.noop_context_fn
    names = list(inspect.signature(generator).parameters)[3:]  # of `arguments`, as far as they are the generator's own
    place = names.index("early_stop") if "early_stop" in names else None

    def runs_to_its_end(arguments):
        """Whether what backward does not need is recomputed, too."""
        given = place is None or len(arguments) <= place or arguments[place]
        stops = checkpoint._enable_checkpoint_early_stop
        return not (given if stops is None else stops)

    @functools.wraps(generator)
    def without_reentrant(function, preserve=True, context_fn=nothing, *arguments, **options):
        # Before the function's arguments stand those that say how it is checked: they hold no tensors.
        opened = capture.regions.open("whole" if runs_to_its_end(arguments) else "", given_to(capture._tensor, function, arguments, options))
        if opened and context_fn is not nothing:
            context_fn = capture.regions.selective(context_fn, getattr(checkpoint, "_CachingTorchDispatchMode", ()))
        try:
            yield from generator(function, preserve, context_fn, *arguments, **options)
        finally:
            if opened:
                capture.regions.close()

    apply = checkpoint.CheckpointFunction.apply

    def reentrant(kind, function, preserve, *arguments):
        opened = capture.regions.open("reentrant", given_to(capture._tensor, function, arguments))
        try:
            return apply(function, preserve, *arguments)
        finally:
            if opened:
                capture.regions.close()

    capture.patches.set(checkpoint, "_checkpoint_without_reentrant_generator", without_reentrant)
    capture.patches.set(checkpoint.CheckpointFunction, "apply", classmethod(reentrant))


def given_to(tensor_class, function, *more):
    """The tensors that a call of a function holds: its arguments, those that are bound to it, and variables around it."""
    found = list(tensors_in(tensor_class, more))
    if isinstance(function, functools.partial):
        found += given_to(tensor_class, function.func, function.args, function.keywords)
    for cell in getattr(function, "__closure__", None) or ():
        with contextlib.suppress(ValueError):  # it has no value
            found += tensors_in(tensor_class, cell.cell_contents)
    return found


def _watch_saved_tensors(capture):
    """What save_on_cpu does is one rule; what other hooks on saved tensors call is not seen."""
    graph = capture.torch.autograd.graph
    made, enter, leave = graph.save_on_cpu.__init__, graph.saved_tensors_hooks.__enter__, graph.saved_tensors_hooks.__exit__

    @functools.wraps(made)
    def save_on_cpu(hooks, pin_memory=False, *arguments, **options):
        made(hooks, pin_memory, *arguments, **options)
        hooks._metaprof_pinned = bool(pin_memory)

    @functools.wraps(enter)
    def entered(hooks):
        if isinstance(hooks, graph.save_on_cpu):
            capture.step(f"saved_on_host_enter({hooks._metaprof_pinned})")
        elif capture.active() and not capture.regions.is_open() and not getattr(hooks, "_metaprof_measured", False):
            hooks._metaprof_measured = True
            for name in ("pack_hook", "unpack_hook"):
                setattr(hooks, name, capture.unseen.measured("hooks on saved tensors", getattr(hooks, name)))
        return enter(hooks)

    @functools.wraps(leave)
    def left(hooks, *arguments):
        if isinstance(hooks, graph.save_on_cpu):
            capture.step("saved_on_host_leave()")
        return leave(hooks, *arguments)

    capture.patches.set(graph.save_on_cpu, "__init__", save_on_cpu)
    capture.patches.set(graph.saved_tensors_hooks, "__enter__", entered)
    capture.patches.set(graph.saved_tensors_hooks, "__exit__", left)


def _watch_versions(capture):
    """Writes that autograd is not told of: FSDP fills parameters again that a backward needs."""
    kept = getattr(capture.torch.autograd.grad_mode, "_unsafe_preserve_version_counter", None)
    if kept is None:
        return
    enter, leave = kept.__enter__, kept.__exit__

    @functools.wraps(enter)
    def entered(region):
        if capture.active() and capture._concern(region.tensors):
            tensors = ", ".join(f"%{capture.use(tensor)}" for tensor in region.tensors)
            capture.step(f"keep_versions_enter([{tensors}])")
            region._metaprof_entered = True
        return enter(region)

    @functools.wraps(leave)
    def left(region, *arguments):
        if getattr(region, "_metaprof_entered", False):
            capture.step("keep_versions_leave()")
        return leave(region, *arguments)

    capture.patches.set(kept, "__enter__", entered)
    capture.patches.set(kept, "__exit__", left)


def _watch_cache(capture):
    for name in ("_cuda_emptyCache", "_accelerator_emptyCache"):
        original = getattr(capture.torch._C, name, None)
        if original is not None:
            capture.patches.set(capture.torch._C, name, _emptying(capture, original))


def _emptying(capture, original):
    @functools.wraps(original)
    def call(*arguments):
        capture.step("empty_cache()")
        return original(*arguments)

    return call


def _watch_graphs(capture):
    """While a CUDA graph is captured its memory is of a private pool, and blocks of one pool are never given to another, as those of one stream are
    never given to another. So in the program what is captured on a stream is on a stream of its own. Not where the stream has worked before: a library's
    workspace of that stream would be taken twice. Pools of several graphs that are captured on one stream are one."""
    graph = capture.torch.cuda.CUDAGraph
    begin, end = graph.capture_begin, graph.capture_end
    alone = set()  # streams that had not worked before

    @functools.wraps(begin)
    def capture_begin(self, *arguments, **options):
        stream = capture.device.stream()
        if not capture.knows_stream(stream):
            alone.add(stream)
        begin(self, *arguments, **options)
        capture.captures = stream in alone

    @functools.wraps(end)
    def capture_end(self):
        capture.captures = False
        end(self)

    graph.capture_begin, graph.capture_end = capture_begin, capture_end


def _watch_compiler(capture):
    """Compiled functions take their memory in C++ and call some operators; kernels of their own take none. What compiling takes is not seen."""
    guards = capture.torch._C._dynamo.guards
    for name, device in (("_empty_strided_cuda", "cuda"), ("_empty_strided_cuda_pinned", None), ("_empty_strided_cpu", None)):
        if hasattr(guards, name) and device:
            _watch_buffers(capture, guards, name, device)
    _watch_views(capture, guards, "_reinterpret_tensor")
    for owner in (capture.torch, capture.torch.nn.Module):
        _watch_compile(capture, owner, owner.compile)


def _watch_buffers(capture, owner, name, device):
    original = getattr(owner, name)
    empty = capture.torch.empty_strided

    @functools.wraps(original)
    def call(sizes, strides, dtype):
        return empty(sizes, strides, dtype=dtype, device=device) if capture.active() else original(sizes, strides, dtype)

    capture.patches.set(owner, name, call)


def _watch_views(capture, owner, name):
    """Another look at a buffer, which may be gone when the look is used."""
    original = getattr(owner, name, None)
    if original is None:
        return

    @functools.wraps(original)
    def call(tensor, *arguments):
        made = original(tensor, *arguments)
        if _concerns(capture, tensor) and made.is_cuda:
            capture.alias(made, tensor)
        return made

    capture.patches.set(owner, name, call)


def _watch_compile(capture, owner, original):
    @functools.wraps(original)
    def call(*arguments, **options):
        result = original(*arguments, **options)
        if not capture.watches_compiler:
            from torch._dynamo.callback import callback_handler
            compiling = Compiling(capture)
            _watch_guards(capture)
            callback_handler.register_start_callback(lambda *_: compiling.begins())
            callback_handler.register_end_callback(lambda *_: compiling.ends())
            capture.watches_compiler = True
        return result

    capture.patches.set(owner, "compile", call)


def _watch_guards(capture):
    """A compiled function is compiled again for arguments whose dispatch keys, with those of the thread, differ from those that its guards were made with."""
    from torch._dynamo.guards import CheckFunctionManager
    original = CheckFunctionManager.__init__

    @functools.wraps(original)
    def make(*arguments, **options):
        with capture.key_included():
            original(*arguments, **options)

    capture.patches.set(CheckFunctionManager, "__init__", make)


class Compiling:
    """What torch.compile calls while it compiles is none of the program's calls."""

    def __init__(self, capture):
        self._capture = capture
        self._off = None
        self._part = capture.unseen.part("torch.compile, while it compiles")

    def begins(self):
        capture = self._capture
        if self._off is None and capture.running:
            capture.paused += 1
            self._part.__enter__()
            self._off = capture.sleep()

    def ends(self):
        if self._off is not None:
            self._off()
            self._off = None
            self._part.__exit__()
            self._capture.paused -= 1


def _watch_optimizers(capture):
    """Their steps; their constructors are told by who counts them as phases."""
    from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
    capture.patches.later(register_optimizer_step_pre_hook(lambda *_: capture.optimizers.begin()).remove)
    capture.patches.later(register_optimizer_step_post_hook(lambda optimizer, *_: capture.optimizers.end(optimizer, "step")).remove)
