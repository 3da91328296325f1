"""What the functions of the package return."""

from __future__ import annotations

from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, Union

from . import _html
from ._errors import classified
from ._nodecast import Comparison as NativeComparison
from ._nodecast import Packing as NativePacking
from ._nodecast import Run as NativeRun
from ._nodecast import Sweep as NativeSweep
from ._nodecast import Table, money
from ._values import Figures
from ._values import read as _read

Path = Union[str, "PathLike[str]"]


class Money(float):
    """An amount, exact as a number; ``str()`` shows it as the command does."""

    currency: str
    """The currency's code, for example ``USD``."""

    def __new__(cls, amount: float, currency: str) -> Money:
        money = super().__new__(cls, amount)
        money.currency = currency
        return money

    def __str__(self) -> str:
        return money(self.currency, self)

    def __getnewargs__(self) -> tuple[float, str]:  # type: ignore[override]
        return (float(self), self.currency)


class _Answer:
    """An answer that prints as the command prints it."""

    _native: Any

    def __str__(self) -> str:
        text: str = self._native.text()
        return text

    def _html(self) -> str:
        """The first screen of the answer."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return self._html()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self).rstrip("\n"))


class Run(_Answer):
    """One run: figures as attributes (``run.cost``, ``run.pending_p99``), ``summary``, and tables.

    ``figures`` has the names of all figures. A figure that had nothing to measure is ``None``.
    """

    if TYPE_CHECKING:
        # For editors: `__getattr__` finds them.
        cost: Money
        cost_per_month: Money
        cost_idle: Money
        cost_estimated: float | None
        pending_mean: float | None
        pending_p99: float | None
        pods_pending: float | None
        ready_p99: float | None
        request_p99: float | None
        requests_unanswered: float | None
        requests_lost: float | None
        nodes_mean: float | None
        launches: float | None
        launches_refused: float | None
        interruptions: float | None
        evictions: float | None
        cpu_requested: float | None
        unavailable_pod_minutes: float | None
        workloads_at_zero: float | None
        at_zero: float | None
        at_max: float | None
        pending_p95: float | None
        pods_waited: float | None
        restarts: float | None
        messages_undone: float | None
        message_wait: float | None
        jobs_undone: float | None

    _native: NativeRun

    def __init__(self, native: NativeRun) -> None:
        self._native = native

    def __repr__(self) -> str:
        about = self.summary.about
        return f"<nodecast.Run of {about.scenario}, policy {about.policy}, seed {about.seed}>"

    def _html(self) -> str:
        return _html.summary(self.summary)

    def summary_json(self) -> str:
        """The bytes of ``summary.json`` as text."""
        return self._native.summary_json()

    @cached_property
    def summary(self) -> Figures:
        """All of ``summary.json``, by key or by attribute; docs/outputs.md explains each."""
        return _read(self.summary_json())

    @cached_property
    def figures(self) -> Figures:
        """The figures by which runs are compared, by name. Amounts are :class:`Money`."""
        currency = self.summary.about.currency
        figures = Figures(self._native.figures())
        for name in ("cost", "cost_per_month", "cost_idle"):
            if figures[name] is not None:
                figures[name] = Money(figures[name], currency)
        return figures

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.figures, name)

    def __getitem__(self, name: str) -> float | None:
        value: float | None = self.figures[name]
        return value

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.figures]

    @property
    def warnings(self) -> list[str]:
        """What the model left out or assumed and could change the answer."""
        warnings: list[str] = self.summary.warnings
        return warnings

    @cached_property
    def timeline(self) -> Table:
        """The cluster at regular instants."""
        return self._native.table("timeline")

    @cached_property
    def workloads(self) -> Table:
        """Each workload at the same instants."""
        return self._native.table("workloads")

    @cached_property
    def metrics(self) -> Table:
        """What autoscalers of replicas read, at the same instants."""
        return self._native.table("metrics")

    @cached_property
    def queues(self) -> Table:
        """Each queue at the same instants."""
        return self._native.table("queues")

    @cached_property
    def recommendations(self) -> Table:
        """What VerticalPodAutoscalers recommend for each container, every ten minutes at most."""
        return self._native.table("recommendations")

    @cached_property
    def pods(self) -> Table:
        """A row for each pod."""
        return self._native.table("pods")

    @cached_property
    def nodes(self) -> Table:
        """A row for each node or node claim."""
        return self._native.table("nodes")

    @cached_property
    def bill(self) -> Table:
        """The lines of the bill."""
        return self._native.table("bill")

    @cached_property
    def events(self) -> Table:
        """What happened, and why."""
        return self._native.table("events")

    def write(self, directory: Path, open_metrics: str | None = None) -> None:
        """Writes the report that the command writes; an earlier one there is replaced as a whole.

        :param open_metrics: write ``metrics.om`` too, with samples so far apart, for example ``"60s"``
        :raises Error: if the directory holds anything but a report, or cannot be written
        """
        with classified():
            self._native.write(directory, open_metrics)


class Comparison(_Answer):
    """Policies over the same seeds, each held against the first."""

    _native: NativeComparison

    def __init__(self, native: NativeComparison) -> None:
        self._native = native

    def __repr__(self) -> str:
        names = ", ".join(policy.name for policy in self.comparison.policies)
        return f"<nodecast.Comparison of {self.comparison.about.scenario}: {names}>"

    def _html(self) -> str:
        return _html.comparison(self.comparison)

    def comparison_json(self) -> str:
        """The bytes of ``comparison.json`` as text."""
        return self._native.comparison_json()

    @cached_property
    def comparison(self) -> Figures:
        """All of ``comparison.json``, by key or by attribute."""
        return _read(self.comparison_json())

    def __getitem__(self, policy: str) -> Figures:
        """The figures of a policy by name, each with its ``mean`` and, but for the first policy, ``against_first``.

        Intervals of waits are of their ``median``.
        """
        for own in self.comparison.policies:
            if own.name == policy:
                return Figures((figure.name, figure) for figure in own.figures)
        raise KeyError(policy)

    @property
    def warnings(self) -> list[str]:
        """What the model left out or assumed and could change the answer, under any policy."""
        warnings: list[str] = self.comparison.warnings
        return warnings

    @cached_property
    def figures(self) -> Table:
        """A row for each figure of each policy: its mean and its difference from the first policy, with 95 % intervals."""
        return self._native.figures()

    @cached_property
    def replications(self) -> Table:
        """A row for each simulation, a column for each figure."""
        return self._native.replications()

    def long(self) -> Any:
        """The replications as a ``pandas.DataFrame`` with a row for each policy, seed, and figure: ``policy``, ``seed``, ``figure``, ``value``.

        The form that seaborn and ``groupby`` take: ``seaborn.boxplot(compared.long().query("figure == 'cost'"), x="policy", y="value")``.
        """
        frame = self.replications.to_pandas()
        kept = [name for name in ("policy", "seed") if name in frame]
        figures = [name for name in frame.columns if name not in kept and frame[name].dtype.kind in "iuf"]
        return frame.melt(id_vars=kept, value_vars=figures, var_name="figure", value_name="value")

    def write(self, directory: Path) -> None:
        """Writes the report that the command writes; an earlier one there is replaced as a whole.

        :raises Error: if the directory holds anything but a comparison, or cannot be written
        """
        with classified():
            self._native.write(directory)


class Sweep(_Answer):
    """Settings of a scenario against each other."""

    _native: NativeSweep

    def __init__(self, native: NativeSweep) -> None:
        self._native = native

    def __repr__(self) -> str:
        return f"<nodecast.Sweep of {self.sweep.about.scenario}: {len(self.sweep.results)} settings>"

    def _html(self) -> str:
        return _html.sweep(self.sweep)

    def sweep_json(self) -> str:
        """The bytes of ``sweep.json`` as text."""
        return self._native.sweep_json()

    @cached_property
    def sweep(self) -> Figures:
        """All of ``sweep.json``, by key or by attribute."""
        return _read(self.sweep_json())

    @property
    def warnings(self) -> list[str]:
        """What the model left out or assumed and could change the answer, under any setting."""
        warnings: list[str] = self.sweep.warnings
        return warnings

    @cached_property
    def settings(self) -> Table:
        """A row for each setting under each policy: its values, the means of its figures, and whether it is on the front."""
        return self._native.settings()

    def write(self, directory: Path) -> None:
        """Writes the report that the command writes; an earlier one there is replaced as a whole.

        :raises Error: if the directory holds anything but a sweep, or cannot be written
        """
        with classified():
            self._native.write(directory)


class Packing(_Answer):
    """The nodes that would be launched now."""

    _native: NativePacking

    def __init__(self, native: NativePacking) -> None:
        self._native = native

    def __repr__(self) -> str:
        summary = self.answer.summary
        return f"<nodecast.Packing: {summary.new_nodes} nodes, {summary.pods_pending} pods pending>"

    def _html(self) -> str:
        rows = [(name.replace("_", " "), _html.number(value)) for name, value in self.summary.items() if isinstance(value, (int, float))]
        return _html.table(rows, title="Nodes that Karpenter would launch")

    def pack_json(self) -> str:
        """What ``nodecast pack --format json`` prints."""
        return self._native.pack_json()

    @cached_property
    def answer(self) -> Figures:
        """The same, by key or by attribute."""
        return _read(self.pack_json())

    @property
    def summary(self) -> Figures:
        """The counts and the cost."""
        summary: Figures = self.answer.summary
        return summary

    @property
    def warnings(self) -> list[str]:
        """What is understood in the files but left out."""
        return self._native.warnings

    @cached_property
    def launches(self) -> Table:
        """A row for each node to launch."""
        return self._native.launches()
