"""Run a nodecast experiment on a Ray cluster.

    python deploy/ray/nodecast_ray.py --shards 32 -- compare my-scenario/scenario.yaml --replications 2000

Everything after `--` is a `nodecast compare` or `nodecast sweep` as one machine would run it. The experiment is cut into
shards; Ray hands them to its workers and hands a shard to another worker when the one that had it died. The files of the
scenario's folder travel to the workers, so that no file system has to be shared; the program has to be on every machine
(--nodecast names it, by default the one on the PATH). The parts come back and `nodecast merge` makes one report of them,
with the same bytes as on a single machine.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

import ray

# A shard whose worker died is run again at most so many times.
RETRIES = 8


class ShardFailed(Exception):
    """nodecast itself refused: running it again would not help."""


@ray.remote(max_retries=RETRIES, num_cpus=1)
def run_shard(program: str, words: list[str], shard: str, files: dict[str, bytes]) -> bytes:
    """Runs one shard in a folder of its own and returns its part."""
    with tempfile.TemporaryDirectory(prefix="nodecast-") as folder:
        for name, content in files.items():
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        command = [program, *words, "--shard", shard, "--out", "part", "--threads", "1", "--quiet"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ShardFailed(f"shard {shard} ended with {done.returncode}:\n{done.stderr}")
        (part,) = pathlib.Path(folder, "part").glob("part-*.json")
        return part.read_bytes()


def files_of(scenario: str) -> dict[str, bytes]:
    """The files of the scenario's folder, by the names under which the scenario is run."""
    path = pathlib.PurePath(os.path.normpath(scenario))
    if path.is_absolute() or ".." in path.parts:
        sys.exit(f"{scenario}: name the scenario relative to where you are, below it")
    folder = pathlib.Path(path).parent
    found = sorted(file for file in folder.rglob("*") if file.is_file())
    if folder == pathlib.Path("."):
        # A scenario in the current folder: its own files, not everything that lies below.
        found = sorted(file for file in folder.iterdir() if file.is_file())
    return {str(file): file.read_bytes() for file in found}


def run(program: str, words: list[str], shards: int, merge_words: list[str], done=lambda count: None) -> int:
    """Runs `words` in `shards` parts on the Ray cluster that is connected, and merges; returns the exit code of the merge.

    `done` is told how many shards have come back.
    """
    files = ray.put(files_of(words[1]))
    names = [f"{number}/{shards}" for number in range(1, shards + 1)]
    waiting = {run_shard.remote(program, words, name, files): name for name in names}
    parts: dict[str, bytes] = {}
    while waiting:
        finished, _ = ray.wait(list(waiting), num_returns=1)
        for reference in finished:
            parts[waiting.pop(reference)] = ray.get(reference)
            done(len(parts))
    with tempfile.TemporaryDirectory(prefix="nodecast-parts-") as folder:
        paths = []
        for name, content in parts.items():
            path = pathlib.Path(folder, f"part-{name.replace('/', '-of-')}.json")
            path.write_bytes(content)
            paths.append(str(path))
        return subprocess.run([program, "merge", *sorted(paths), *merge_words], check=False).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description="Run a nodecast experiment on a Ray cluster.")
    parser.add_argument("--address", default="auto", help="the Ray cluster; `local` starts one on this machine")
    parser.add_argument("--nodecast", default="nodecast", help="the program, as every machine of the cluster finds it")
    parser.add_argument("--shards", type=int, required=True, help="how many parts; a few for each processor")
    parser.add_argument("--out", help="the directory for the report")
    parser.add_argument("words", nargs=argparse.REMAINDER, help="-- compare|sweep SCENARIO OPTIONS")
    arguments = parser.parse_args()
    words = arguments.words[1:] if arguments.words[:1] == ["--"] else arguments.words
    if len(words) < 2 or words[0] not in ("compare", "sweep"):
        parser.error("after `--` comes `compare SCENARIO` or `sweep SCENARIO`, with the options of one machine")
    if arguments.shards < 1:
        parser.error("--shards is at least 1")
    ray.init(address=None if arguments.address == "local" else arguments.address, log_to_driver=False)
    say = sys.stderr.isatty()

    def progress(count: int) -> None:
        if say:
            print(f"\r{count} of {arguments.shards} shards", end="", file=sys.stderr, flush=True)

    try:
        code = run(arguments.nodecast, words, arguments.shards, ["--out", arguments.out] if arguments.out else [], progress)
    except ray.exceptions.RayTaskError as error:
        print(error.cause, file=sys.stderr)
        return 2
    finally:
        if say:
            print(file=sys.stderr)
        ray.shutdown()
    return code


if __name__ == "__main__":
    sys.exit(main())
