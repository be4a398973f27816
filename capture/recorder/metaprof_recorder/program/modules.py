"""The program's modules, by their paths from an outermost one. They are held weakly: one that the program lets go is forgotten."""
import weakref

from metaprof_recorder.text import names


class ByModule:
    """Values by module, which may compare or hash as it likes."""

    def __init__(self):
        self._values = {}  # id -> (weak reference, value)

    def get(self, module):
        found = self._values.get(id(module))
        return None if found is None else found[1]

    def set(self, module, value):
        key = id(module)
        self._values[key] = weakref.ref(module, lambda _: self._values.pop(key, None)), value


class Modules:
    def __init__(self):
        self._paths = ByModule()
        self._named = False
        self.types = {}  # path -> class

    def path(self, module):
        """None: it has none."""
        return self._paths.get(module)

    def name(self, root):
        """Gives paths to an outermost module and to those in it, if it has none; those of a second one begin with its class. Returns its own."""
        if self.path(root) is None:
            prefix = type(root).__name__ if self._named else ""
            self._named = True
            for path, inner in root.named_modules():
                path = names.encodable(".".join(word for word in (prefix, path) if word))
                self._paths.set(inner, path)
                self.types[path] = type(inner).__name__
        return self.path(root)


class Parameters:
    """Where the parameters of modules stand: as attributes of modules, which may be given other tensors meanwhile."""

    def __init__(self):
        self._places = []  # (weak reference to a module, attribute, name)

    def add(self, root, prefix):
        seen = set()
        for path, module in root.named_modules(prefix=prefix):
            reference = weakref.ref(module)
            for attribute, parameter in module._parameters.items():
                if parameter is not None and id(parameter) not in seen:
                    seen.add(id(parameter))
                    self._places.append((reference, attribute, f"{path}.{attribute}" if path else attribute))

    def now(self):
        """(name, parameter) of those that are still there."""
        found, alive = [], []
        for place in self._places:
            module = place[0]()
            if module is not None:
                alive.append(place)
                parameters = module._parameters  # of a compiled module (TorchScript) less than a dictionary
                parameter = parameters[place[1]] if place[1] in parameters else None
                if parameter is not None:
                    found.append((place[2], parameter))
        self._places = alive
        return found
