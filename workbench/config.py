"""`--set name.field=value`: change fields of a frozen config dataclass by their declared types, and check their values."""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, Literal, TypeVar

from workbench.types import WorkbenchError

Config = TypeVar("Config")

WORDS_FOR_BOOL = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def override(config: Config, name: str, settings: Sequence[str]) -> Config:
    """Apply settings such as "truthrl.reward=binary" to `config`, whose settings start with `name`.

    Raises:
        WorkbenchError: no such field (the fields are listed) or a value of the wrong type.
    """
    known = typing.get_type_hints(type(config))
    names = [field.name for field in fields(config)]  # type: ignore[arg-type]
    changes: dict[str, Any] = {}
    for setting in settings:
        target, equals, text = setting.partition("=")
        prefix, _, field = target.strip().rpartition(".")
        if not equals or prefix != name:
            raise WorkbenchError(f"--set {setting}: write {name}.FIELD=VALUE")
        if field not in names:
            raise WorkbenchError(f"--set {setting}: {name} has no field '{field}'; its fields are {', '.join(names)}")
        changes[field] = parse(text.strip(), known[field], f"--set {setting}")
    return replace(config, **changes)  # type: ignore[type-var]


def check_values(config: Any) -> None:
    """Raise a WorkbenchError for a value that a field's Literal does not list and for a number that is not finite."""
    for field, kind in typing.get_type_hints(type(config)).items():
        value = getattr(config, field)
        if typing.get_origin(kind) is Literal and value not in typing.get_args(kind):
            raise WorkbenchError(f"{field} is '{value}': choose one of {', '.join(map(str, typing.get_args(kind)))}")
        if isinstance(value, float) and not math.isfinite(value):
            raise WorkbenchError(f"{field} is {value}: it must be a finite number")


def parse(text: str, kind: Any, where: str) -> Any:
    """`text` as a value of the annotated type `kind` (bool, int, float, str, Literal, or one of these or None)."""
    origin, options = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        if text.lower() in ("none", "null") and type(None) in options:
            return None
        return parse(text, next(option for option in options if option is not type(None)), where)
    if origin is Literal:
        if text not in options:
            raise WorkbenchError(f"{where}: choose one of {', '.join(map(str, options))}")
        return text
    if kind is bool:
        if text.lower() not in WORDS_FOR_BOOL:
            raise WorkbenchError(f"{where}: write true or false")
        return WORDS_FOR_BOOL[text.lower()]
    try:
        return kind(text)
    except ValueError as error:
        raise WorkbenchError(f"{where}: '{text}' is not {'an' if kind is int else 'a'} {kind.__name__}") from error
