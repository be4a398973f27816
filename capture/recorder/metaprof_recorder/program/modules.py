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
    """`names` tells what the program calls a model (model_names.py); without it models have no names."""

    def __init__(self, names=None):
        self._names = names
        self._paths = ByModule()
        self._roots = []  # (weak reference to an outermost module, its path)
        self.types = {}   # path -> class

    def path(self, module):
        """None: it has none."""
        return self._paths.get(module)

    def name(self, root):
        """Gives paths to an outermost module and to those in it, if it has none. Returns its own, "" for the only model of a program."""
        if self.path(root) is None:
            has_parameters = next(root.parameters(), None) is not None
            prefix = self._prefix(root, has_parameters)
            if has_parameters:
                self._roots.append((weakref.ref(root), prefix))
            for path, inner in root.named_modules():
                path = names.encodable(".".join(word for word in (prefix, path) if word))
                self._paths.set(inner, path)
                self.types[path] = type(inner).__name__
        return self.path(root)

    def _prefix(self, root, has_parameters):
        """One that no model has which is still there: `D`, or `D_2`; a class where no name is known."""
        self._roots = [held for held in self._roots if held[0]() is not None]
        taken = {path for _, path in self._roots}
        found = self._names.of(root, bool(taken)) if self._names and has_parameters else ""
        if not found and taken:
            found = type(root).__name__
        if not has_parameters or found not in taken:
            return found
        return next(numbered for number in range(2, len(taken) + 3) if (numbered := f"{found}_{number}") not in taken)


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
