"""Activities besides training (phases/activities.py), as far as the thread that trains begins them."""
import sys
import threading

from metaprof_recorder.observers.entry_points import Entries
from metaprof_recorder.phases.activities import Activity


class ObservedActivities:
    def __init__(self, recorder):
        self._recorder = recorder
        self._early = []  # (thread, activity) that were begun before the device is in use

    def install(self):
        Entries(self._recorder.torch, self._begins, self._ends, lambda trains: self._observe("mode", trains), self._is_own).install()

    def device_is_used(self):
        """What was begun before goes on."""
        recorder = self._recorder
        recorder.phases.activities.go_on([activity for thread, activity in self._early if thread == recorder.thread])
        self._early = []

    def _is_own(self):
        """Whether the program itself called the function that asks."""
        return self._recorder.sources.kind(sys._getframe(2).f_code.co_filename) == 0

    def _begins(self, name, holds_steps):
        if self._recorder.ready or self._recorder.finished:
            return self._observe("begins", name, holds_steps)
        activity = Activity(name, tentative=not holds_steps)
        self._early.append((threading.get_ident(), activity))
        return activity

    def _ends(self, activity):
        if activity is not None:
            self._early = [begun for begun in self._early if begun[1] is not activity]
            self._observe("ends", activity)

    def _observe(self, what, *arguments):
        recorder = self._recorder
        if recorder.mine() and recorder.ready:
            return getattr(recorder.phases.activities, what)(*arguments)
        return None
