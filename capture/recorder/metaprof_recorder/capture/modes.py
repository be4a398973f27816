"""Modes in which a captured program calls operators: streams, gradients, inference, the thread of the engine, kinds of attention."""
import threading


class Modes:
    def __init__(self, capture):
        self._capture, self._torch = capture, capture.torch
        self._streams = {0: 0}  # number that PyTorch gives a stream, or what is captured on it -> ours
        self.captures = False   # a CUDA graph is being captured, whose memory is of a pool of its own

    def stream_number(self, stream):
        return self._streams.setdefault(stream, len(self._streams))

    def stream(self):
        """The number of the one that is current."""
        stream = self._capture.device.stream()
        return self.stream_number(("captured", stream) if self.captures else stream)

    def knows_stream(self, stream):
        """Whether the program has worked on it, as PyTorch numbers it."""
        return stream in self._streams

    def write_stream(self):
        """On which stream the calls that follow take their memory, if it is another one than before."""
        number, calls = self.stream(), self._capture.now
        if number != calls.stream:
            calls.stream = number
            self._capture.add(f"step::stream({number})")

    def write(self):
        """The modes that have changed since the last call; they stand behind the tensors that the call has met, which do not care."""
        torch, capture = self._torch, self._capture
        self.write_stream()
        calls = capture.now
        grad = torch.is_grad_enabled()
        if grad is not calls.grad and not self._switches_itself():
            capture.add(f"step::grad_mode({grad})")
            calls.grad = grad
        inference = torch.is_inference_mode_enabled()
        if inference is not calls.inference:
            capture.add(f"step::inference_mode({inference})")
            calls.inference = inference
        engine = threading.get_ident() != capture.thread
        if engine is not calls.engine:
            capture.add(f"step::engine_thread({engine})")
            calls.engine = engine

    def _switches_itself(self):
        """Gradients are off within these by themselves."""
        capture = self._capture
        return capture.functions.depth > 0 or capture.regions.is_reentrant() or capture.nested.runs

    def write_attention(self):
        """Which implementations of attention may be chosen, if others than before (torch.nn.attention.sdpa_kernel)."""
        allowed = tuple(getattr(self._torch._C, f"_get_{name}_sdp_enabled")() for name in ("flash", "mem_efficient", "math", "cudnn"))
        calls = self._capture.now
        if allowed != calls.attention:
            calls.attention = allowed
            self._capture.add(f"step::attention({', '.join(map(str, allowed))})")
