"""The lines of a captured program, once they are in their order."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "capture/recorder"))
from metaprof_recorder.text.program_lines import without_gone_sources  # noqa: E402


class Sources(unittest.TestCase):
    def test_a_dtype_whose_tensor_has_been_dropped_has_no_source(self):
        # dtype = x.dtype; y = x + b; del x; y.to(dtype)
        lines = ["%2: f32[4] = aten::add.Tensor(%0, %1) in m9 drop %1, %0", "%3: f32[4] = aten::to.dtype(%2, f32) in m9 dtype_of %0 drop %2"]
        self.assertEqual(list(without_gone_sources(lines)), [lines[0], "%3: f32[4] = aten::to.dtype(%2, f32) in m9 drop %2"])

    def test_one_that_goes_with_the_call_has(self):
        lines = ["%3: f32[4] = aten::to.dtype(%2, f32) dtype_of %2 drop %2", "%4: f32[4] = aten::to.dtype(%3, f32) dtype_of %3"]
        self.assertEqual(list(without_gone_sources(lines)), lines)


if __name__ == "__main__":
    unittest.main()
