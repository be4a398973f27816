"""Regions in which autograd packs what it saves, and those whose writes it is not told of."""
import functools


def install(capture):
    _watch_saved_tensors(capture)
    _watch_versions(capture)


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
        if capture.active() and capture.values.concern(region.tensors):
            tensors = ", ".join(f"%{capture.values.use(tensor)}" for tensor in region.tensors)
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
