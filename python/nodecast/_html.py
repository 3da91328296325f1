"""First screens of answers for notebooks: tables without scripts or styles of their own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Sized
from html import escape
from typing import Any, Optional

from ._nodecast import money


# Places of figures in the results of a sweep: the order of docs/outputs.md.
COST_PER_MONTH, PENDING_P99 = 1, 5


def _cell(value: object) -> str:
    return escape("" if value is None else str(value))


def table(rows: Iterable[Sequence[object]], head: Sequence[str] = (), title: str = "") -> str:
    """A table; the first cell of a row is its heading."""
    lines = [f"<h4>{escape(title)}</h4>"] if title else []
    lines.append("<table>")
    if head:
        lines.append("<thead><tr>" + "".join(f"<th>{escape(name)}</th>" for name in head) + "</tr></thead>")
    lines.append("<tbody>")
    for first, *rest in rows:
        lines.append(f"<tr><th>{_cell(first)}</th>" + "".join(f"<td>{_cell(value)}</td>" for value in rest) + "</tr>")
    return "\n".join([*lines, "</tbody></table>"])


def number(value: Optional[float]) -> str:
    """Three significant digits, or all digits of larger whole parts."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def seconds(value: Optional[float]) -> str:
    if value is None:
        return "–"
    if abs(value) < 1:
        return f"{value * 1000:.3g} ms"
    return f"{value:.3g} s" if abs(value) < 100 else f"{value / 60:,.3g} min"


def count(things: Sized, name: str) -> str:
    return f"{len(things)} {name}{'' if len(things) == 1 else 's'}"


def share(value: float) -> str:
    return f"{value * 100:.3g}%"


def summary(made: Any) -> str:
    """Cost, waits, problems, and assumptions of summary.json."""
    about, cost = made.about, made.cost
    waits, missed = made.pods.wait_for_node, [own.name for own in made.objectives if own.met is False]
    met = [own.name for own in made.objectives if own.met]
    problems = [f"missed: {', '.join(missed)}"] if missed else [f"met: {', '.join(met)}"] if met else []
    problems.append(f"{number(made.availability.unavailable_pod_minutes)} pod-minutes of replicas missing")
    estimated = cost.unconfirmed.share if cost.get("unconfirmed") else None
    rows = [
        ("Cost", f"{money(about.currency, cost.per_month)} per month", f"{money(about.currency, cost.per_hour)} per hour, {money(about.currency, cost.total)} in all"),
        ("Wait time", seconds(waits.p99_seconds), f"p99 pod wait for a node (p50 {seconds(waits.p50_seconds)}, max {seconds(waits.max_seconds)})"),
        ("Problems", "None" if not missed else f"{count(missed, 'objective')} missed", "; ".join(problems)),
        (
            "Assumptions",
            f"{count(about.assumptions, 'assumption')}, {count(made.warnings, 'warning')}",
            f"{share(estimated)} of the cost uses estimated prices" if isinstance(estimated, float) else f"prices of {about.price_date}",
        ),
    ]
    return table(rows, title=f"{about.scenario}, policy {about.policy} ({about.autoscaler}), seed {about.seed}")


def comparison(made: Any) -> str:
    """The cost, the waits, and the churn of each policy with intervals."""
    names = ("cost_per_month", "pending_p99", "request_p99", "unavailable_pod_minutes", "evictions")
    rows: list[list[object]] = []
    for policy in made.policies:
        figures = {figure.name: figure for figure in policy.figures}
        cells: list[object] = [policy.name]
        for name in names:
            mean = figures[name].mean if name in figures else None
            value = None if mean is None else mean.get("median", mean.mean)
            cells.append(
                "–" if mean is None or value is None
                else f"{number(value)} ({number(mean.low)} to {number(mean.high)})" if mean.low is not None
                else number(value)
            )
        met = [f"{own.name} {own.met} of {own.judged}" for own in policy.objectives]
        rows.append([*cells, ", ".join(met)])
    about = made.about
    head = ["policy", f"cost per month, {about.currency}", "pod wait p99, s", "response p99, s", "missing replicas, pod-minutes", "evictions", "objectives met"]
    return table(rows, head, f"{about.scenario}: {about.replications} replications, 95% confidence intervals")


def sweep(made: Any, limit: int = 20) -> str:
    """The Pareto-optimal settings. Figures of a result are in the order of `figures`."""
    rows: list[list[object]] = []
    for place in made.front[:limit]:
        result = made.results[place]
        setting = ", ".join(f"{path}={value}" for path, value in zip(made.paths, result["values"]))
        cells: list[object] = [result.policy, setting]
        for figure in (COST_PER_MONTH, PENDING_P99):
            mean = result.figures[figure]
            cells.append("–" if mean is None else number(mean.get("median", mean.mean)))
        rows.append(cells)
    about = made.about
    head = ["policy", "setting", f"cost per month, {about.currency}", "pod wait p99, s"]
    return table(rows, head, f"{about.scenario}: {len(made.front)} Pareto-optimal settings of {len(made.results)}")
