"""Has a function called when the program has imported a module."""
import sys
import threading


def after_import(name, then):
    """Calls `then(module)` when the program has imported the module of this name. The function that is returned calls it off."""
    finder = AfterImport(name, then)
    sys.meta_path.insert(0, finder)
    return lambda: finder in sys.meta_path and sys.meta_path.remove(finder)


class AfterImport:
    """A finder that finds nothing: it lets the others find a module, and has `then` called when that has been executed.

    Who only asks where the module is (importlib.util.find_spec) gets the same answer, and the finder stays."""

    def __init__(self, name, then):
        self.name = name
        self.then = then
        self.asking = threading.local()

    def find_spec(self, fullname, path=None, target=None):
        if fullname != self.name or getattr(self.asking, "others", False):
            return None
        import importlib.util
        self.asking.others = True
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self.asking.others = False
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module):
            spec.loader.exec_module = execute
            if self in sys.meta_path:
                sys.meta_path.remove(self)
            execute(module)
            self.then(module)

        spec.loader.exec_module = exec_module
        return spec
