"""Results as plain objects. Each keeps the report that it was made of in `.json`: bytes, FLOPs, seconds, shapes as lists."""

from __future__ import annotations

import html
import json
from dataclasses import dataclass, field
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Optional, Sequence

from ._verdict import Fits

if TYPE_CHECKING:
    import pandas


MIB = 2**20


def _mib(count: Optional[int]) -> str:
    return "" if count is None else f"{count / 2**20:,.1f} MiB"


def _size(count: int) -> str:
    return f"{count / 2**30:,.1f} GiB" if count >= 2**30 else _mib(count)


def _table(columns: list[str], rows: list[list[Any]]) -> str:
    head = "".join(f"<th>{html.escape(str(c))}</th>" for c in columns)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(str(c))}</td>" for c in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _frame(rows: list[dict[str, Any]]) -> "pandas.DataFrame":
    import pandas

    return pandas.DataFrame(rows)


@dataclass(frozen=True)
class Tensor:
    """A tensor that is alive at the peak."""

    bytes: int  #: of its block, with the allocator's rounding
    category: str  #: parameter, gradient, activation, optimizer_state, workspace …
    shape: Optional[tuple[int, ...]]  #: None: bare memory, as a workspace
    dtype: Optional[str]
    op: str  #: that made it
    module: str  #: in which it was made


@dataclass(frozen=True)
class Peak:
    """The moment at which most memory is taken. Bytes."""

    allocated: int  #: in blocks of the allocator
    requested: int  #: without its rounding
    reserved: int  #: of the device, with what is cached
    phase: str  #: setup, forward, backward, optimizer, zero_grad
    step: int  #: from 0
    op: str
    module: str
    by_category: dict[str, int]
    tensors: tuple[Tensor, ...] = field(default=(), repr=False)  #: the largest ones alive, the largest first

    @staticmethod
    def of(report: dict[str, Any]) -> "Peak":
        tensors = tuple(Tensor(row["bytes"], row["category"], row["shape"] and tuple(row["shape"]), row["dtype"],
                               row["op"], row["module"]) for row in report["largest"])
        return Peak(report["allocated_bytes"], report["requested_bytes"], report["reserved_bytes"], report["phase"],
                    report["step"], report["op"], report["module"], report["by_category"], tensors)


@dataclass(frozen=True)
class Module:
    """A row of the table of modules, with what is inside the module. Bytes without the allocator's rounding, and FLOPs."""

    path: str  #: "" is the model
    type: str
    depth: int
    parameters: int  #: elements
    saved_bytes: int  #: kept for backward by the first forward
    forward_tmp: int  #: highest above the start in forward
    forward_out: int  #: left by forward
    backward_tmp: int
    backward_out: int
    flops_forward: Optional[int] = None  #: None: a run of a program does not count them
    flops_backward: Optional[int] = None

    @staticmethod
    def of(row: dict[str, Any]) -> "Module":
        return Module(**{name: row[name] for name in Module.__dataclass_fields__ if name in row})


@dataclass(frozen=True)
class _Result:
    json: dict[str, Any] = field(repr=False)  #: the report as the program wrote it

    def write(self, path: str) -> str:
        """Writes the report's JSON, for `metaprof diff` and `check --baseline`. Returns the path."""
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self.json, file, indent=1)
        return path


@dataclass(frozen=True)
class _Step(_Result):
    """What a step did: a peak and modules."""

    def _part(self) -> dict[str, Any]:
        return self.json

    @property
    def peak(self) -> Peak:
        return Peak.of(self._part()["peak"])

    @property
    def modules(self) -> list[Module]:
        """All modules, each before those inside it."""
        return [Module.of(row) for row in self._part()["modules"]]

    @property
    def phases(self) -> list[dict[str, Any]]:
        """The allocator's statistics at the end of each phase, current and peak, in bytes."""
        return self._part()["phases"]

    def largest(self, count: int = 10) -> list[Tensor]:
        """The largest tensors alive at the peak, the largest first."""
        return list(self.peak.tensors[:count])

    def to_pandas(self) -> "pandas.DataFrame":
        """The table of modules."""
        return _frame([vars(row) for row in self.modules])

    def _page(self, title: str, fits: bool, device: str) -> str:
        rows = [[m.path or "(root)", m.type.split(".")[-1], f"{m.parameters:,}", _mib(m.saved_bytes), _mib(m.forward_tmp),
                 "" if m.flops_forward is None else f"{m.flops_forward / 1e9:,.2f}"]
                for m in self.modules if m.depth <= 3]
        return (f"<p><b>{html.escape(title)}</b> {'fits' if fits else 'does not fit'} {html.escape(device)}: "
                f"{_mib(self.peak.allocated)} allocated, {_mib(self.peak.reserved)} reserved at the peak</p>"
                + _table(["module", "type", "parameters", "saved", "forward, at most", "forward, GFLOP"], rows))


@dataclass(frozen=True, repr=False)
class Profile(_Step):
    """What a training step costs."""

    fits: Fits  #: whether it fits the device; fits("rtx4090"): whether it fits that
    timeline: str = field(default="", repr=False)  #: memory over the step, with its peak, as SVG

    def __repr__(self) -> str:
        verdict = self.json["verdict"]
        return "\n".join([
            f"{'FITS' if self.fits else 'DOES NOT FIT'} {self.json['device']}: needs {_size(verdict['reserved_bytes'])}"
            f" + {_size(verdict['outside_bytes'])} outside the allocator of {_size(verdict['memory_bytes'])}",
            *(f"warning: {row['op']}: {row['why']} ({row['share_of_output_bytes']:.1%} of the bytes that calls give)" for row in self.unmodelled),
            *(f"warning: {text}" for text in self.warnings)])

    @property
    def warnings(self) -> list[str]:
        """What one should know of the program: what it lacks, and what was assumed."""
        return list(self.json["warnings"])

    @property
    def total_mb(self) -> float:
        """MiB that the device must have: what the allocator reserves at the peak, and what lies outside it."""
        return (self.json["verdict"]["reserved_bytes"] + self.json["verdict"]["outside_bytes"]) / MIB

    @property
    def params_mb(self) -> float:
        """MiB of the parameters, without the allocator's rounding."""
        return self.json["parameters"]["bytes"] / MIB

    @property
    def optimizer_mb(self) -> float:
        """MiB of the optimizer's state: what its first step has made and leaves behind."""
        ends = {phase["phase"]: phase["requested_bytes"]["current"] for phase in reversed(self.phases)}  # of the first step
        return (ends["optimizer"] - ends["backward"]) / MIB if "optimizer" in ends else 0.0

    @property
    def activations_mb(self) -> float:
        """MiB of activations, where most memory is taken."""
        return self.peak.by_category["activation"] / MIB

    @property
    def parameters(self) -> int:
        """Elements of all parameters; tied ones count once."""
        return self.json["parameters"]["count"]

    @property
    def flops(self) -> dict[str, int]:
        """forward, backward, recompute, optimizer: as the framework's counter counts."""
        return {part: self.json["flops"][part] for part in ("forward", "backward", "recompute", "optimizer")}

    @property
    def saved_bytes(self) -> int:
        """Kept by the first forward for backward."""
        return self.json["saved"]["bytes"]

    @property
    def unmodelled(self) -> list[dict[str, Any]]:
        """Operators that are not known, with their share."""
        return self.json["unmodelled"]

    def _repr_html_(self) -> str:
        return self._page(self.json["model"], self.fits, self.json["device"]) + self.timeline


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    return {**row.get("options", {}), **{name: value for name, value in row.items() if name not in ("options", "inputs")}}


@dataclass(frozen=True, repr=False)
class _Rows(_Result):
    def __repr__(self) -> str:
        """A line for each run, with the options that differ."""
        columns, rows = self._columns()
        cells = [[str(cell) for cell in row] for row in [columns, *rows]]
        widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]
        return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths)) for row in cells)

    def _columns(self) -> tuple[list[str], list[list[Any]]]:
        flat = [_flat(row) for row in self.rows]
        known = self.rows[0].get("options", {}) if flat else {}
        options = [name for name in known if any(row[name] != flat[0][name] for row in flat)]
        names = [*options, *(name for name in (flat[0] if flat else {}) if name not in known)]
        return names, [[row.get(name) for name in names] for row in flat]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A row for each run; its options are in ["options"]."""
        return self.json["rows"]

    def to_pandas(self) -> "pandas.DataFrame":
        """A row for each run, its options as columns."""
        return _frame([_flat(row) for row in self.rows])

    def _repr_html_(self) -> str:
        return _table(*self._columns())


@dataclass(frozen=True, repr=False)
class Fit(_Rows):
    """The largest batch, or the longest sequence, of which a step fits."""

    @property
    def largest(self) -> Optional[int]:
        """That of the first row. None: not even 1 fits."""
        return self.rows[0]["largest"]


@dataclass(frozen=True, repr=False)
class Sweep(_Rows):
    """What steps cost for every combination of options."""

    @staticmethod
    def joined(shards: Sequence["Sweep"]) -> "Sweep":
        """All shards of a sweep, in their order: what the sweep without shards would be."""
        report = dict(shards[0].json)
        report["rows"] = [row for shard in shards for row in shard.rows]
        report["notes"] = sorted({note for shard in shards for note in shard.json["notes"]})
        return Sweep(report)


@dataclass(frozen=True, repr=False)
class Report(_Result):
    """What advise, plan and cudagraphs say: `.json` has the figures."""

    text: str = ""  #: as on the command line

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.text)}</pre>"


@dataclass(frozen=True)
class Check(_Rows):
    """Estimates beside measurements."""

    passed: bool = True

    @property
    def summary(self) -> list[dict[str, Any]]:
        """For each measurement the errors of its peaks, as shares."""
        return self.json["summary"]

    def _repr_html_(self) -> str:
        columns = list(self.summary[0]) if self.summary else []
        return (f"<p>{'passed' if self.passed else 'not passed'}</p>"
                + _table(columns, [[row[name] for name in columns] for row in self.summary]))


@dataclass(frozen=True)
class Diff(_Result):
    """Two profiles compared."""

    different: bool = False

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Figures that differ: figure, before, after."""
        return self.json["rows"]

    def to_pandas(self) -> "pandas.DataFrame":
        return _frame(self.rows)

    def __repr__(self) -> str:
        return "\n".join(f"{row['figure']}: {row['before']} before, {row['after']} after" for row in self.rows) or "no differences"

    def _repr_html_(self) -> str:
        options = "; ".join(self.json["options"])
        return (f"<p>{html.escape(options)}</p>"
                + _table(["figure", "before", "after"], [[r["figure"], r["before"], r["after"]] for r in self.rows]))


@dataclass(frozen=True)
class Run(_Step):
    """What an unmodified program did to memory. Peak and modules are those of the rank with the highest peak."""

    @property
    def ranks(self) -> list[dict[str, Any]]:
        """A report for each process that used a device."""
        return self.json["ranks"]

    def _part(self) -> dict[str, Any]:
        return max(self.ranks, key=lambda rank: rank["peak"]["reserved_bytes"])

    @property
    def exit_status(self) -> int:
        """The program's own."""
        return self.json["exit_status"]

    @property
    def fits(self) -> bool:
        return all(rank["fits"] for rank in self.ranks)

    def __repr__(self) -> str:
        peak, status = self.peak, self.exit_status
        return (f"{'FITS' if self.fits else 'DOES NOT FIT'} {self.json['device']}: {_size(peak.allocated)} allocated and {_size(peak.reserved)} reserved"
                f" at the peak, in {peak.phase}" + (f"; the program ended with {status}" if status else ""))

    def _repr_html_(self) -> str:
        return self._page(" ".join(self.json["program"]), self.fits, self.json["device"])


@dataclass(frozen=True, repr=False)
class Captured(Run):
    """What a captured function did; and a model for profile, fit, sweep: the path of a captured program."""

    path: str = ""  #: of the .mp; it goes with the object, unless save= named another place
    _folder: Optional["TemporaryDirectory[str]"] = field(default=None, repr=False, compare=False)

    def __fspath__(self) -> str:
        return self.path
