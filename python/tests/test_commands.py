"""Commands that the package runs as programs, scenarios in other forms, and notebook output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nodecast
import pytest
from conftest import Program

STORM = "scenarios/spot-storm/scenario.yaml"
SHORT = {"duration": "10m"}
DUMP = "tests/data/dump/cluster.yaml"


def shown(answer: object) -> str:
    """What a notebook shows."""
    return str(getattr(answer, "_repr_html_")())


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("shop")
    return nodecast.init(place / "shop")


def test_diff_gives_json_of_command(program: Program) -> None:
    words = ["diff", STORM, "--set", "seed=7", "--duration", "10m", "--replications", "1", "--format", "json", "--quiet"]
    answer = nodecast.diff(STORM, set={"seed": 7}, duration="10m", replications=1)
    assert answer.json() == program(*words).stdout
    before, after = answer.policies
    assert (before.name, after["name"]) == ("before", "after") and "policies" in dir(answer)
    with pytest.raises(AttributeError, match="known are schema_version"):
        answer.nothing


def test_scenario_forms_give_equal_runs(shop: Path) -> None:
    by_file = nodecast.run(shop, set=SHORT)
    text = shop.read_text()
    by_text = nodecast.run(nodecast.Scenario(text, shop.parent), set=SHORT)
    scenario = nodecast.Scenario(shop)
    assert repr(scenario.with_({"seed": 2})) == f"<nodecast.Scenario of {shop}, 1 change>"
    by_changes = nodecast.run(scenario.with_(SHORT))
    assert by_file.summary.event_hash == by_text.summary.event_hash == by_changes.summary.event_hash
    assert scenario.changes == {} and "0 changes" in repr(scenario)
    assert not list(shop.parent.glob(".nodecast-*")), "the file of a text is removed"


def test_scenario_of_dictionary_runs(shop: Path) -> None:
    whole: dict[str, Any] = {
        "name": "dict",
        "region": "us-east-1",
        "start": "2026-11-24T00:00:00Z",
        "duration": "10m",
        "versions": {"kubernetes": "1.36", "karpenter": "v1.13"},
        "cluster": {"zones": ["us-east-1a"]},
        "manifests": ["cluster.yaml", "nodepool.yaml", "workloads.yaml"],
        "policies": [{"name": "only", "autoscaler": "karpenter"}],
    }
    scenario = nodecast.Scenario(whole, shop.parent)
    assert nodecast.run(scenario).summary.about.scenario == "dict"
    assert nodecast.run(scenario.with_({"seed": 5})).summary.about.seed == 5
    assert [policy.name for policy in nodecast.compare(scenario, replications=1).comparison.policies] == ["only"]
    with pytest.raises(nodecast.ScenarioError, match="unknown key `durations`"):
        nodecast.run(nodecast.Scenario({**whole, "durations": "1h"}, shop.parent))


def test_init_of_dump_and_drain(tmp_path: Path) -> None:
    scenario = nodecast.init(tmp_path / "own", [DUMP], anonymise=True)
    assert scenario.exists() and (scenario.parent / "anonymous.yaml").exists()
    with pytest.raises(nodecast.Error, match="overwrit|exists|there"):
        nodecast.init(tmp_path / "own", DUMP)
    dump = Path(DUMP).read_text()
    node = dump.split("kind: Node\n")[1].split("\n    name: ")[1].splitlines()[0]
    drained = nodecast.drain(DUMP, node)
    assert node in drained.json()
    explained = nodecast.explain(DUMP, node=node)
    assert node in explained.json() and "explain" in repr(explained)


def test_explain_asks_one_question() -> None:
    churn = "scenarios/churn/four-minutes/scenario.yaml"
    answer = nodecast.explain(churn, node="default-00001", at="11m")
    assert answer.at_seconds == 660.0 and "default-00001" in repr(answer.node)
    assert nodecast.explain(churn, decision="d1").decision is not None
    with pytest.raises(TypeError, match="one of node, pod, and decision"):
        nodecast.explain(churn)


def test_check_tells_regression(shop: Path, tmp_path: Path, program: Program) -> None:
    baseline = tmp_path / "baseline.json"
    program("check", "--baseline", baseline, "--update", "--replications", 1, "--duration", "1h", "--quiet", shop)
    same = nodecast.check(baseline)
    assert same.passed and not same.worse and len(same) > 20 and {row.standing for row in same} == {"same"}
    more = nodecast.check(baseline, set={"load[*].requests.scale": 5}, tolerance="1%", markdown=tmp_path / "a.md")
    assert not more.passed and more.worse and "cost" in shown(more) and (tmp_path / "a.md").exists()


def test_rightsize_recommend_and_backtest(shop: Path, tmp_path: Path) -> None:
    sizes = nodecast.rightsize(shop, replications=1, duration="2h")
    assert sizes.currency == "USD" and "currency" in shown(sizes)
    nodecast.run(shop, duration="2h").write(tmp_path / "record")
    judged = nodecast.backtest(shop, tmp_path / "record", replications=2, set={"duration": "2h"})
    assert judged.tally.figures > 0 and not Path("reports/shop-backtest").exists()
    advice = nodecast.recommend(shop, simulations=150, set={"duration": "1h"}, levers=["consolidation"], threads=1)
    assert advice.effort.used <= 150


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: nodecast.diff("nowhere.yaml", set={"seed": 2}), nodecast.Error, "no such file"),
        (lambda: nodecast.diff(STORM, set={"durations": "1m"}), nodecast.Error, "durations"),
        (lambda: nodecast.recommend(STORM, simulations=1), nodecast.Error, "40"),
        (lambda: nodecast.check("nowhere.json"), nodecast.Error, "cannot read the baseline"),
        (lambda: nodecast.observe("out", "http://127.0.0.1:1", answers="nowhere"), nodecast.Error, "."),
    ],
)
def test_invalid_input_raises(call: Any, kind: type[BaseException], message: str) -> None:
    with pytest.raises(kind, match=message) as raised:
        call()
    assert isinstance(raised.value, nodecast.Error) and raised.value.exit_code == 2 and raised.value.message


def test_errors_name_their_kind(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("name: wrong\nregion: us-east-1\ndurations: 1h\n")
    for call in (lambda: nodecast.run(wrong), lambda: nodecast.diff(wrong, set={"seed": 2}), lambda: nodecast.rightsize(wrong)):
        with pytest.raises(nodecast.ScenarioError) as raised:
            call()
        assert (raised.value.file, raised.value.line, raised.value.help) == (str(wrong), 3, "did you mean `duration`?")
    prices = tmp_path / "prices"
    prices.mkdir()
    (prices / "us-east-1.csv").write_text("wrong\n")
    with pytest.raises(nodecast.Error):
        nodecast.run(STORM, duration="1m", pricing_data=prices)


def test_notebooks_show_first_screens() -> None:
    run = nodecast.run(STORM, duration="20m")
    screen = shown(run)
    for words in ("<th>Cost</th>", "<th>Wait time</th>", "<th>Problems</th>", "<th>Assumptions</th>", "per month"):
        assert words in screen
    assert "<script" not in screen
    compared = nodecast.compare(STORM, replications=2, duration="10m")
    assert "95% confidence intervals" in shown(compared)
    swept = nodecast.sweep(STORM, {"duration": ["5m", "10m"]}, replications=1)
    assert "Pareto-optimal" in shown(swept) and "duration=5m" in shown(swept)
    packed = nodecast.pack(["scenarios/pack/provisioners.yaml", "scenarios/pack/inflate.yaml"], region="us-east-1")
    assert "new nodes" in shown(packed)


def test_long_frame_and_durations() -> None:
    compared = nodecast.compare(STORM, replications=2, duration="10m")
    long = compared.long()
    assert list(long.columns) == ["policy", "seed", "figure", "value"]
    policies = {policy.name for policy in compared.comparison.policies}
    assert set(long.policy) == policies and set(long[long.figure == "cost"].groupby("policy").size()) == {2}
    frame = nodecast.to_pandas(nodecast.run(STORM, duration="10m").pods)
    assert str(frame["wait_for_node"].dtype).startswith("timedelta64") and "wait_for_node_seconds" not in frame
    assert "wait_for_node_seconds" in nodecast.to_pandas(nodecast.run(STORM, duration="1m").pods, durations=False)


def test_answers_are_json() -> None:
    answer = nodecast.diff(STORM, set={"seed": 2}, duration="1m", replications=1)
    assert json.loads(answer.json()) == answer.answer


def test_progress_reaches_all_simulations(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    calls: list[tuple[int, int]] = []
    nodecast.compare(shop, replications=2, duration="10m", progress=lambda done, count: calls.append((done, count)))
    assert calls == sorted(calls) and calls[-1] == (calls[-1][1],) * 2 and calls[-1][1] >= 2
    nodecast.sweep(shop, {"seed": [1, 2, 3]}, replications=1, duration="10m", progress=True)
    assert "sweep: 100%" in capsys.readouterr().err


def test_exception_of_progress_ends_comparison(shop: Path) -> None:
    def fail(done: int, count: int) -> None:
        raise ValueError(f"{done} of {count}")

    with pytest.raises(ValueError, match=r"^\d+ of \d+$"):
        nodecast.compare(shop, replications=2, duration="10m", progress=fail)
