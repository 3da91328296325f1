"""Further commands of the program, with their JSON as answers.

Each runs the program in a process of its own, so that Ctrl-C ends it and its progress is not in the way.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path as _Path
from typing import Any, Optional, Union

from . import _html
from ._errors import specific
from ._nodecast import Error
from ._scenario import Source, opened
from ._values import Figures, changes_as_words, read, read_rows

Path = Union[str, "PathLike[str]"]
Value = Union[None, bool, int, float, str, "PathLike[str]", Iterable[Union[str, int, float, "PathLike[str]"]]]


class Answer:
    """What a command prints with ``--format json``, by key or by attribute; docs/outputs.md explains the keys."""

    def __init__(self, command: str, text: str) -> None:
        self.command = command
        self._text = text

    def json(self) -> str:
        """The bytes of the answer as text."""
        return self._text

    @cached_property
    def answer(self) -> Figures:
        """The whole answer."""
        return read(self._text)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.answer, name)

    def __getitem__(self, name: str) -> Any:
        return self.answer[name]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.answer]

    def __repr__(self) -> str:
        return f"<nodecast answer of {self.command}: {', '.join(self.answer)}>"

    def _repr_html_(self) -> str:
        rows = [(key, value) for key, value in self.answer.items() if isinstance(value, (str, int, float)) and key != "schema_version"]
        return _html.table(rows, title=f"nodecast {self.command}")


class Check(Sequence["Figures"]):
    """A row for each metric that a baseline has: ``was``, ``is``, ``change``, ``standing``. ``passed`` says whether none got worse."""

    def __init__(self, text: str, passed: bool) -> None:
        self._text, self.passed = text, passed
        self._rows = read_rows(text)

    def json(self) -> str:
        """The bytes of the answer as text."""
        return self._text

    @property
    def worse(self) -> list[Figures]:
        """The rows that got worse."""
        return [row for row in self._rows if row.standing == "worse"]

    def __getitem__(self, place: Any) -> Any:
        rows: Any = self._rows
        return rows[place]

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"<nodecast.Check: {len(self)} metrics, {len(self.worse)} worse>"

    def _repr_html_(self) -> str:
        moved = [row for row in self._rows if row.standing not in ("same", "within")]
        rows = [(row.scenario, row.policy, row.figure, _html.number(row.was), _html.number(row["is"]), row.standing) for row in moved]
        return _html.table(rows, ["scenario", "policy", "metric", "before", "now", "verdict"], repr(self).strip("<>"))


def _words(options: Mapping[str, Value]) -> list[str]:
    """Options by name; a list is an option several times, ``True`` one without a value."""
    words: list[str] = []
    for name, value in options.items():
        option = f"--{name.rstrip('_').replace('_', '-')}"
        if value is None or value is False:
            continue
        if value is True:
            words.append(option)
        elif isinstance(value, (str, int, float, PathLike)):
            words += [option, str(fspath(value) if isinstance(value, PathLike) else value)]
        else:
            for one in value:
                words += [option, str(fspath(one) if isinstance(one, PathLike) else one)]
    return words


def _listed(values: Union[str, Iterable[str], None]) -> Optional[str]:
    """A list as the command line has it, with commas."""
    return values if values is None or isinstance(values, str) else ",".join(values)


def _run(command: str, words: Sequence[Union[str, Path]], options: Mapping[str, Value], *, ok: Sequence[int] = (0,), json_output: bool = True) -> tuple[str, int]:
    """Standard output and exit code of a command; raises what it fails with."""
    line = [sys.executable, "-m", "nodecast", command, *(fspath(word) for word in words), *_words(options)]
    done = subprocess.run([*line, "--format", "json"] if json_output else line, capture_output=True, text=True, check=False)
    if done.returncode in ok:
        return done.stdout, done.returncode
    error = Error(done.stderr.rstrip("\n"))
    try:
        parts = json.loads(done.stdout)["error"]
    except (ValueError, KeyError, TypeError):
        first = next((part.strip() for part in done.stderr.splitlines() if part.strip()), "there is no answer")
        parts = {"message": first.partition("error: ")[2] or first}
    for part in ("message", "file", "line", "column", "help"):
        setattr(error, part, parts.get(part))
    error.exit_code = done.returncode
    prices = options.get("pricing_data")
    raise specific(error, prices if isinstance(prices, (str, PathLike)) else None)


def _scenario(command: str, scenario: Source, set: Optional[Mapping[str, object]], options: Mapping[str, Value]) -> Answer:
    with opened(scenario, set) as (path, changes):
        text, _ = _run(command, [path], {"set": changes_as_words(changes), "quiet": True, **options})
    return Answer(command, text)


def diff(
    before: Source,
    after: Optional[Path] = None,
    set: Optional[Mapping[str, object]] = None,
    *,
    policy: Optional[str] = None,
    duration: Optional[str] = None,
    replications: Optional[int] = None,
    seed: Optional[int] = None,
    threads: Optional[int] = None,
    pricing_data: Optional[Path] = None,
) -> Answer:
    """Runs a scenario with and without a change, with the same seeds. The answer has the keys of comparison.json.

    :param before: the scenario; its own changes apply to ``after`` as well if that is missing
    :param after: the scenario with the change; without it ``before`` with ``set``
    :param set: the change, by path
    :raises Error: if anything of it cannot be used
    """
    options: dict[str, Value] = {"policy": policy, "duration": duration, "replications": replications, "seed": seed, "threads": threads,
                                 "pricing_data": pricing_data, "quiet": True}
    with opened(before, set) as (path, changes):
        files = [path] if after is None else [path, after]
        text, _ = _run("diff", files, {"set": changes_as_words(changes), **options})
    return Answer("diff", text)


def rightsize(
    scenario: Source,
    policy: Optional[str] = None,
    replications: Optional[int] = None,
    set: Optional[Mapping[str, object]] = None,
    *,
    seed: Optional[int] = None,
    duration: Optional[str] = None,
    write: Optional[Path] = None,
    size: Optional[str] = None,
    html: Optional[Path] = None,
    threads: Optional[int] = None,
    pricing_data: Optional[Path] = None,
) -> Answer:
    """Compares requests with usage, and prices the cluster with other requests.

    :param write: a directory for the new requests, as a component of kustomize
    :param size: which of them: ``"recommended"``, ``"p50"``, ``"p90"``, or ``"p99"``
    :param html: a file for the result as a page
    :raises Error: if anything of it cannot be used
    """
    return _scenario("rightsize", scenario, set, {
        "policy": policy, "replications": replications, "seed": seed, "duration": duration, "write": write, "size": size,
        "html": html, "threads": threads, "pricing_data": pricing_data})


def recommend(
    scenario: Source,
    policy: Optional[str] = None,
    simulations: Optional[int] = None,
    set: Optional[Mapping[str, object]] = None,
    *,
    levers: Union[str, Iterable[str], None] = None,
    without: Union[str, Iterable[str], None] = None,
    seed: Optional[int] = None,
    duration: Optional[str] = None,
    changes: Optional[int] = None,
    write: Optional[Path] = None,
    html: Optional[Path] = None,
    threads: Optional[int] = None,
    pricing_data: Optional[Path] = None,
) -> Answer:
    """Finds changes that cut cost and still meet the objectives. The answer has the keys of recommendation.json.

    :param simulations: most simulations of the search; the same number gives the same answer
    :param levers: levers to try
    :param without: levers to leave unchanged
    :param write: a directory for the changed objects and a scenario with them
    :param html: a file for the result as a page
    :raises Error: if anything of it cannot be used
    """
    return _scenario("recommend", scenario, set, {
        "policy": policy, "simulations": simulations, "levers": _listed(levers), "without": _listed(without), "seed": seed,
        "duration": duration, "changes": changes, "write": write, "html": html, "threads": threads, "pricing_data": pricing_data})


def backtest(
    scenario: Source,
    recording: Path,
    policy: Optional[str] = None,
    replications: Optional[int] = None,
    set: Optional[Mapping[str, object]] = None,
    *,
    split: Optional[str] = None,
    mode: Optional[str] = None,
    ablation: bool = False,
    bill: Union[Path, Iterable[Path], None] = None,
    cluster: Optional[str] = None,
    share: Optional[Mapping[str, str]] = None,
    seed: Optional[int] = None,
    out: Optional[Path] = None,
    threads: Optional[int] = None,
    pricing_data: Optional[Path] = None,
) -> Answer:
    """Compares a forecast with recorded data, metric by metric. The answer has the keys of backtest.json.

    :param recording: a directory that ``observe`` or a run wrote
    :param split: evaluate what follows this long after the start, for example ``"7d"``
    :param mode: ``"replay"`` or ``"forecast"``
    :param bill: files of the bill
    :param share: the share of this cluster in lines that name none, by usage type: ``{"nat": "100%"}``
    :param out: a directory for the report; without it the report is not kept
    :raises Error: if anything of it cannot be used
    """
    with tempfile.TemporaryDirectory(prefix="nodecast-") as place:
        return _scenario("backtest", scenario, set, {
            "from": recording, "policy": policy, "replications": replications, "split": split, "mode": mode, "ablation": ablation,
            "bill": bill, "cluster": cluster, "share": [f"{name}={value}" for name, value in (share or {}).items()], "seed": seed,
            "out": _Path(place) / "backtest" if out is None else out, "threads": threads, "pricing_data": pricing_data})


def calibrate(
    scenario: Path,
    recordings: Union[Path, Iterable[Path]],
    out: Path = "calibration.yaml",
    *,
    since: Optional[str] = None,
    until: Optional[str] = None,
    effects: bool = True,
    replications: Optional[int] = None,
    threads: Optional[int] = None,
    pricing_data: Optional[Path] = None,
) -> Answer:
    """Fits the assumptions of a scenario to recorded data, and writes them for its key ``calibration``.

    :param recordings: files, directories of files, or directories of reports
    :param out: the file for the fitted values
    :param effects: whether simulations measure the effect of each value
    :raises Error: if anything of it cannot be used
    """
    text, _ = _run("calibrate", [scenario], {
        "from": recordings, "out": out, "since": since, "until": until, "no_effects": not effects, "replications": replications,
        "threads": threads, "pricing_data": pricing_data, "quiet": True})
    return Answer("calibrate", text)


def observe(
    out: Path,
    prometheus: Optional[str] = None,
    *,
    answers: Optional[Path] = None,
    dump: Optional[Path] = None,
    window: Optional[str] = None,
    to: Optional[str] = None,
    match: Optional[str] = None,
    namespaces: Iterable[str] = (),
    bearer_file: Optional[Path] = None,
    basic_file: Optional[Path] = None,
    headers: Optional[Mapping[str, Path]] = None,
    params: Optional[Mapping[str, str]] = None,
    timeout: Optional[str] = None,
) -> Answer:
    """Imports load, nodes, and waits from Prometheus. The answer has the keys of observation.json.

    :param out: the directory for the tables; an interrupted import continues there
    :param prometheus: the address of the server
    :param answers: a directory of saved answers in place of a server
    :param dump: a dump of the cluster; workloads without data are listed
    :param headers: HTTP headers, each with the file of its value
    :raises Error: if anything of it cannot be used
    """
    text, _ = _run("observe", [], {
        "out": out, "prometheus": prometheus, "answers": answers, "from": dump, "window": window, "to": to, "match": match,
        "namespace": list(namespaces), "bearer_file": bearer_file, "basic_file": basic_file,
        "header": [f"{name}={fspath(path)}" for name, path in (headers or {}).items()],
        "param": [f"{name}={value}" for name, value in (params or {}).items()], "timeout": timeout, "quiet": True})
    return Answer("observe", text)


def init(
    directory: Path,
    sources: Union[Path, Iterable[Path]] = (),
    *,
    region: Optional[str] = None,
    karpenter: Optional[str] = None,
    anonymise: bool = False,
    force: bool = False,
    pricing_data: Optional[Path] = None,
) -> _Path:
    """Creates a scenario: a commented example, or one of dumps and observations. Returns the scenario file.

    :param directory: the directory, which is created if it is missing
    :param sources: dumps of the cluster, and directories that ``observe`` or a run wrote
    :param anonymise: write other names for everything that could identify the cluster
    :param force: overwrite files
    :raises Error: if anything of it cannot be used
    """
    _run("init", [directory], {
        "from": sources if isinstance(sources, (str, PathLike)) else list(sources), "region": region, "karpenter": karpenter,
        "anonymise": anonymise, "force": force, "pricing_data": pricing_data}, json_output=False)
    return _Path(directory) / "scenario.yaml"


def explain(
    scenario: Source,
    *,
    node: Optional[str] = None,
    pod: Optional[str] = None,
    decision: Optional[str] = None,
    at: Optional[str] = None,
    policy: Optional[str] = None,
    seed: Optional[int] = None,
    set: Optional[Mapping[str, object]] = None,
    duration: Optional[str] = None,
    region: Optional[str] = None,
    pricing_data: Optional[Path] = None,
) -> Answer:
    """Explains why a node stays, why a pod waits, or why a decision was made. One of ``node``, ``pod``, and ``decision`` is given.

    :param scenario: a scenario, or a dump of a cluster
    :param at: the simulated time, for example ``"11m"``
    :raises Error: if anything of it cannot be used
    """
    asked = [(kind, name) for kind, name in (("node", node), ("pod", pod), ("decision", decision)) if name is not None]
    if len(asked) != 1:
        raise TypeError("one of node, pod, and decision is needed")
    with opened(scenario, set) as (path, changes):
        options: dict[str, Value] = {"policy": policy, "seed": seed, "set": changes_as_words(changes), "duration": duration,
                                     "region": region, "pricing_data": pricing_data}
        # Its own options precede the question, whose options follow.
        text, _ = _run("explain", [path, *_words(options), *asked[0]], {"at": at})
    return Answer("explain", text)


def drain(
    cluster: Path,
    nodes: Union[str, Iterable[str]],
    *,
    region: Optional[str] = None,
    karpenter: Optional[str] = None,
    html: Optional[Path] = None,
    pricing_data: Optional[Path] = None,
) -> Answer:
    """Shows where pods would go if nodes of a dump were drained.

    :param cluster: a dump of the cluster
    :param nodes: the names of the nodes
    :param html: a file for the result as a page
    :raises Error: if anything of it cannot be used
    """
    names = [nodes] if isinstance(nodes, str) else list(nodes)
    text, _ = _run("drain", [cluster, *names], {
        "region": region, "karpenter": karpenter, "html": html, "pricing_data": pricing_data})
    return Answer("drain", text)


def check(
    baseline: Path,
    scenarios: Union[Path, Iterable[Path]] = (),
    set: Optional[Mapping[str, object]] = None,
    *,
    tolerance: Optional[str] = None,
    markdown: Optional[Path] = None,
    junit: Optional[Path] = None,
    threads: Optional[int] = None,
    pricing_data: Optional[Path] = None,
) -> Check:
    """Checks scenarios against a committed baseline.

    :param baseline: the file that ``nodecast check --update`` wrote
    :param scenarios: scenarios of the baseline; all if there are none
    :param tolerance: the allowed regression, for example ``"5%"``
    :raises Error: if anything of it cannot be used, or if the baseline is of another model (``exit_code`` 4)
    """
    names = [scenarios] if isinstance(scenarios, (str, PathLike)) else list(scenarios)
    text, code = _run("check", names, {
        "baseline": baseline, "set": changes_as_words(set or {}), "tolerance": tolerance, "markdown": markdown, "junit": junit,
        "threads": threads, "pricing_data": pricing_data, "quiet": True}, ok=(0, 1))
    return Check(text, code == 0)
