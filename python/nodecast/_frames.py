"""Tables with types of the calendar."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ._nodecast import Table


def to_pandas(table: Table, durations: bool = True) -> Any:
    """A table as a ``pandas.DataFrame`` whose columns ``..._seconds`` are ``timedelta``; ``time`` is a timestamp in UTC.

    A column of seconds loses its suffix: ``wait_for_node_seconds`` is ``wait_for_node``.
    """
    frame = table.to_pandas()
    if not durations:
        return frame
    pandas = import_module("pandas")
    suffix = "_seconds"
    for name in [name for name in frame.columns if str(name).endswith(suffix)]:
        plain = str(name)[: -len(suffix)]
        frame[name] = pandas.to_timedelta(frame[name], unit="s")
        if plain not in frame.columns:
            frame = frame.rename(columns={name: plain})
    return frame
