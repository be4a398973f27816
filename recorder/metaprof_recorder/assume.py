"""What the program's data are taken to be where sizes follow from them: `--assume`.

A device without data answers zero. With an assumption the answer is the user's:

    even             what chooses among E classes (topk, argmax and the like: a mixture of experts) takes each equally often
    FILE:LINE=N      at this line of the program a mask has N elements set, or the number that is read is N
    FILE:LINE=N/M    the same share of the mask's elements

While the program runs with an assumption every call of torch goes through a mode of the recorder's. It notes what is known of a
tensor: that its elements are E classes, that a share of them is set, or, of small ones, their values. What follows from values
is computed on the host.
"""
import ctypes
import struct
from fractions import Fraction

from metaprof_recorder import answers
from metaprof_recorder.answers import even_counts, rules_of
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakTensorKeyDictionary

MOST_ELEMENTS = 4096  # of tensors whose values are kept
COUNTS = {"nonzero", "where", "argwhere", "masked_select", "__getitem__", "__setitem__", "index_put_"}
COPIES = {"cpu", "to", "tolist", "numpy"}  # of a mask, to the host
NUMBERS = {"item", "__int__", "__index__", "__bool__", "__float__", "tolist"}
CHOICES = {"topk": 1, "argmax": None, "max": 1, "multinomial": None, "sort": 1, "argsort": None}  # where the classes are in the result
SAME = {"permute", "transpose", "t", "view", "reshape", "flatten", "squeeze", "unsqueeze", "contiguous", "clone", "detach", "to", "long", "int",
        "bool", "float", "type", "expand", "__getitem__", "ravel", "movedim", "swapaxes", "half", "bfloat16", "type_as"}
PACKING = {"torch.int64": "q", "torch.int32": "i", "torch.int16": "h", "torch.int8": "b", "torch.uint8": "B", "torch.bool": "?", "torch.float32": "f", "torch.float64": "d"}


class Assumptions(TorchFunctionMode):
    """`answer(bytes)`: the next read of this thread gives these. `memory`: an agreement.Values, by which they stand in a tensor."""

    def __init__(self, torch, text, sources, answer, memory):
        super().__init__()
        self._torch, self._sources, self._answer, self._memory = torch, sources, answer, memory
        self.even, self.rules = rules_of(text)
        self._classes, self._shares, self._values = WeakTensorKeyDictionary(), WeakTensorKeyDictionary(), WeakTensorKeyDictionary()

    def __torch_function__(self, function, types, arguments=(), options=None):
        options = options or {}
        name = getattr(function, "__name__", "")
        self._prepare(name, arguments)
        try:
            result = function(*arguments, **options)
        finally:
            self._answer(None)
        if self.even:
            self._learn(name, function, arguments, options, result)
        return result

    # ---- before a call: what it will read

    def _prepare(self, name, arguments):
        self._memory.forget_freed()
        if name in COUNTS and arguments:
            mask = self._mask(name, arguments)
            count = None if mask is None else self._count(mask)
            if count is not None:
                self._answer(struct.pack("q", count))
        elif not arguments or not getattr(arguments[0], "is_cuda", False):
            return
        elif name in COPIES and arguments[0].dtype == self._torch.bool and arguments[0].dim():
            rule, elements = self._rule(), arguments[0].numel()
            if rule is not None:
                self._answer(answers.mask(rule.count(elements), elements))
        elif name in NUMBERS:
            rule = self._rule()
            packing = PACKING.get(str(arguments[0].dtype))
            if rule is not None and packing:
                self._answer(struct.pack(packing, float(rule.answer) if packing in "fd" else int(rule.answer)))

    def _mask(self, name, arguments):
        """The tensor whose nonzero elements are counted."""
        if name == "where" and len(arguments) > 1:
            return None
        if name in ("nonzero", "where", "argwhere"):
            found = arguments[0]
        elif len(arguments) > 1:
            index = arguments[1]
            found = next((part for part in (index if isinstance(index, (tuple, list)) else (index,)) if getattr(part, "dtype", None) == self._torch.bool), None)
        else:
            found = None
        return found if isinstance(found, self._torch.Tensor) and found.is_cuda else None

    def _count(self, mask):
        rule = self._rule()
        if rule is not None:
            return rule.count(mask.numel())
        if not self.even:
            return None
        if mask in self._values:
            return int(self._values[mask].count_nonzero())
        share = self._shares.get(mask)
        return None if share is None else round(share * mask.numel())

    def _rule(self):
        if not self.rules:
            return None
        return answers.rule_for(self._sources.lines(), self.rules)

    # ---- after a call: what is known of its result

    def _learn(self, name, function, arguments, options, result):
        tensors = [value for value in (*arguments, *options.values()) if isinstance(value, self._torch.Tensor)]
        if not tensors or not any(tensor.is_cuda for tensor in tensors):
            return
        with self._torch._C.DisableTorchFunction():
            self._learn_choice(name, arguments, options, result)
            first = tensors[0]
            if not isinstance(result, self._torch.Tensor):
                return
            if all(tensor in self._values or not tensor.is_cuda for tensor in tensors):
                self._learn_value(name, function, arguments, options, result)
            elif first in self._classes:
                self._learn_of_classes(name, first, arguments, options, result)
            elif first in self._shares:
                self._learn_of_share(name, first, result)
            if name == "scatter_" and len(tensors) > 1 and tensors[1] in self._classes:
                self._shares[result] = Fraction(tensors[1].numel(), result.numel())

    def _learn_choice(self, name, arguments, options, result):
        if name not in CHOICES or not isinstance(arguments[0], self._torch.Tensor):
            return
        chosen = result if CHOICES[name] is None else result[CHOICES[name]] if isinstance(result, tuple) else None
        if isinstance(chosen, self._torch.Tensor) and chosen.dtype == self._torch.int64 and arguments[0].dim() and arguments[0] not in self._classes:
            dim = options.get("dim", -1 if name != "argmax" or len(arguments) < 2 else arguments[1])
            self._classes[chosen] = arguments[0].shape[dim if isinstance(dim, int) else -1]

    def _learn_of_classes(self, name, first, arguments, options, result):
        classes = self._classes[first]
        if name in SAME:
            self._classes[result] = classes
        elif name in ("eq", "__eq__"):
            self._shares[result] = Fraction(1, classes)
        elif name == "one_hot":
            self._shares[result] = Fraction(1, result.shape[-1])
        elif name in ("bincount", "histc") and result.dim() == 1:
            self._keep(result, self._torch.tensor(even_counts(first.numel(), result.numel()), dtype=result.dtype))

    def _learn_of_share(self, name, first, result):
        share = self._shares[first]
        if name in SAME:
            self._shares[result] = share
        elif name == "any" and result.numel():
            self._shares[result] = min(Fraction(1), share * (first.numel() // result.numel()))
        elif name == "sum" and result.numel() <= MOST_ELEMENTS:
            counts = even_counts(round(share * first.numel()), result.numel())
            self._keep(result, self._torch.tensor(counts, dtype=result.dtype).reshape(result.shape))

    def _learn_value(self, name, function, arguments, options, result):
        """Of a call whose tensors are all known: its result on the host."""
        if result.numel() > MOST_ELEMENTS or name.endswith("_"):
            return

        def host(value):
            return self._values.get(value, value) if isinstance(value, self._torch.Tensor) else "cpu" if str(value).startswith("cuda") else value
        try:
            self._keep(result, function(*(host(value) for value in arguments), **{key: host(value) for key, value in options.items()}))
        except (RuntimeError, TypeError, ValueError, IndexError):
            pass  # nothing is known of it then

    def _keep(self, tensor, value):
        if not isinstance(value, self._torch.Tensor) or value.shape != tensor.shape:
            return
        self._values[tensor] = value
        if tensor.is_cuda and tensor.is_contiguous() and tensor.numel():
            self._memory.write(tensor, ctypes.string_at(value.contiguous().data_ptr(), value.numel() * value.element_size()))
