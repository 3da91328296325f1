"""Scenarios as files, texts, and dictionaries."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path as _Path
from typing import Optional, Union

from ._html import count

Path = Union[str, "os.PathLike[str]"]


class Scenario:
    """A scenario with changes: ``Scenario("shop/scenario.yaml").with_({"duration": "2h"})``.

    :param source: the name of a file, the text of a scenario (YAML with more than one line), or a dictionary
    :param directory: for a text or a dictionary, the directory that paths in it are relative to
    """

    def __init__(self, source: Union[Path, Mapping[str, object]], directory: Path = ".") -> None:
        self._text: Optional[str] = None
        self._path: Optional[Path] = None
        if isinstance(source, Mapping):
            self._text = json.dumps(source, indent=1, default=str) + "\n"
        elif isinstance(source, str) and "\n" in source:
            self._text = source
        else:
            self._path = source
        self._directory = _Path(directory)
        self._changes: dict[str, object] = {}

    def with_(self, changes: Mapping[str, object]) -> Scenario:
        """The same scenario with further changes, by path as after ``--set``; this one stays as it is."""
        other = Scenario.__new__(Scenario)
        other._text, other._path, other._directory = self._text, self._path, self._directory
        other._changes = {**self._changes, **changes}
        return other

    @property
    def changes(self) -> dict[str, object]:
        """The changes by path."""
        return dict(self._changes)

    def __repr__(self) -> str:
        source = str(self._path) if self._path is not None else f"{len(self._text or '')} characters"
        return f"<nodecast.Scenario of {source}, {count(self._changes, 'change')}>"

    @contextmanager
    def opened(self) -> Generator[tuple[Path, dict[str, object]], None, None]:
        """The name of the file, which exists inside of ``with``, and the changes."""
        if self._path is not None:
            yield self._path, self.changes
            return
        text = (self._text or "").encode()
        # Named by its content: the name of a file is part of a report.
        path = self._directory / f".nodecast-{hashlib.sha256(text).hexdigest()[:12]}.yaml"
        path.write_bytes(text)
        try:
            yield path, self.changes
        finally:
            path.unlink(missing_ok=True)


Source = Union[Path, Mapping[str, object], Scenario]
"""The name of a file, the text of a scenario, a dictionary, or a :class:`Scenario`."""


@contextmanager
def opened(source: Source, changes: Optional[Mapping[str, object]] = None) -> Generator[tuple[Path, dict[str, object]], None, None]:
    """The file of a scenario, and its changes with further ones."""
    scenario = source if isinstance(source, Scenario) else Scenario(source)
    with scenario.opened() as (path, own):
        yield path, {**own, **(changes or {})}
