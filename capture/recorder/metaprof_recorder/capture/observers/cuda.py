"""The allocator's cache is emptied, and CUDA graphs are captured."""
import functools


def install(capture):
    _watch_cache(capture)
    _watch_graphs(capture)


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
        if not capture.modes.knows_stream(stream):
            alone.add(stream)
        begin(self, *arguments, **options)
        capture.modes.captures = stream in alone

    @functools.wraps(end)
    def capture_end(self):
        capture.modes.captures = False
        end(self)

    graph.capture_begin, graph.capture_end = capture_begin, capture_end
