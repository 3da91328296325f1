"""Progress of comparisons and sweeps."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Optional, Union

Display = Callable[[int, int], object]
Progress = Union[bool, Display]


@contextmanager
def shown(progress: Progress, title: str) -> Generator[Optional[Display], None, None]:
    """The function that shows progress: the given one, or for ``True`` a bar of tqdm, in notebooks as a widget."""
    if progress is False:
        yield None
    elif progress is not True:
        yield progress
    else:
        bar: Any = import_module("tqdm.auto").tqdm(desc=title, unit=" simulations")

        def show(done: int, count: int) -> None:
            bar.total = count
            bar.update(done - bar.n)

        with bar:
            yield show
