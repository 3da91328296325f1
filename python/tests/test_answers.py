"""Figures, tables and errors as Python has them."""

import csv
import json
import signal
import threading
import time
from datetime import datetime

import nodecast
import polars
import pyarrow
import pytest

EKS = "scenarios/eks-101/scenario.yaml"
STORM = "scenarios/spot-storm/scenario.yaml"
TABLES = ["timeline", "workloads", "metrics", "pods", "nodes", "bill"]


@pytest.fixture(scope="module")
def run():
    return nodecast.run(EKS)


def test_figures_are_numbers_with_the_names_of_the_program(run):
    cost = run.summary.cost
    assert run.cost == cost.total == run["cost"] == run.summary["cost"]["total"] > 0
    assert run.cost.currency == "USD" and isinstance(run.cost + 1, float)
    assert run.pending_p99 == run.summary.pods.wait_for_node.p99_seconds
    line = next(line for line in str(run).splitlines() if line.startswith("Cost "))
    assert f"= ${float(run.cost):.2f} for " in line
    assert set(run.figures) <= set(dir(run))
    with pytest.raises(AttributeError, match="known are cost, "):
        run.costs


def test_an_amount_survives_being_sent_to_another_process(run):
    import pickle

    again = pickle.loads(pickle.dumps(run.figures))
    assert again == run.figures and again.cost.currency == "USD" and str(again.cost) == str(run.cost)


def same(cell, value):
    """Whether a cell of a file says what a value of a column says."""
    if value is None:
        return cell == ""
    if isinstance(value, bool):
        return cell == str(value).lower()
    if isinstance(value, datetime):
        return datetime.fromisoformat(cell.replace("Z", "+00:00")) == value
    if isinstance(value, (int, float)):
        return float(cell) == value
    return cell == value


@pytest.mark.parametrize("name", TABLES)
def test_a_table_holds_what_its_file_holds(run, tmp_path_factory, name):
    out = tmp_path_factory.mktemp("report") / "report"
    run.write(out)
    with open(out / f"{name}.csv", newline="") as file:
        header, *rows = csv.reader(file)
    table = pyarrow.table(getattr(run, name))
    assert table.column_names == header == getattr(run, name).column_names
    assert table.num_rows == len(rows) == len(getattr(run, name)) > 0
    for column, name in enumerate(header):
        for number, value in enumerate(table[name].to_pylist()):
            assert same(rows[number][column], value), (name, number, rows[number][column], value)


def test_what_vertical_autoscalers_recommend_is_a_table():
    changes = {"duration": "2h", "warm_up": "0s"}
    run = nodecast.run("scenarios/right-sizing/scenario.yaml", policy="in-place", set=changes)
    rows = pyarrow.table(run.recommendations).to_pylist()
    assert {row["container"] for row in rows} == {"app"} and len({row["workload"] for row in rows}) == 8


def test_events_hold_what_their_file_holds(run, tmp_path):
    run.write(tmp_path / "report")
    lines = [json.loads(line) for line in open(tmp_path / "report" / "events.jsonl")]
    rows = pyarrow.table(run.events).to_pylist()
    assert len(rows) == len(lines) > 100
    for row, line in zip(rows, lines):
        row["time"] = row["time"].isoformat().replace("+00:00", "Z")
        line["time"] = datetime.fromisoformat(line["time"].replace("Z", "+00:00")).isoformat().replace("+00:00", "Z")
        assert {key: value for key, value in row.items() if value is not None} == line


def test_frames(run):
    frame = run.pods.to_polars()
    assert isinstance(frame, polars.DataFrame) and frame.height == len(run.pods)
    assert frame["wait_for_node_seconds"].max() == run.summary.pods.wait_for_node.max_seconds
    assert polars.DataFrame(run.bill)["amount"].sum() == pytest.approx(run.cost)
    assert run.timeline.to_pyarrow().schema.field("time").type == pyarrow.timestamp("us", tz="UTC")
    # Twice from the same table, and after it is gone.
    streams = [pyarrow.table(nodecast.run(EKS, duration="10m").nodes) for _ in range(2)]
    assert streams[0].equals(streams[1])


def test_a_table_without_rows_has_its_columns(run):
    queues = pyarrow.table(run.queues)
    assert queues.num_rows == 0 and queues.schema.field("waiting").type == pyarrow.float64()


def test_what_a_comparison_says():
    compared = nodecast.compare(STORM, replications=2, duration="20m")
    first, other = (policy.name for policy in compared.comparison.policies[:2])
    frame = compared.figures.to_polars()
    row = frame.row(by_predicate=(polars.col("policy") == other) & (polars.col("figure") == "cost"), named=True)
    difference = compared[other].cost.against_first.difference
    assert (row["difference"], row["difference_low"]) == (difference.mean, difference.low)
    assert compared[first].cost.against_first is None
    seeds = compared.replications.to_polars()
    assert seeds.height == 2 * len(compared.comparison.policies) and seeds["seed"].dtype == polars.UInt64
    mean = seeds.filter(polars.col("policy") == other)["cost"].mean()
    assert mean == pytest.approx(compared[other].cost.mean.mean)


def test_what_a_sweep_says():
    swept = nodecast.sweep(STORM, {"duration": ["10m", "20m"]}, replications=1)
    settings = swept.settings.to_polars()
    assert settings["duration"].to_list() == ["10m", "20m"]
    assert settings["on_front"].to_list() == [number in swept.sweep.front for number in range(2)]
    assert settings["cost"][0] < settings["cost"][1]


def test_what_packing_says():
    files = ["scenarios/pack/provisioners.yaml", "scenarios/pack/inflate.yaml"]
    packing = nodecast.pack(files, region="us-east-1", explain=None)
    launches = packing.launches.to_polars()
    assert launches.height == packing.summary.new_nodes > 0
    assert launches["per_hour"].sum() == pytest.approx(packing.summary.per_hour)
    cheaper = nodecast.pack(files, region="us-east-1", packer="cost-aware")
    assert cheaper.summary.per_hour <= packing.summary.per_hour


def test_values_to_set_may_be_of_python():
    path = "NodePool[default].spec.limits"
    texts = nodecast.run(STORM, set={path: '{"cpu": 24}', "duration": "10m"})
    values = nodecast.run(STORM, set={path: {"cpu": 24}}, duration="10m")
    assert values.summary.event_hash == texts.summary.event_hash
    assert nodecast.run(STORM, set={"seed": 5, "duration": "10m"}).summary.about.seed == 5


def test_an_error_says_where_and_reads_as_in_a_terminal(program, tmp_path):
    scenario = tmp_path / "wrong.yaml"
    scenario.write_text("name: wrong\nregion: us-east-1\ndurations: 1h\n")
    with pytest.raises(nodecast.Error) as raised:
        nodecast.run(scenario)
    error = raised.value
    assert (error.file, error.line, error.column) == (str(scenario), 3, 1)
    assert error.message == "unknown key `durations` in a scenario"
    assert error.help == "did you mean `duration`?" and error.exit_code == 2
    assert str(error) + "\n" == program("run", scenario, code=2).stderr


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: nodecast.run("nowhere.yaml"), "no such file"),
        (lambda: nodecast.run(EKS, "cheapest"), "cheapest"),
        (lambda: nodecast.run(EKS, duration="5"), "`duration`: missing unit"),
        (lambda: nodecast.run(EKS, set={"durations": "5m"}), "unknown key"),
        (lambda: nodecast.run(EKS, duration="5m", set={"duration": "6m"}), "both set the duration"),
        (lambda: nodecast.run(EKS, pricing_data="scenarios"), "scenarios"),
        (lambda: nodecast.compare(EKS, ["a", "a"]), "a"),
        (lambda: nodecast.compare(EKS, precision=0), "`precision`"),
        (lambda: nodecast.compare(EKS, replications=0), "`replications`: has to be from 1 to 100000"),
        (lambda: nodecast.compare(EKS, threads=0), "`threads`"),
        (lambda: nodecast.sweep(EKS, {"duration": "1m..2m"}, latency="cost"), "unknown metric `cost`"),
        (lambda: nodecast.sweep(EKS, {"duration": ["1m"]}, sampling="dice"), "`sampling`"),
        (lambda: nodecast.pack(["scenarios/pack/inflate.yaml"], packer="tetris"), "`packer`"),
        (lambda: nodecast.pack(["scenarios/pack/inflate.yaml"], karpenter="v9"), "`karpenter`"),
        (lambda: nodecast.pack(["scenarios/pack/inflate.yaml"], time_limit=-1), "`time_limit`"),
        (lambda: nodecast.run(EKS, duration="1m").write("scenarios/eks-101"), "is not replaced"),
        (lambda: nodecast.run(EKS, duration="1m").write("reports/x", open_metrics="1h"), "`open_metrics`"),
    ],
)
def test_what_cannot_be_used_is_an_error(call, message):
    with pytest.raises(nodecast.Error, match=message):
        call()


def test_a_change_without_effect_is_a_warning():
    run = nodecast.run(STORM, set={"NodePool[default].spec.weight": 0}, duration="1m")
    assert any("has no effect" in line for line in run.warnings), run.warnings


def test_what_packing_leaves_out_is_a_warning(tmp_path):
    pods = tmp_path / "pods.yaml"
    pods.write_text(open("scenarios/pack/inflate.yaml").read().replace("replicas:", "replica: 9\n  replicas:", 1))
    packing = nodecast.pack([pods, "scenarios/pack/provisioners.yaml"], region="us-east-1")
    of_pods = [line for line in packing.warnings if line.startswith(f"{pods}:")]
    assert len(of_pods) == 1 and "`replica`" in of_pods[0], packing.warnings
    # The default release reads no Provisioner.
    assert any("Provisioner" in line for line in packing.warnings), packing.warnings


def test_other_threads_go_on_while_one_simulates():
    ticks, over = [], threading.Event()

    def tick():
        while not over.wait(0.002):
            ticks.append(time.monotonic())

    ticking = threading.Thread(target=tick)
    ticking.start()
    began = time.monotonic()
    nodecast.run(STORM)
    ended = time.monotonic()
    over.set()
    ticking.join()
    inside = [at for at in ticks if began < at < ended]
    # With the lock held there would be none.
    assert len(inside) >= (ended - began) / 0.1


def test_ctrl_c_ends_a_comparison():
    # Python leaves the signal alone where it was told to ignore it, as whoever works in the background is.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(1.0, signal.raise_signal, [signal.SIGINT])
    timer.start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        nodecast.compare(STORM, replications=100_000)
    assert time.monotonic() - began < 60
    timer.join()
    signal.signal(signal.SIGINT, before)
