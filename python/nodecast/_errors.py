"""Errors by what they are about."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from os import PathLike, fspath
from typing import Union

from ._nodecast import Error

PARTS = ("message", "file", "line", "column", "help", "exit_code")


class ScenarioError(Error):
    """A scenario, a manifest, or another input file is at fault; ``file`` has its name."""


class PriceError(Error):
    """A file of ``pricing_data`` is at fault."""


def specific(error: Error, pricing_data: Union[str, PathLike[str], None] = None) -> Error:
    """The same error with the class that fits."""
    if type(error) is not Error or getattr(error, "file", None) is None:
        return error
    of_prices = pricing_data is not None and str(error.file).startswith(str(fspath(pricing_data)))
    other = (PriceError if of_prices else ScenarioError)(*error.args)
    for part in PARTS:
        setattr(other, part, getattr(error, part))
    return other


@contextmanager
def classified(pricing_data: Union[str, PathLike[str], None] = None) -> Generator[None, None, None]:
    """Raises errors of the program with the class that fits."""
    try:
        yield
    except Error as error:
        fitting = specific(error, pricing_data)
        if fitting is error:
            raise
        raise fitting from None
