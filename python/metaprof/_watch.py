"""An estimate beside the first step that really runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Mapping, Optional

from ._api import Args, profile
from ._program import Error
from ._results import MIB, Profile

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import ProfileOptions

PHASES = ("forward", "backward", "optimizer")


def watch(model: Any, args: Args = None, *, optimizer: Any, kwargs: Optional[dict[str, Any]] = None,
          loss: Optional[Callable[..., Any]] = None, **options: "Unpack[ProfileOptions]") -> "Watch":
    """Estimates a training step, and measures the next one that your program runs on a GPU.

        watched = metaprof.watch(model, (x, labels), optimizer=optimizer)
        train_one_step()
        print(watched)

    model, args, kwargs, loss, options: as of profile; the step that is estimated must be the one that you run. The model is on the GPU.
    optimizer: the object whose `step` ends the step. Measuring calls torch.cuda.reset_peak_memory_stats, and ends with that step.

    Error: as of profile; there is no GPU, or the model is not on it.
    """
    import torch

    if not torch.cuda.is_available():
        raise Error("metaprof.watch measures a step on a GPU, and there is none: metaprof.profile estimates it")
    if not all(each.is_cuda for each in model.parameters()):
        raise Error("metaprof.watch: the model is not on the GPU; call it after model.to('cuda')")
    if "device" not in options:
        from .integrations._device import device_of

        options["device"] = device_of(None)
    estimate = profile(model, args, kwargs=kwargs, loss=loss, **{**options, "optimizer": optimizer, "steps": 1})  # type: ignore[typeddict-item]
    return Watch(estimate, model, optimizer)


class Watch:
    """What a step takes: as estimated, and, once it has run, as measured.

    `estimate`: the profile. `measured`: bytes allocated at the peak of each phase, without what the program had allocated for other things
    when the step began (`elsewhere`); empty until the step has ended. The forward ends where backward begins.
    """

    def __init__(self, estimate: Profile, model: Any, optimizer: Any):
        import torch

        self.estimate = estimate
        self.measured: Mapping[str, int] = {}
        self.elsewhere = 0
        self._torch = torch
        self._peaks: dict[str, int] = {}
        self._phase: Optional[str] = None
        self._own_backward = torch.autograd.backward
        self._hooks = [model.register_forward_pre_hook(lambda *_: self._enter("forward")),
                       optimizer.register_step_pre_hook(lambda *_: self._enter("optimizer")),
                       optimizer.register_step_post_hook(lambda *_: self._end())]
        torch.autograd.backward = self._backward

    @property
    def estimated(self) -> dict[str, int]:
        """Bytes allocated at the peak of each phase of the first step."""
        return {phase["phase"]: phase["allocated_bytes"]["peak"] for phase in reversed(self.estimate.phases) if phase["phase"] in PHASES}

    @property
    def first_difference(self) -> Optional[str]:
        """The first phase whose measured peak is another one than the estimated one; None: there is none."""
        return next((phase for phase in PHASES if phase in self.measured and self.measured[phase] != self.estimated[phase]), None)

    def close(self) -> None:
        """Ends the watching, also of a step that has not run."""
        for hook in self._hooks:
            hook.remove()
        if self._torch.autograd.backward == self._backward:
            self._torch.autograd.backward = self._own_backward

    def __repr__(self) -> str:
        if not self.measured:
            return f"{self.estimate!r}; no step has run yet"
        lines = ["phase      estimated, MiB  measured, MiB  difference"]
        for phase in PHASES:
            estimated, measured = self.estimated[phase], self.measured[phase]
            change = "none" if estimated == measured else f"{100 * (estimated / measured - 1):+.2f} %"
            lines.append(f"{phase:<9}  {estimated / MIB:14,.1f}  {measured / MIB:13,.1f}  {change:>10}")
        if self.elsewhere:
            lines.append(f"{self.elsewhere / MIB:,.1f} MiB were allocated for other things before the step, and are not counted")
        return "\n".join(lines)

    def _backward(self, *args: Any, **kwargs: Any) -> Any:
        if self._phase == "forward":
            self._enter("backward")
        return self._own_backward(*args, **kwargs)

    def _enter(self, phase: str) -> None:
        cuda = self._torch.cuda
        if self._phase is None:
            self.elsewhere = cuda.memory_allocated() - self._before_the_step()
        else:
            self._note_peak()
        self._phase = phase
        cuda.reset_peak_memory_stats()

    def _before_the_step(self) -> int:
        (setup,) = (phase for phase in self.estimate.phases if phase["phase"] == "setup")
        return setup["allocated_bytes"]["current"]

    def _note_peak(self) -> None:
        peak = self._torch.cuda.max_memory_allocated() - self.elsewhere
        assert self._phase is not None
        self._peaks[self._phase] = max(peak, self._peaks.get(self._phase, 0))

    def _end(self) -> None:
        self._note_peak()
        self.measured = {phase: self._peaks.get(phase, 0) for phase in PHASES}
        self.close()
