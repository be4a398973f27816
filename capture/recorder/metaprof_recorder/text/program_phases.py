"""Where the phases of a captured program begin."""


class Phases:
    """The lines that stand where phases begin."""

    def __init__(self, rows):
        self._of = {}
        self._shown = None
        micros = {}
        for phase, step, first, last in rows:
            micro = micros.get((phase, step), 0)
            micros[phase, step] = micro + 1
            for cut in range(first, last + 1):
                self._of[cut] = (phase, step, micro)
        self._accumulates = {step for (phase, step), count in micros.items() if phase == "backward" and count > 1}

    def line(self, cut):
        """Of the stretch that ends with this cut: none, if the phase goes on."""
        where = self._of.get(cut, ("after", 0, 0))
        if where == self._shown:
            return []
        self._shown = where
        phase, step, micro = where
        if phase == "after":
            return ["step::pause()"]
        numbered = phase in ("forward", "backward") and step in self._accumulates
        return [f'step::phase("{phase}", {step}, {micro if numbered else -1})']
