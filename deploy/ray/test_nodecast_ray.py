"""The Ray runner on a cluster of two nodes on this machine, one of which dies in the middle of a sweep.

    python deploy/ray/test_nodecast_ray.py PROGRAM

PROGRAM is the built nodecast. Ends with the number of checks that passed and failed.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import ray
import ray._private.services as services
from ray.cluster_utils import Cluster

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import nodecast_ray  # noqa: E402

# The workers cannot import a module from here; as a program of its own it travels by value anyway.
ray.cloudpickle.register_pickle_by_value(nodecast_ray)

# Everything stays on the loopback interface, also where the machine has an address of its own.
services.get_node_ip_address = lambda address="": "127.0.0.1"

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCENARIO = "scenarios/spot-storm"
WORDS = [
    "sweep",
    f"{SCENARIO}/scenario.yaml",
    "--set",
    "duration=2h,3h",
    "--set",
    "ec2.spot.prices=process,constant",
    "--replications",
    "3",
]
SHARDS = 6
# Two policies of the scenario, for a fleet.
POLICIES = "flexible,narrow"
# A dead node is found after seconds, not after the usual half minute.
HEALTH = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 1000, "health_check_failure_threshold": 5}
HEAD = {"num_cpus": 1, "node_ip_address": "127.0.0.1", "include_dashboard": False, "_system_config": HEALTH}


def contents(folder: pathlib.Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def counting(program: str, folder: pathlib.Path) -> str:
    """A program that notes each start in a file before it becomes nodecast, slowed so that a death meets a shard at work."""
    starts, wrapper = folder / "starts", folder / "nodecast"
    wrapper.write_text(f'#!/bin/sh\ncase "$*" in *--shard*) echo "$*" >> "{starts}"; sleep 6;; esac\nexec "{program}" "$@"\n')
    wrapper.chmod(0o755)
    return str(wrapper)


def wait_for_both(starts: pathlib.Path, done: int) -> None:
    """Waits until both nodes, which take one shard at a time, are at work, so that the one that dies loses a shard."""
    for _ in range(1200):
        if len(starts.read_text().splitlines()) - done >= 2:
            return
        time.sleep(0.05)


def main() -> int:
    program = os.path.abspath(sys.argv[1])
    results: list[tuple[str, bool]] = []
    with tempfile.TemporaryDirectory(prefix="nodecast-test-") as name:
        folder = pathlib.Path(name)
        shutil.copytree(ROOT / SCENARIO, folder / SCENARIO)
        os.chdir(folder)
        subprocess.run([program, *WORDS, "--out", "alone", "--quiet"], check=True, stdout=subprocess.DEVNULL)
        cluster = Cluster(initialize_head=True, head_node_args=HEAD)
        # Connected while the head is alone, so that it is not the doomed node that this program hangs on.
        ray.init(address=cluster.address, log_to_driver=False, _node_ip_address="127.0.0.1")
        doomed = cluster.add_node(num_cpus=1, node_ip_address="127.0.0.1")
        cluster.wait_for_nodes()
        results.append(("the cluster has two nodes", len([n for n in ray.nodes() if n["Alive"]]) == 2))
        died = []

        def kill_after_two(count: int) -> None:
            if count == 2 and not died:
                died.append(count)
                wait_for_both(folder / "starts", count)
                cluster.remove_node(doomed, allow_graceful=False)

        code = nodecast_ray.run(counting(program, folder), WORDS, SHARDS, ["--out", "on-ray", "--quiet"], kill_after_two)
        starts = (folder / "starts").read_text().splitlines()
        results.append(("a node died in the middle", bool(died)))
        results.append(("its shard was run again", len(starts) > SHARDS))
        results.append(("the merge succeeds", code == 0))
        results.append(("the report has the bytes of one machine", contents(folder / "on-ray") == contents(folder / "alone")))
        try:
            nodecast_ray.run(program, ["sweep", WORDS[1], "--set", "no-such-key=1"], 2, [])
            results.append(("a bad question is refused", False))
        except ray.exceptions.RayTaskError as error:
            results.append(("a bad question is refused", "no-such-key" in str(error)))
        fleet = "fleet: two\nclusters: [{ name: east, scenario: scenario.yaml }, { name: west, scenario: scenario.yaml }]\n"
        pathlib.Path(SCENARIO, "fleet.yaml").write_text(fleet)
        policies = ["--policies", POLICIES, "--replications", "2", "--duration", "1h"]
        code = nodecast_ray.run(program, ["compare", f"{SCENARIO}/fleet.yaml", *policies], 2, ["--quiet"])
        results.append(("a fleet is compared in shards", code == 0))
        ray.shutdown()
        cluster.shutdown()
        os.chdir("/")
    for what, passed in results:
        print(f"{'ok  ' if passed else 'FAIL'} {what}")
    failed = sum(not passed for _, passed in results)
    print(f"{len(results) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
