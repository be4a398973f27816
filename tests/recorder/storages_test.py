"""Which version a storage holds: what is known of it ends with it, also where its address is used again."""
import pathlib
import sys
import types
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "capture/recorder"))
from metaprof_recorder.values.storages import Storages  # noqa: E402


class Storage:
    def __init__(self, address, memory):
        self._cdata, self.memory = address, memory


def version(size=8, value=None, depth=0):
    return types.SimpleNamespace(call=None, place=0, size=size, value=value, depth=depth)


def storages():
    base = types.SimpleNamespace(untyped_storage=lambda tensor: tensor.storage)
    torch = types.SimpleNamespace(_C=types.SimpleNamespace(TensorBase=base))
    return Storages(torch, types.SimpleNamespace(most_bytes=0, deepest=16, fits=lambda count: True), lambda storage: storage.memory)


def tensor(address, memory):
    return types.SimpleNamespace(storage=Storage(address, memory))


class StoragesTest(unittest.TestCase):
    def test_a_version_ends_with_its_storage(self):
        known, x, what = storages(), tensor(1, 0x100), version()
        known.put(x, what)
        self.assertIs(known.version(1), what)
        self.assertEqual(known.at(0x104), (what, 4))
        self.assertIsNone(known.at(0x108))
        del x
        self.assertIsNone(known.version(1))
        self.assertIsNone(known.at(0x104))

    def test_an_address_that_is_used_again_is_of_the_new_storage(self):
        known, old, what = storages(), tensor(1, 0x100), version()
        known.put(old, version())
        del old
        new = tensor(1, 0x200)
        known.put(new, what)
        self.assertIs(known.version(1), what)
        self.assertIsNone(known.at(0x100))
        self.assertEqual(known.at(0x200), (what, 0))

    def test_what_is_forgotten_is_not_found_when_its_storage_ends(self):
        known, x = storages(), tensor(1, 0x100)
        known.put(x, version())
        known.put(x, None)
        self.assertIsNone(known.version(1))
        del x
        self.assertIsNone(known.at(0x100))


if __name__ == "__main__":
    unittest.main()
