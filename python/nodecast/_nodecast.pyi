"""The compiled half of the package."""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any

VERSION: str

class Error(Exception):
    """Why there is no answer. ``str()`` reads as in a terminal."""

    message: str
    """What is wrong, in one sentence."""
    file: str | None
    """The file, as it was named."""
    line: int | None
    """Line, counted from 1."""
    column: int | None
    """Column in characters, counted from 1."""
    help: str | None
    """A way out."""
    exit_code: int
    """What the command would end with."""

class Table:
    """A table for whatever knows the Arrow PyCapsule interface."""

    @property
    def column_names(self) -> list[str]:
        """The names of the columns, in order."""
    @property
    def num_rows(self) -> int:
        """The number of rows."""
    def __len__(self) -> int: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> Any: ...
    def __arrow_c_schema__(self) -> Any: ...
    def to_pyarrow(self) -> Any:
        """The table as a ``pyarrow.Table``."""
    def to_polars(self) -> Any:
        """The table as a ``polars.DataFrame``."""
    def to_pandas(self) -> Any:
        """The table as a ``pandas.DataFrame``; needs pyarrow."""

class Run:
    def summary_json(self) -> str: ...
    def text(self) -> str: ...
    def figures(self) -> dict[str, float | None]: ...
    def table(self, name: str) -> Table: ...
    def write(self, directory: str | PathLike[str], open_metrics: str | None) -> None: ...

class Comparison:
    def comparison_json(self) -> str: ...
    def text(self) -> str: ...
    def replications(self) -> Table: ...
    def figures(self) -> Table: ...
    def write(self, directory: str | PathLike[str]) -> None: ...

class Sweep:
    def sweep_json(self) -> str: ...
    def text(self) -> str: ...
    def settings(self) -> Table: ...
    def write(self, directory: str | PathLike[str]) -> None: ...

class Packing:
    def pack_json(self) -> str: ...
    def text(self) -> str: ...
    @property
    def warnings(self) -> list[str]: ...
    def launches(self) -> Table: ...

def money(currency: str, amount: float) -> str: ...
def main(words: Sequence[str]) -> int: ...
def run(
    scenario: str | PathLike[str],
    policy: str | None,
    seed: int | None,
    set: Sequence[str],
    duration: str | None,
    pricing_data: str | PathLike[str] | None,
) -> Run: ...
def compare(
    scenario: str | PathLike[str],
    policies: Sequence[str],
    replications: int | None,
    seed: int | None,
    set: Sequence[str],
    duration: str | None,
    precision: float | None,
    replications_max: int,
    threads: int | None,
    pricing_data: str | PathLike[str] | None,
    progress: Callable[[int, int], object] | None,
) -> Comparison: ...
def sweep(
    scenario: str | PathLike[str],
    set: Sequence[str],
    policies: Sequence[str],
    replications: int | None,
    seed: int | None,
    duration: str | None,
    latency: str,
    sample: int | None,
    sampling: str,
    threads: int | None,
    pricing_data: str | PathLike[str] | None,
    progress: Callable[[int, int], object] | None,
) -> Sweep: ...
def pack(
    files: Sequence[str | PathLike[str]],
    region: str | None,
    zones: Sequence[str],
    karpenter: str | None,
    packer: str,
    explain: str | None,
    time_limit: float | None,
    pricing_data: str | PathLike[str] | None,
) -> Packing: ...
