"""Values as the program takes and gives them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


class Figures(dict[str, Any]):
    """A dictionary whose keys are attributes too: ``summary["cost"]["total"]`` is ``summary.cost.total``.

    Keys with the name of a method of dictionaries (``items``, ``values``) are keys only.
    """

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"there is no {name!r}; known are {', '.join(map(str, self))}") from None

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]


def read(text: str) -> Figures:
    """An object of JSON with attributes."""
    found: Figures = json.loads(text, object_hook=Figures)
    return found


def read_rows(text: str) -> list[Figures]:
    """A list of objects of JSON."""
    found: list[Figures] = json.loads(text, object_hook=Figures)
    return found


def value_as_word(value: object) -> str:
    """A value as YAML: a text is YAML already, as on the command line."""
    return value if isinstance(value, str) else json.dumps(value)


def changes_as_words(changes: Mapping[str, object]) -> list[str]:
    """Changes as after ``--set``."""
    return [f"{path}={value_as_word(value)}" for path, value in changes.items()]
