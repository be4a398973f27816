"""Results as plain objects. Each keeps the report that it was made of in `.json`."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from typing import Any, Optional


def _mib(count: Optional[int]) -> str:
    return "" if count is None else f"{count / 2**20:,.1f} MiB"


def _table(columns: list[str], rows: list[list[Any]]) -> str:
    head = "".join(f"<th>{html.escape(str(c))}</th>" for c in columns)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(str(c))}</td>" for c in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


@dataclass(frozen=True)
class Peak:
    """The moment at which most memory is taken. Bytes."""

    allocated: int  #: in blocks of the allocator
    requested: int  #: without its rounding
    reserved: int  #: of the device, with what is cached
    phase: str
    step: int
    op: str
    module: str
    by_category: dict[str, int]


@dataclass(frozen=True)
class Tensor:
    """A tensor that is alive at the peak."""

    bytes: int
    category: str
    shape: Optional[tuple[int, ...]]  #: None: bare memory, as a workspace
    dtype: Optional[str]
    op: str
    module: str


@dataclass(frozen=True)
class Module:
    """A row of the table of modules, with what is inside the module. Bytes and FLOPs."""

    path: str
    type: str
    depth: int
    parameters: int
    saved_bytes: int
    forward_tmp: int
    forward_out: int
    backward_tmp: int
    backward_out: int
    flops_forward: int
    flops_backward: int


@dataclass(frozen=True)
class _Result:
    json: dict[str, Any] = field(repr=False)


@dataclass(frozen=True)
class Profile(_Result):
    """What a training step costs."""

    fits: bool

    @property
    def peak(self) -> Peak:
        p = self.json["peak"]
        return Peak(p["allocated_bytes"], p["requested_bytes"], p["reserved_bytes"], p["phase"], p["step"], p["op"],
                    p["module"], p["by_category"])

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
    def modules(self) -> list[Module]:
        names = Module.__dataclass_fields__
        return [Module(**{name: row[name] for name in names}) for row in self.json["modules"]]

    @property
    def unmodelled(self) -> list[dict[str, Any]]:
        """Operators that are not known, with their share."""
        return self.json["unmodelled"]

    def largest(self, count: int = 10) -> list[Tensor]:
        """The largest tensors alive at the peak."""
        rows = self.json["peak"]["largest"][:count]
        return [Tensor(r["bytes"], r["category"], r["shape"] and tuple(r["shape"]), r["dtype"], r["op"], r["module"]) for r in rows]

    def to_pandas(self) -> Any:
        """The table of modules as a DataFrame."""
        import pandas

        return pandas.DataFrame([vars(row) for row in self.modules])

    def _repr_html_(self) -> str:
        verdict = "fits" if self.fits else "does not fit"
        rows = [[m.path or "(root)", m.type, f"{m.parameters:,}", _mib(m.saved_bytes), f"{m.flops_forward / 1e9:,.2f}"]
                for m in self.modules if m.depth <= 3]
        return (f"<p><b>{html.escape(self.json['model'])}</b> {verdict} {html.escape(self.json['device'])}: "
                f"{_mib(self.peak.allocated)} allocated, {_mib(self.peak.reserved)} reserved at the peak</p>"
                + _table(["module", "type", "parameters", "saved", "forward, GFLOP"], rows))


@dataclass(frozen=True)
class _Rows(_Result):
    @property
    def rows(self) -> list[dict[str, Any]]:
        return self.json["rows"]

    def to_pandas(self) -> Any:
        """A row for each run, its options as columns."""
        import pandas

        flat = [{**row.get("options", {}), **{k: v for k, v in row.items() if k != "options"}} for row in self.rows]
        return pandas.DataFrame(flat)

    def _repr_html_(self) -> str:
        shown = [k for k in (self.rows[0] if self.rows else {}) if k != "options"]
        return _table(shown, [[row.get(k) for k in shown] for row in self.rows])


@dataclass(frozen=True)
class Fit(_Rows):
    """The largest batch, or the longest sequence, of which a step fits."""

    @property
    def largest(self) -> int:
        return self.rows[0]["largest"]


@dataclass(frozen=True)
class Sweep(_Rows):
    """What steps cost for every combination of options."""


@dataclass(frozen=True)
class Check(_Rows):
    """Estimates beside measurements."""

    passed: bool = True


@dataclass(frozen=True)
class Diff(_Result):
    """Two profiles compared."""

    different: bool = False


@dataclass(frozen=True)
class Run(_Result):
    """What an unmodified program did to memory."""

    @property
    def ranks(self) -> list[dict[str, Any]]:
        return self.json["ranks"]
