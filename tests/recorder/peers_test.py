"""Ranks that run beside each other: what one sends arrives, and who is needed is started."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

RECORDER = str(pathlib.Path(__file__).resolve().parents[2] / "capture/recorder")
BEGIN = """
    import os, sys, time
    sys.path.insert(0, os.environ["RECORDER"])
    from metaprof_recorder.ranks import peers
    from metaprof_recorder.process.output import Output
    rank = int(os.environ["RANK"])
    output = Output(os.environ["METAPROF_RECORD"])
    peers.begin(os.environ["METAPROF_RECORD_RANKS"], rank, 4)
"""


class PeersTest(unittest.TestCase):
    def run_rank(self, rank, text, ranks_besides=""):
        """(its exit status, what it printed, the rows that all ranks of the report have written)."""
        with tempfile.TemporaryDirectory() as folder:
            record, ranks, program = (pathlib.Path(folder, name) for name in ("record", "ranks", "program.py"))
            record.mkdir()
            program.write_text(textwrap.dedent(BEGIN) + textwrap.dedent(text))
            environment = os.environ | {"RECORDER": RECORDER, "RANK": str(rank), "LOCAL_WORLD_SIZE": "2", "METAPROF_RECORD": str(record), "METAPROF_RECORD_RANKS": str(ranks),
                                        "METAPROF_RECORD_WITH": ranks_besides}
            result = subprocess.run([sys.executable, program], capture_output=True, text=True, env=environment, timeout=60)
            rows = [json.loads(line) for file in sorted(record.glob("*.jsonl")) for line in file.read_text().splitlines()]
            return result, rows

    def test_who_sends_is_started(self):
        result, rows = self.run_rank(1, """
            if rank == 0:
                peers.send(1, 7, b"first")
                peers.send(1, 7, None)
                peers.send(1, 7, b"third")
                time.sleep(60)  # it ends with the other one
            else:
                numbers = [peers.next_from(0, 7) for _ in range(3)]
                print(numbers, [peers.receive(0, 7, number) for number in reversed(numbers)])
                peers.wait(output)
        """)
        self.assertEqual(result.stdout, "[0, 1, 2] [b'third', None, b'first']\n", result.stderr)
        self.assertEqual([row["text"] for row in rows], ["rank 0 ran beside rank 1 for what it sends: it is not in this report"])

    def test_it_has_its_own_rank_and_device(self):
        result, _ = self.run_rank(0, """
            if rank == 3:
                peers.send(0, 0, f"{os.environ['RANK']} {os.environ['LOCAL_RANK']}".encode())
            else:
                print(peers.receive(3, 0, 0))
        """)
        self.assertEqual(result.stdout, "b'3 1'\n", result.stderr)

    def test_messages_go_through_several_ranks(self):
        result, _ = self.run_rank(3, """
            got = b"" if rank == 0 else peers.receive(rank - 1, 0, 0)
            if rank == 3:
                print(got)
            else:
                peers.send(rank + 1, 0, got + str(rank).encode())
        """)
        self.assertEqual(result.stdout, "b'012'\n", result.stderr)

    def test_a_rank_that_ends_without_sending_is_not_waited_for(self):
        begin = time.monotonic()
        result, _ = self.run_rank(0, "print(peers.receive(1, 0, 0) if rank == 0 else '')")
        self.assertEqual(result.stdout, "None\n", result.stderr)
        self.assertLess(time.monotonic() - begin, 30)

    def test_ranks_that_are_named_run_to_their_end(self):
        result, rows = self.run_rank(1, "output.write('seen', rank=rank); peers.wait(output)", "2,3")
        self.assertEqual(sorted(row["rank"] for row in rows), [1, 2, 3], result.stderr)

    def test_different_ranks_are_those_that_are_sent_to(self):
        result, rows = self.run_rank(0, """
            output.write("seen", rank=rank)
            if rank < 2:
                peers.send(rank + 1, 0, b"x")
            peers.wait(output)
        """, "different")
        self.assertEqual(sorted(row["rank"] for row in rows), [0, 1, 2], result.stderr)

    def test_without_messages_the_last_rank_is_different(self):
        result, rows = self.run_rank(0, "output.write('seen', rank=rank); peers.wait(output)", "different")
        self.assertEqual(sorted(row["rank"] for row in rows), [0, 3], result.stderr)

    def test_a_rank_that_fails_is_shown(self):
        result, rows = self.run_rank(0, """
            if rank == 2:
                sys.exit("out of luck")
            peers.wait(output)
        """, "2")
        self.assertEqual([(row["row"], row["rank"], row["status"]) for row in rows], [("rank_ended", 2, 1)])
        self.assertEqual(result.stderr, "metaprof: rank 2 failed; the end of what it printed:\nout of luck\n")


if __name__ == "__main__":
    unittest.main()
