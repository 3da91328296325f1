"""Forecasts what a Kubernetes cluster on EKS will cost, and how long its pods and requests will wait.

Each function does what the command of its name does. ``run``, ``compare``, ``sweep`` and ``pack`` give the same bytes; figures are numbers,
and tables are Arrow. The other functions give the JSON of their command. Invalid input raises ``Error`` or a subclass of it. docs/python.md
is the reference.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Union, cast

from . import _nodecast
from ._nodecast import VERSION as __version__
from ._commands import (
    Answer,
    Check,
    backtest,
    calibrate,
    check,
    diff,
    drain,
    explain,
    init,
    observe,
    recommend,
    rightsize,
)
from ._errors import PriceError, ScenarioError, classified
from ._frames import to_pandas
from ._nodecast import Error, Table
from ._progress import Progress, shown
from ._results import Comparison, Money, Packing, Run, Sweep
from ._scenario import Scenario, Source, opened
from ._values import Figures, changes_as_words, value_as_word

__all__ = [
    "Answer",
    "Check",
    "Comparison",
    "Error",
    "Figures",
    "Money",
    "Packing",
    "PriceError",
    "Run",
    "Scenario",
    "ScenarioError",
    "Sweep",
    "Table",
    "__version__",
    "backtest",
    "calibrate",
    "check",
    "compare",
    "diff",
    "drain",
    "explain",
    "init",
    "observe",
    "pack",
    "recommend",
    "rightsize",
    "run",
    "sweep",
    "to_pandas",
]

Path = Union[str, "PathLike[str]"]
"""The name of a file or a directory."""


def _axis(path: str, values: object) -> str:
    if isinstance(values, str):
        return f"{path}={values}"
    if not isinstance(values, Iterable):
        raise TypeError(f"the values of {path!r} are a list of them, or a text such as '2..10:2'")
    return f"{path}=" + ",".join(value_as_word(value) for value in cast("Iterable[object]", values))


def _names(names: str | Iterable[str] | None) -> list[str]:
    if names is None:
        return []
    return [names] if isinstance(names, str) else list(names)


def run(
    scenario: Source,
    policy: str | None = None,
    seed: int | None = None,
    set: Mapping[str, object] | None = None,
    *,
    duration: str | None = None,
    pricing_data: Path | None = None,
) -> Run:
    """Simulates a scenario under one policy.

    :param scenario: the scenario file; or its text, a dictionary, or a :class:`Scenario` with changes
    :param policy: the policy; the scenario's first if there is none
    :param seed: the seed of every random draw; the scenario's if there is none
    :param set: values to change first, by path: ``{"NodePool[default].spec.disruption.consolidateAfter": "5m"}``. A text is YAML,
        as after ``--set``; numbers, lists and so on stand for themselves.
    :param duration: how long to simulate, for example ``"2h"``
    :param pricing_data: a directory of prices in place of the built-in ones
    :raises Error: if anything of it cannot be used
    """
    with classified(pricing_data), opened(scenario, set) as (path, changes):
        return Run(_nodecast.run(path, policy, seed, changes_as_words(changes), duration, pricing_data))


def compare(
    scenario: Source,
    policies: Iterable[str] | None = None,
    replications: int | None = None,
    seed: int | None = None,
    set: Mapping[str, object] | None = None,
    *,
    duration: str | None = None,
    precision: float | None = None,
    replications_max: int = 1000,
    threads: int | None = None,
    pricing_data: Path | None = None,
    progress: Progress = False,
) -> Comparison:
    """Runs the policies of a scenario over the same seeds and compares each with the first.

    :param scenario: the scenario file; or its text, a dictionary, or a :class:`Scenario` with changes
    :param policies: the policies, the reference first; all of the scenario's if there are none
    :param replications: how many seeds; the scenario's number if there is none
    :param seed: the first seed; the scenario's if there is none
    :param set: values to change first, as of :func:`run`
    :param duration: how long to simulate
    :param precision: run until every difference of costs is known to this share of the first policy's cost, for example ``0.02``
    :param replications_max: how many replications to stop at if it is not
    :param threads: how many simulations run at once; one for each processor if there is no number. Nothing depends on it.
    :param pricing_data: a directory of prices in place of the built-in ones
    :param progress: ``True`` for a bar (needs tqdm), or a function that gets the numbers of completed and of planned simulations
    :raises Error: if anything of it cannot be used
    """
    with classified(pricing_data), opened(scenario, set) as (path, changes), shown(progress, "compare") as display:
        native = _nodecast.compare(
            path,
            _names(policies),
            replications,
            seed,
            changes_as_words(changes),
            duration,
            precision,
            replications_max,
            threads,
            pricing_data,
            display,
        )
    return Comparison(native)


def sweep(
    scenario: Source,
    set: Mapping[str, object],
    policies: Iterable[str] | None = None,
    replications: int | None = None,
    seed: int | None = None,
    *,
    duration: str | None = None,
    latency: str = "pending_p99",
    sample: int | None = None,
    sampling: str = "latin-hypercube",
    threads: int | None = None,
    pricing_data: Path | None = None,
    progress: Progress = False,
) -> Sweep:
    """Tries settings of a scenario and finds the front of cost against waiting.

    :param scenario: the scenario file; or its text, a dictionary, or a :class:`Scenario` with changes
    :param set: what to try for each path: a list of values, or a text such as ``"2..10:2"``
    :param policies: the policies to try each setting under; the scenario's first if there are none
    :param replications: how many seeds for each setting; the scenario's number if there is none
    :param seed: the first seed; the scenario's if there is none
    :param duration: how long to simulate each setting
    :param latency: the figure to hold cost against, one in seconds
    :param sample: try so many settings, drawn from the axes, in place of every combination
    :param sampling: how they are drawn: ``"latin-hypercube"`` or ``"random"``
    :param threads: how many simulations run at once; one for each processor if there is no number. Nothing depends on it.
    :param pricing_data: a directory of prices in place of the built-in ones
    :param progress: ``True`` for a bar (needs tqdm), or a function that gets the numbers of completed and of planned simulations
    :raises Error: if anything of it cannot be used
    """
    with classified(pricing_data), opened(scenario) as (path, changes), shown(progress, "sweep") as display:
        # A change is an axis with one value.
        axes = [*changes_as_words(changes), *(_axis(name, values) for name, values in set.items())]
        native = _nodecast.sweep(
            path, axes, _names(policies), replications, seed, duration, latency, sample, sampling, threads, pricing_data, display
        )
    return Sweep(native)


def pack(
    files: Path | Iterable[Path],
    region: str | None = None,
    *,
    zones: Iterable[str] = (),
    karpenter: str | None = None,
    packer: str = "karpenter",
    explain: str | None = None,
    time_limit: float | None = None,
    pricing_data: Path | None = None,
) -> Packing:
    """Shows which nodes Karpenter would launch right now for the pods of some files.

    :param files: manifests, what kubectl prints of a cluster, or tables of pods
    :param region: the region; that of the files if there is none
    :param zones: the zones of the cluster's subnets; those of the files, or all, if there are none
    :param karpenter: the release of Karpenter; that of the files if there is none, or v1.13
    :param packer: ``"karpenter"``, or ``"cost-aware"`` for the cheapest nodes under the same constraints
    :param explain: a pod, of which the answer is to say why each NodePool can or cannot take it
    :param time_limit: seconds after which the search for a cheaper plan, and then that for a better bound, ends
    :param pricing_data: a directory of prices in place of the built-in ones
    :raises Error: if anything of it cannot be used
    """
    names = [files] if isinstance(files, (str, PathLike)) else list(files)
    with classified(pricing_data):
        native = _nodecast.pack(names, region, _names(zones), karpenter, packer, explain, time_limit, pricing_data)
    return Packing(native)
