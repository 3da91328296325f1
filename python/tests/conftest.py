"""What the tests share: the project's scenarios, and the program that the package is held against."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Program = Callable[..., "subprocess.CompletedProcess[str]"]
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scenarios are named as from the root of the project, in reports too."""
    monkeypatch.chdir(ROOT)


@pytest.fixture(scope="session")
def program() -> Program:
    """Runs the program: NODECAST names it; without it the command of the package itself has to do."""
    name = os.environ.get("NODECAST") or shutil.which("nodecast")
    assert name, "NODECAST names no program, and the package put none on the path"

    def run(*words: object, code: int = 0) -> "subprocess.CompletedProcess[str]":
        done = subprocess.run([name, *map(str, words)], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        return done

    return run


def files(directory: "str | os.PathLike[str]") -> "dict[str, bytes]":
    """Every file below a directory with its bytes."""
    paths = sorted(path for path in Path(directory).rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): path.read_bytes() for path in paths}
