"""Which phase of which step what a program does belongs to."""
import contextlib
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "capture/recorder"))
from metaprof_recorder.phases.activities import Activity  # noqa: E402
from metaprof_recorder.phases.training_step import Phases, Segment  # noqa: E402


class Memory:
    """Bytes that are allocated, and the most since the last segment."""

    def __init__(self):
        self.current = self.peak = self.cut = 0

    def take(self, count):
        self.current += count
        self.peak = max(self.peak, self.current)

    def give(self, count):
        self.current -= count

    def segment(self):
        self.cut += 1
        found = Segment(self.cut, {0: {"allocated_bytes": {"current": self.current, "peak": self.peak}}})
        self.peak = self.current
        return found


class PhasesTest(unittest.TestCase):
    def setUp(self):
        self.memory = Memory()
        self.rows = []
        self.phases = Phases(self.memory.segment, self.rows.append)

    def shown(self):
        numbers = [row.devices[0]["allocated_bytes"] for row in self.rows]
        return [(row.phase, row.step, n["current"], n["peak"]) for row, n in zip(self.rows, numbers)]

    def names(self):
        return [(row.phase, row.step) for row in self.rows]

    def train(self, steps, micro=1):
        for _ in range(steps):
            for _ in range(micro):
                self.phases.forward_begins(True)
                self.memory.take(10)
                self.phases.backward_begins()
                self.memory.give(10)
                self.phases.backward_ends()
            self.phases.optimizer_begins()
            self.phases.optimizer_ends()
            self.phases.zero_grad_begins()
            self.phases.zero_grad_ends()

    def test_a_step_is_forward_backward_optimizer_zero_grad(self):
        self.memory.take(100)
        self.train(2)
        self.phases.finish()
        step = ["forward", "backward", "optimizer", "zero_grad"]
        self.assertEqual(self.names(), [("setup", 0)] + [(phase, n) for n in (0, 1) for phase in step])
        self.assertEqual(self.shown()[:3], [("setup", 0, 100, 100), ("forward", 0, 110, 110), ("backward", 0, 100, 110)])

    def test_when_the_end_frees_what_was_there_before_the_phase_it_is_of_no_phase(self):
        self.memory.take(100)
        self.phases.forward_begins(False)
        self.memory.take(10)
        self.phases.forward_ends()
        self.memory.give(110)
        self.phases.finish()
        self.assertEqual(self.shown(), [("setup", 0, 100, 100), ("forward", 0, 110, 110)])

    def test_what_the_last_forward_frees_of_its_own_is_its_end(self):
        self.memory.take(100)
        self.phases.forward_begins(False)
        self.memory.take(10)
        self.phases.forward_ends()
        self.memory.give(7)
        self.phases.finish()
        self.assertEqual(self.shown(), [("setup", 0, 100, 100), ("forward", 0, 103, 110)])

    def test_a_loss_after_the_last_call_is_of_its_forward(self):
        self.phases.forward_begins(False)
        self.phases.forward_ends()
        self.memory.take(10)
        self.memory.give(10)
        self.phases.finish()
        self.assertEqual(self.shown(), [("setup", 0, 0, 0), ("forward", 0, 0, 10)])

    def test_accumulation_has_a_forward_and_a_backward_for_each_micro_batch(self):
        self.train(1, micro=2)
        self.phases.finish()
        self.assertEqual(self.names(), [("setup", 0)] + [("forward", 0), ("backward", 0)] * 2 + [("optimizer", 0), ("zero_grad", 0)])

    def test_what_an_optimizer_takes_when_it_is_built_is_not_setup(self):
        self.memory.take(100)
        self.phases.constructor_begins()
        self.memory.take(7)
        self.phases.constructor_ends()
        self.phases.forward_begins(True)
        self.phases.backward_begins()
        self.assertEqual(self.shown(), [("setup", 0, 100, 100), ("forward", 0, 107, 107)])

    def test_setup_goes_on_after_a_constructor_if_more_is_taken(self):
        self.phases.constructor_begins()
        self.phases.constructor_ends()
        self.memory.take(100)
        self.phases.forward_begins(True)
        self.assertEqual(self.shown(), [("setup", 0, 100, 100)])

    def test_clipping_before_the_optimizer_is_its_own(self):
        self.phases.forward_begins(True)
        self.phases.backward_begins()
        self.phases.backward_ends()
        self.memory.take(5)  # norms of gradients
        self.memory.give(5)
        self.phases.optimizer_begins()
        self.phases.optimizer_ends()
        self.phases.finish()
        self.assertEqual(self.shown()[2:], [("backward", 0, 0, 0), ("optimizer", 0, 0, 5)])

    def test_between_optimizer_and_zero_grad_is_the_optimizer(self):
        self.train(1)
        self.rows.clear()
        self.phases.forward_begins(True)
        self.phases.backward_begins()
        self.phases.backward_ends()
        self.phases.optimizer_begins()
        self.phases.optimizer_ends()
        self.memory.take(3)
        self.phases.zero_grad_begins()
        self.assertEqual(self.shown()[-1], ("optimizer", 1, 3, 3))

    def test_between_optimizer_and_forward_is_the_next_forward(self):
        self.phases.forward_begins(True)
        self.phases.backward_begins()
        self.phases.backward_ends()
        self.phases.optimizer_begins()
        self.phases.optimizer_ends()
        self.memory.take(3)  # the next batch
        self.phases.forward_begins(True)
        self.phases.backward_begins()
        self.assertEqual(self.shown()[-2:], [("optimizer", 0, 0, 0), ("forward", 1, 3, 3)])

    def test_two_forwards_before_a_backward_are_one_phase(self):
        self.phases.constructor_begins()
        self.phases.constructor_ends()
        self.phases.forward_begins(True)
        self.memory.take(1)
        self.phases.forward_begins(True)
        self.memory.take(2)
        self.phases.backward_begins()
        self.assertEqual(self.shown(), [("setup", 0, 0, 0), ("forward", 0, 3, 3)])

    def test_two_backwards_are_one_phase(self):
        self.phases.forward_begins(True)
        for _ in range(2):
            self.phases.backward_begins()
            self.phases.backward_ends()
        self.phases.finish()
        self.assertEqual(self.names(), [("setup", 0), ("forward", 0), ("backward", 0)])

    def test_inference_has_a_step_for_each_forward(self):
        for _ in range(3):
            self.phases.forward_begins(False)
        self.phases.finish()
        self.assertEqual(self.names(), [("setup", 0), ("forward", 0), ("forward", 1), ("forward", 2)])

    def test_forwards_with_gradients_that_nobody_uses_are_steps_too(self):
        for _ in range(3):
            self.phases.forward_begins(True)
        self.phases.finish()
        self.assertEqual(self.names(), [("setup", 0), ("forward", 0), ("forward", 1), ("forward", 2)])

    def test_zero_grad_before_the_forward_belongs_to_the_step_before(self):
        for _ in range(2):
            self.phases.zero_grad_begins()
            self.phases.zero_grad_ends()
            self.phases.forward_begins(True)
            self.phases.backward_begins()
            self.phases.backward_ends()
            self.phases.optimizer_begins()
            self.phases.optimizer_ends()
        self.phases.finish()
        step = ["forward", "backward", "optimizer"]
        self.assertEqual(self.names(), [("setup", 0)] + [(p, 0) for p in step] + [("zero_grad", 0)] + [(p, 1) for p in step])

    def test_a_loss_of_functions_only_has_a_forward_after_the_optimizer_is_built(self):
        self.memory.take(8)
        self.phases.constructor_begins()
        self.phases.constructor_ends()
        self.memory.take(2)
        self.phases.backward_begins()
        self.phases.backward_ends()
        self.phases.finish()
        self.assertEqual(self.names()[0], ("setup", 0))
        self.assertEqual(self.names()[-1], ("backward", 0))

    def test_zero_grad_may_stand_between_forward_and_backward(self):
        self.phases.constructor_begins()
        self.phases.constructor_ends()
        for loss_after in 0, 5:
            self.phases.forward_begins(True)
            self.memory.take(10)
            self.phases.forward_ends()
            self.phases.zero_grad_begins()
            self.phases.zero_grad_ends()
            self.memory.take(loss_after)
            self.phases.backward_begins()
            self.memory.give(10 + loss_after)
            self.phases.backward_ends()
            self.phases.optimizer_begins()
            self.phases.optimizer_ends()
        self.phases.finish()
        self.assertEqual([phase for phase, _ in self.names()], ["setup", "forward", "zero_grad", "backward", "optimizer",
                                                                "forward", "zero_grad", "forward", "backward", "optimizer"])

    def test_what_follows_the_last_step_is_shown_if_it_takes_memory(self):
        self.train(1)
        self.memory.take(50)
        self.phases.finish()
        self.assertEqual(self.shown()[-1], ("after", 0, 50, 50))

    def test_what_only_frees_after_the_last_step_is_not_shown(self):
        self.memory.take(50)
        self.train(1)
        self.memory.give(50)
        self.phases.finish()
        self.assertEqual(self.names()[-1], ("zero_grad", 0))

    def test_a_phase_in_which_the_program_ends_is_shown(self):
        self.phases.forward_begins(True)
        self.memory.take(9)
        self.phases.finish()
        self.assertEqual(self.shown()[-1], ("forward", 0, 9, 9))

    def test_calls_without_a_backward_that_each_leave_memory(self):
        self.train(1)
        for _ in range(6):
            for module in ("Net", "Loss"):  # of a validation without no_grad: the loss is a module, too
                self.phases.forward_begins(True, module)
                self.memory.take(50)
                self.memory.give(20)
                self.phases.forward_ends()
        self.phases.finish()
        self.assertEqual(self.rows[-1].growth, {0: ("Net", 6, 60)})
        self.assertEqual([row.growth for row in self.rows[:-1]], [{}] * (len(self.rows) - 1))

    def test_calls_that_leave_nothing(self):
        self.train(1)
        for _ in range(6):
            self.phases.forward_begins(True)
            self.memory.take(50)
            self.memory.give(50)
            self.phases.forward_ends()
        self.phases.finish()
        self.assertEqual(self.rows[-1].growth, {})

    def test_what_follows_an_out_of_memory_is_another_try(self):
        for _ in range(2):
            self.phases.forward_begins(True)
            self.memory.take(50)
            self.phases.memory_ran_out()
            self.memory.give(50)
        self.train(1)
        self.phases.finish()
        self.assertEqual(self.names(), [("setup", 0)] + [("forward", 0)] * 3 + [("backward", 0), ("optimizer", 0), ("zero_grad", 0)])

    def evaluate(self, count, length=0):
        for _ in range(count):
            self.phases.forward_begins(False, of_trained=True)
            self.memory.take(5)
            self.memory.give(5)
            self.phases.forward_ends(length)

    def named(self):
        return [(row.name, row.phase, row.step) for row in self.rows]

    def test_forwards_without_gradients_of_what_is_trained_are_an_evaluation(self):
        self.train(1)
        self.phases.activities.mode(False)
        self.memory.take(3)  # an input
        self.evaluate(3)
        self.phases.activities.mode(True)
        self.memory.give(3)
        self.train(1)
        self.phases.finish()
        self.assertEqual(self.named()[5:8], [("evaluate", "forward", 1), ("forward", "forward", 1), ("backward", "backward", 1)])
        self.assertEqual(self.shown()[5][3], 8)

    def test_an_evaluation_without_its_modes_ends_where_training_goes_on(self):
        self.train(1)
        self.evaluate(2)
        self.train(1)
        self.phases.finish()
        self.assertEqual(self.named()[5:7], [("evaluate", "forward", 1), ("forward", "forward", 1)])

    def test_a_teacher_is_no_evaluation(self):
        self.train(1)
        self.phases.activities.mode(False)  # the teacher's
        for _ in range(2):
            self.phases.forward_begins(False)
            self.memory.take(5)
            self.phases.forward_ends()
            self.train(1)
        self.phases.finish()
        self.assertEqual({row.name for row in self.rows}, {"setup", "forward", "backward", "optimizer", "zero_grad"})

    def test_forwards_by_one_position_and_the_one_before_them_are_a_generation(self):
        self.train(1)
        self.evaluate(2, length=9)
        self.evaluate(4, length=1)
        self.evaluate(1, length=9)
        self.phases.finish()
        self.assertEqual([name for name, _, step in self.named() if step == 1], ["evaluate", "generate", "evaluate"])

    def test_batches_of_one_number_each_are_no_generation(self):
        self.train(1)
        self.evaluate(5, length=1)
        self.phases.finish()
        self.assertEqual(self.named()[-1], ("evaluate", "forward", 1))

    def within(self, name, count, holds_steps=False):
        activity = self.phases.activities.begins(name, holds_steps)
        self.memory.take(count)
        self.memory.give(count)
        self.phases.activities.ends(activity)

    def test_what_a_program_does_besides_has_a_row_where_it_takes_memory(self):
        self.memory.take(100)
        self.within("load", 50)
        self.within("save", 0)
        self.memory.take(10)
        self.train(1)
        self.within("save", 30)
        self.phases.finish()
        self.assertEqual(self.named(), [("setup", "setup", 0), ("load", "setup", 0), ("setup", "setup", 0), ("forward", "forward", 0), ("backward", "backward", 0),
                                        ("optimizer", "optimizer", 0), ("zero_grad", "zero_grad", 0), ("save", "after", 0)])
        self.assertEqual([n for *_, n in self.shown()][:3], [100, 150, 110])

    def test_what_was_begun_before_the_device_was_used_has_a_row(self):
        activity = Activity("load")
        self.phases.activities.go_on([activity])
        self.memory.take(50)
        self.phases.activities.ends(activity)
        self.memory.take(10)
        self.train(1)
        self.assertEqual([name for name, *_ in self.named()][:3], ["load", "setup", "forward"])
        self.assertEqual([n for *_, n in self.shown()][:2], [50, 60])

    def test_each_cut_is_of_one_row(self):
        self.memory.take(100)
        self.within("load", 50)
        self.train(1)
        self.within("save", 0)
        self.within("load", 7)
        self.evaluate(3)
        self.train(1)
        self.phases.finish()
        for before, after in zip(self.rows, self.rows[1:]):
            self.assertEqual(after.first, before.last + 1)

    def test_a_range_with_a_step_of_the_training_in_it_has_no_row(self):
        activities = self.phases.activities
        for holds_steps, expected in ((False, 0), (True, 1)):
            activity = activities.begins("epoch", holds_steps)
            self.train(1)
            activities.ends(activity)
            self.assertEqual(any(row.name == "epoch" for row in self.rows), bool(expected))

    def test_an_exception_at_any_line_breaks_nothing_that_follows(self):
        """A handler of signals may raise one: line after line of what two steps run."""
        class Alarm(Exception):
            pass

        calls = [("forward_begins", True), ("forward_ends",), ("backward_begins",), ("backward_ends",), ("optimizer_begins",), ("optimizer_ends",),
                 ("zero_grad_begins",), ("zero_grad_ends",)]
        for rings in range(1, 3000):
            lines = 0

            def trace(frame, event, _):
                nonlocal lines
                if not frame.f_code.co_filename.endswith("training_step.py"):
                    return None
                if event == "line":
                    lines += 1
                    if lines == rings:
                        raise Alarm
                return trace

            phases = Phases(Memory().segment, self.rows.append)
            before = sys.gettrace()
            sys.settrace(trace)
            try:
                for name, *arguments in calls * 3:
                    with contextlib.suppress(Alarm):
                        getattr(phases, name)(*arguments)
            finally:
                sys.settrace(before)
            phases.finish()
            if lines < rings:
                return
        self.fail("it never ends")


if __name__ == "__main__":
    unittest.main()
