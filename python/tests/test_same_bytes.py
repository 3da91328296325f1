"""What the package writes and returns is what the program writes and prints."""

import nodecast
from conftest import files

RUN = "scenarios/eks-101/scenario.yaml"
STORM = "scenarios/spot-storm/scenario.yaml"
TUNING = "scenarios/consolidation-tuning/scenario.yaml"
AFTER = "NodePool[spot].spec.disruption.consolidateAfter"
PACK = ["scenarios/pack/provisioners.yaml", "scenarios/pack/inflate.yaml"]


def test_a_run(program, tmp_path):
    printed = program("run", RUN, "--out", tmp_path / "program", "--quiet").stdout
    run = nodecast.run(RUN)
    run.write(tmp_path / "python")
    theirs, ours = files(tmp_path / "program"), files(tmp_path / "python")
    assert "summary.json" in theirs and "report.html" in theirs and "pods.csv" in theirs
    assert ours == theirs
    assert run.summary_json().encode() == theirs["summary.json"]
    assert str(run) == printed


def test_a_run_with_everything_stated(program, tmp_path):
    words = ["--policy", "today", "--seed", "18446744073709551615", "--open-metrics=2m", "--duration", "40m"]
    scenario = "scenarios/multi-architecture/scenario.yaml"
    policy = nodecast.run(scenario, duration="5m").summary.about.policy
    words[1] = policy
    setting = ["--set", "NodePool.spec.disruption.consolidateAfter=2m"]
    program("run", scenario, *words, *setting, "--out", tmp_path / "program", "--quiet")
    run = nodecast.run(
        scenario, policy, 2**64 - 1, {"NodePool.spec.disruption.consolidateAfter": "2m"}, duration="40m"
    )
    run.write(tmp_path / "python", open_metrics="2m")
    theirs = files(tmp_path / "program")
    assert "metrics.om" in theirs
    assert files(tmp_path / "python") == theirs


def test_a_comparison(program, tmp_path):
    words = ["--replications", "2", "--seed", "3", "--duration", "30m"]
    printed = program("compare", STORM, *words, "--out", tmp_path / "program", "--quiet").stdout
    compared = nodecast.compare(STORM, replications=2, seed=3, duration="30m", threads=1)
    compared.write(tmp_path / "python")
    theirs = files(tmp_path / "program")
    assert files(tmp_path / "python") == theirs
    assert compared.comparison_json().encode() == theirs["comparison.json"]
    assert str(compared) == printed


def test_a_sweep(program, tmp_path):
    words = ["--set", f"{AFTER}=30s,5m", "--set", "duration=20m", "--replications", "1"]
    printed = program("sweep", TUNING, *words, "--out", tmp_path / "program", "--quiet").stdout
    swept = nodecast.sweep(TUNING, {AFTER: ["30s", "5m"], "duration": "20m"}, replications=1)
    swept.write(tmp_path / "python")
    theirs = files(tmp_path / "program")
    assert files(tmp_path / "python") == theirs
    assert swept.sweep_json().encode() == theirs["sweep.json"]
    assert str(swept) == printed


def test_packing(program):
    table = program("pack", *PACK, "--region", "us-east-1", "--quiet").stdout
    json = program("pack", *PACK, "--region", "us-east-1", "--format", "json").stdout
    packing = nodecast.pack(PACK, region="us-east-1")
    assert (str(packing), packing.pack_json()) == (table, json)


def test_the_command_of_the_package(tmp_path):
    import subprocess
    import sys

    command = [sys.executable, "-m", "nodecast"]
    version = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
    assert version.stdout == f"nodecast {nodecast.__version__}\n"
    bad = subprocess.run([*command, "run", "nowhere.yaml", "--format", "json"], capture_output=True, text=True)
    assert bad.returncode == 2
    assert '"message": "no such file: `nowhere.yaml`"' in bad.stdout
    # Whoever reads only the beginning has read what he wanted.
    head = f"{sys.executable} -m nodecast schema | head -n 1; exit ${{PIPESTATUS[0]}}"
    assert subprocess.run(["bash", "-c", head], capture_output=True).returncode == 0
