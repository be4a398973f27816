"""What a program with several models calls each of them: the variable, attribute or key that holds it."""
import sys
import types

from metaprof_recorder.program.variables import attributes_of, variables_of

MOST = 64  # elements of a list or dictionary that are looked at


class ModelNames:
    """`is_end` tells whether a function and those that called it are none of the program's."""

    def __init__(self, torch, sources, is_end=lambda frame: False):
        self._module, self._sources, self._is_end = torch.nn.Module, sources, is_end

    def of(self, root, beside_others=False):
        """The name of a model that is about to run; "": the program trains no other one, or no name is known. `beside_others`: others have run."""
        models = self._models(root)
        name = next((name for name, module in models.items() if module is root), None)
        if name is not None:
            return name if beside_others or len(models) > 1 else ""
        around, path = next(((module, path) for module in models.values() for path, part in module.named_modules() if part is root), (None, ""))
        return path if around is not None and (len(models) > 1 or self._has_several(around)) else ""

    def _models(self, root):
        """{name: module}: those that are trained, and the one that runs, where they are no parts of others."""
        held = self._held(sys._getframe(2))
        parts = {id(part) for module in held.values() for part in list(module.modules())[1:]}
        return {name: module for name, module in held.items()
                if id(module) not in parts and (module is root or any(parameter.requires_grad for parameter in module.parameters()))}

    @staticmethod
    def _has_several(module):
        """A LightningModule with a generator and a discriminator."""
        return sum(next(part.parameters(), None) is not None for part in module.children()) > 1

    def _held(self, frame):
        """{name: module that has parameters} of running functions, the innermost first, and of their files."""
        found, seen = {}, set()
        while frame is not None and not self._is_end(frame):
            kind = self._sources.kind(frame.f_code.co_filename)
            if kind != 2:
                self._add_all(variables_of(frame), found, seen)
            if kind == 0:
                self._add_all(list(frame.f_globals.items()), found, seen)
            frame = frame.f_back
        return found

    def _add_all(self, variables, found, seen):
        for name, value in variables:
            self._add(name, value, found, seen)
            for key, part in self._parts(name, value):
                self._add(key, part, found, seen)

    def _add(self, name, value, found, seen):
        if not self._is_module(value) or id(value) in seen:
            return
        seen.add(id(value))
        try:
            has_parameters = next(value.parameters(), None) is not None
        except Exception:  # noqa: BLE001 - its constructor has not made it a module yet
            return
        if has_parameters:
            found.setdefault(name, value)

    def _parts(self, name, value):
        """Elements, and attributes of what is no module."""
        if self._is_module(value) or issubclass(type(value), (type, types.ModuleType, types.FunctionType)):
            return []
        if type(value) is dict:
            return [(f"{name}.{key}", part) for key, part in list(value.items())[:MOST]]
        if type(value) in (list, tuple):
            return [(f"{name}.{i}", part) for i, part in enumerate(value[:MOST])]
        attributes = attributes_of(value) or {}
        return [(key, part) for key, part in list(attributes.items()) if self._is_module(part)]

    def _is_module(self, value):
        """A proxy is asked nothing: its class would be what it stands for."""
        return issubclass(type(value), self._module)
