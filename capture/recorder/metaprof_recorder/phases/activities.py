"""What a program does besides training: it loads, resumes, evaluates, generates and saves; or what it calls it itself.

Knows nothing of torch. What is observed are PyTorch's entry points (observers/entry_points.py), modes of modules, and forwards:

    load, resume, save   within calls of torch.load, load_state_dict of modules, that of optimizers, torch.save, state_dict, …
    evaluate             forwards without gradients of what is trained, from the module's `eval()` on if it is called, until its `train()` or
                         until training goes on
    generate             such forwards that go on by one position, and the one before them
    "a name"             within a range of the program's own, unless a step of the training lies in it
"""

FEWEST_POSITIONS = 3  # of forwards by one position, so that they are a generation


class Activity:
    """`name`: None, if it turns out to be none."""

    def __init__(self, name, tentative=False):
        self.name = name
        self.tentative = tentative  # no forward has been seen in it


class Activities:
    """`cut()` ends a stretch of time; what comes next is of the activity `now`."""

    def __init__(self, cut):
        self._cut = cut
        self._open = []         # entered and not left: the innermost last
        self._evaluation = None
        self._positions = []    # forwards by one position, one after the other, and the one before them
        self._former = None     # the forward before, and the length of its sequences
        self._former_length = 0

    @property
    def now(self):
        return next((activity for activity in reversed(self._open) if activity.name is not None), self._evaluation)

    @property
    def evaluates(self):
        return self._evaluation is not None and self._evaluation.name is not None

    # ---- ranges

    def begins(self, name, holds_steps=False):
        """`holds_steps`: it has its name also where it has steps of the training in it."""
        self._cut()
        activity = Activity(name, tentative=not holds_steps)
        self._open.append(activity)
        return activity

    def go_on(self, activities):
        """Begun before there was anything to cut: the device had not been used."""
        self._open += activities

    def ends(self, activity):
        if activity in self._open:
            self._cut()
            self._open.remove(activity)

    # ---- forwards and modes

    def mode(self, trains):
        """A module is put into training mode, or out of it."""
        if trains and self._evaluation is not None:
            self._cut()
            self._stop()
        elif not trains and self._evaluation is None:
            self._cut()
            self._evaluation = Activity("evaluate", tentative=True)

    def forward_begins(self, grad, trains, of_trained):
        """A stretch has just ended. `trains`: the program does; `of_trained`: the module has parameters that an optimizer changes, and is not
        in training mode."""
        if grad:
            self.training_goes_on()
        elif not trains:
            self._evaluation = Activity(None)
        elif of_trained:
            if self._evaluation is None or not self._evaluation.tentative:
                self._evaluation = Activity("evaluate")
            self._evaluation.tentative = False

    def forward_ends(self, length):
        """`length`: of the sequences of whole numbers that the module was called with; 0: there are none."""
        current = self._evaluation
        if current is None:
            return
        if length == 1 and (self._positions or self._former_length > 1):
            self._positions = self._positions or [self._former]
            self._positions.append(current)
            if len(self._positions) > FEWEST_POSITIONS:
                for activity in self._positions:
                    activity.name = "generate"
        else:
            self._positions = []
        self._former, self._former_length = current, length

    def training_goes_on(self):
        """A forward with gradients, a backward, an optimizer."""
        self._stop()
        for activity in self._open:
            if activity.tentative:
                activity.name = None

    def _stop(self):
        if self._evaluation is not None and self._evaluation.tentative:
            self._evaluation.name = None
        self._evaluation = None
