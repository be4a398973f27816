"""How calls of operators are seen: the Python dispatcher asks each operator for its kernel on the PreDispatch key, above autocast and autograd."""
import contextlib
import threading


class Dispatch:
    """`kernel(overload)` gives what runs in the place of an operator."""

    def __init__(self, capture, kernel):
        self._capture, self._torch, self._kernel = capture, capture.torch, kernel
        self._handled = []  # operators that have a kernel of ours
        self._guard = None
        self.off = capture.torch._C._DisablePythonDispatcher  # within it operators are called, and not written down

    def begin(self):
        torch = self._torch
        self._key = torch._C.DispatchKey.PreDispatch
        self._find = torch._ops.OpOverload._get_dispatch
        torch._ops.OpOverload._get_dispatch = lambda overload, key: self._get_dispatch(overload, key)
        torch._C._dispatch_tls_set_dispatch_key_included(self._key, True)
        self._guard = torch._C._EnablePythonDispatcher()

    def end(self):
        torch = self._torch
        if self._capture.thread == threading.get_ident():
            torch._C._dispatch_tls_set_dispatch_key_included(self._key, False)
            self._guard = None
        torch._ops.OpOverload._get_dispatch = self._find
        for overload in self._handled:
            overload._dispatch_cache.pop(self._key, None)

    def sleep(self):
        """Operators have their own kernels again, until the function that is returned is called."""
        torch, thread = self._torch, threading.get_ident()
        if thread != self._capture.thread:
            return lambda: None
        torch._C._dispatch_tls_set_dispatch_key_included(self._key, False)
        off = self.off()
        off.__enter__()
        torch._ops.OpOverload._get_dispatch = self._find
        for overload in self._handled:
            overload._dispatch_cache.pop(self._key, None)
        self._handled.clear()

        def wake():
            off.__exit__(None, None, None)
            if self._capture.running:
                torch._ops.OpOverload._get_dispatch = lambda overload, key: self._get_dispatch(overload, key)
                torch._C._dispatch_tls_set_dispatch_key_included(self._key, True)

        return wake

    @contextlib.contextmanager
    def key_included(self):
        """Within it the thread has the dispatch keys that it has while calls are seen. Those that it makes are still not seen where this sleeps."""
        include, included = self._torch._C._dispatch_tls_set_dispatch_key_included, self._torch._C._dispatch_tls_is_dispatch_key_included
        is_out = self._capture.running and self._capture.thread == threading.get_ident() and not included(self._key)
        if is_out:
            include(self._key, True)
        try:
            yield
        finally:
            if is_out:
                include(self._key, False)

    def _get_dispatch(self, overload, key):
        if key != self._key or not self._capture.running:
            return self._find(overload, key)
        kernel = self._kernel(overload)
        overload._dispatch_cache[key] = kernel
        self._handled.append(overload)
        return kernel
