"""Ranks of one job that run without a launcher (`--world-size`): what they are told of the others, and that they take what they take in a whole job.

METAPROF_TORCH_PYTHON is a Python with PyTorch; without it the tests are skipped, and say so.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from programs import METAPROF, ROOT  # noqa: E402

PYTHON = os.environ.get("METAPROF_TORCH_PYTHON")
DATA = ROOT / "tests/data/ranks"


def run(options, program, words=(), **environment):
    """(the process, its report)."""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder, "run.json")
        result = subprocess.run([METAPROF, "run", "--json", report, *options, "--", PYTHON, *words, DATA / program], stdin=subprocess.DEVNULL, capture_output=True,
                                text=True, env=os.environ | environment)
        return result, json.loads(report.read_text()) if report.exists() else None


def phases(report):
    """By rank. Not the bytes that were requested: what waits for a communication library is not allocated, but still requested."""
    members = "phase", "step", "micro", "allocated_bytes", "reserved_bytes"
    return {rank["rank"]: [[row.get(name) for name in members] for row in rank["phases"]] for rank in report["ranks"]}


@unittest.skipUnless(PYTHON, "METAPROF_TORCH_PYTHON names no Python with PyTorch")
class RanksTest(unittest.TestCase):
    def whole_job(self, program, ranks=4):
        result, report = run(["--gpus", str(ranks)], program, ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)])
        self.assertEqual(result.returncode, 0, result.stderr)
        return phases(report)

    def test_collectives_give_what_every_rank_would(self):
        result, report = run(["--world-size", "4", "--gpus", "4", "--rank", "1"], "collectives.py")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("all as expected", result.stdout)
        sources = {read["source"] for read in report["ranks"][0]["data_reads"]}
        self.assertLessEqual(sources, {"computed", "assumed"}, report["ranks"][0]["data_reads"])
        self.assertIn("assumed", sources)

    def test_ranks_of_a_whole_job_get_the_objects_that_are_sent(self):
        result, _ = run(["--gpus", "2"], "objects.py", ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"])
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("all as sent", result.stdout)

    def test_a_rank_shares_symmetric_memory_with_itself(self):
        result, report = run(["--world-size", "8", "--gpus", "8", "--rank", "3"], "symmetric.py")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("as in the whole job", result.stdout)
        self.assertEqual(report["ranks"][0]["outside_allocator"]["libraries"], 2 << 20)  # of 256 KiB that the ranks share

    def test_one_rank_of_ddp_takes_what_it_takes_in_the_whole_job(self):
        result, report = run(["--world-size", "4", "--gpus", "4", "--rank", "2"], "ddp.py")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(phases(report)[2], self.whole_job("ddp.py")[2])

    def test_what_dtensors_do_within_an_operator_is_saved(self):
        for program in ("context.py", "fsdp.py", "heads.py", "loss.py"):
            with self.subTest(program), tempfile.TemporaryDirectory() as folder:
                result, _ = run(["--world-size", "4", "--gpus", "4", "--save", f"{folder}/step.mp"], program)
                self.assertEqual(result.returncode, 0, result.stderr)
                found = subprocess.run([METAPROF, "check", f"{folder}/step.mp", "--json", "-"], capture_output=True, text=True)
                row = json.loads(found.stdout)["summary"][0]
                self.assertEqual(row["exact_phases"], row["phases"], found.stdout)

    def test_each_rank_has_flops_and_time(self):
        result, report = run(["--world-size", "4", "--gpus", "4", "--rank", "0,3", "--costs"], "pipeline.py")
        self.assertEqual(result.returncode, 0, result.stderr)
        first, last = (rank["flops"]["forward"] for rank in report["ranks"])
        # four micro-batches of 16 rows; the first stage's shape is also inferred, with one of them
        self.assertEqual((first, last), (2 * 5 * 16 * 256 * 512, 2 * 5 * 16 * 1024 * 1280))
        self.assertGreater(report["ranks"][1]["expected_seconds"]["backward"], 0)

    def test_stages_of_a_pipeline_are_found(self):
        result, report = run(["--world-size", "4", "--gpus", "4", "--ranks", "all-different"], "pipeline.py")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(phases(report), self.whole_job("pipeline.py"))
        self.assertIn("what follows is of rank 3", result.stdout, "the largest stage is the last")

    def test_a_stage_alone_learns_its_sizes_from_those_before_it(self):
        result, report = run(["--world-size", "4", "--gpus", "4", "--rank", "2"], "pipeline.py")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(list(phases(report)), [2])
        self.assertIn("rank 1 ran beside rank 2 for what it sends: it is not in this report", report["notes"])

    def test_ranks_that_are_named(self):
        result, report = run(["--world-size", "4", "--gpus", "4", "--rank", "1,3"], "pipeline.py")
        self.assertEqual(result.returncode, 0, result.stderr)
        whole = self.whole_job("pipeline.py")
        self.assertEqual(phases(report), {rank: whole[rank] for rank in (1, 3)})

    def test_without_messages_the_last_rank_is_the_other_one(self):
        result, report = run(["--world-size", "64", "--gpus", "8", "--ranks", "all-different"], "ddp.py")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(list(phases(report)), [0, 63])

    def test_a_rank_that_fails_is_shown(self):
        result, report = run(["--world-size", "4", "--gpus", "4", "--rank", "0,3"], "pipeline.py", FAILS="3")
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertIn("metaprof: rank 3 failed; the end of what it printed:\nthis rank fails\n", result.stderr)
        self.assertEqual(report["ended_by"], "rank 3, with exit status 1")


if __name__ == "__main__":
    unittest.main()
