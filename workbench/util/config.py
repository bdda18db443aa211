"""Declare, change and check configs: frozen dataclasses whose fields have a help text and bounds.

A config may contain other configs, called its parts: `TruthRL(grpo=GRPO(optim=Optim(…)))`. A path
names a field: `--set truthrl.grpo.optim.learning_rate=1e-5`. The names of parts may be left out, as
in `truthrl.grpo.learning_rate=1e-5` or `truthrl.learning_rate=1e-5`.

If a config and one of its parts have a field of the same name, the short path means the config's
own field. If several parts have it, the short path means all of these fields. Stored configs are
read by the same rules, so a field that has moved into a part since then is found.
"""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, fields, is_dataclass, replace
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from workbench.types import JsonMapping, JsonObject, WorkbenchError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Config = TypeVar("Config", bound="DataclassInstance")
Value = TypeVar("Value")

SMALLEST, LARGEST = 1e-12, 1e9  # bounds of the absolute value of a setting other than 0
WORDS_FOR_BOOL = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def setting(
    default: Value,
    help: str = "",
    range: tuple[float, float, float] | None = None,
    *,
    least: float | None = None,
    most: float | None = None,
    above: float | None = None,
    below: float | None = None,
    trains: bool = False,
    unset: Callable[[Any], object] | None = None,
) -> Value:
    """Declare a field of a config: a `dataclasses.field` with a help text and bounds.

    Args:
        default: the field's default value.
        help: the text in the table of settings and in the inspector, the package's local web page.
        range: (minimum, maximum, step) of the inspector's control. Other values are valid, too.
        least, most, above, below: bounds of a number, checked by `check_values`. `above` and
            `below` exclude the bound itself. If `most` is set but not `least`, `least` is 0.
        trains: True if the field affects only training, and not the reward of a given response.
        unset: function that takes the config and returns the value to use if the field is None.
    """
    return field(
        default=default,
        metadata={
            "help": help,
            "range": range,
            "least": least,
            "most": most,
            "above": above,
            "below": below,
            "trains": trains,
            "unset": unset,
        },
    )


def help_of(config: DataclassInstance) -> dict[str, str]:
    """Return field name -> help text for a config's own fields, not those of nested configs."""
    return {f.name: f.metadata.get("help", "") for f in fields(config)}


def range_of(config: DataclassInstance, name: str) -> tuple[float, float, float]:
    """Return (minimum, maximum, step) of the inspector's control for the numeric field `name`.

    If the field has no declared range, the step depends on the default value, and the control has
    30 steps on each side of 0: (-0.3, 0.3, 0.01) for a default of 0.2, (-3, 3, 0.1) for 2.
    """
    spec = next(f for f in fields(config) if f.name == name)
    if spec.metadata.get("range"):
        return spec.metadata["range"]
    scale = spec.default if isinstance(spec.default, int | float) and spec.default else 1.0
    step = 10.0 ** (math.floor(math.log10(abs(scale))) - 1)  # a tenth of the order of magnitude
    return -30 * step, 30 * step, step


def unset_values(config: DataclassInstance) -> JsonObject:
    """Return field name -> value to use if the field is None.

    Only fields that were declared with `setting(…, unset=…)` are included.
    """
    return {f.name: make(config) for f in fields(config) if (make := f.metadata.get("unset"))}


def parts(config: DataclassInstance) -> JsonObject:
    """Return field name -> config, for the fields of a config that are configs themselves."""
    return {f.name: value for f in fields(config) if is_dataclass(value := getattr(config, f.name))}


def settings(config: DataclassInstance, prefix: str = "") -> Iterator[tuple[str, Any, str]]:
    """Yield (path, value, help text) of every field, including the fields of nested configs.

    For example, the field `beta` of the nested config `grpo` has the path "grpo.beta".

    Args:
        prefix: text before every path, such as "grpo."; "" at the top level.
    """
    inner = parts(config)
    for name, help in help_of(config).items():
        if name in inner:
            yield from settings(inner[name], f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", getattr(config, name), help


def find(config: DataclassInstance, path: str) -> list[str]:
    """Return the full paths of the fields that a full or short path names; [] if there are none.

    A short path leaves out names of nested configs: "learning_rate" → ["grpo.optim.learning_rate"].
    If several nested configs have such a field, all their paths are returned. A field of the config
    itself takes precedence over nested fields.
    """
    inner = parts(config)
    head, _, rest = path.partition(".")
    if rest and head in inner and (matches := find(inner[head], rest)):
        return [f"{head}.{match}" for match in matches]
    if path not in inner and any(f.name == path for f in fields(config)):
        return [path]
    return [f"{part}.{match}" for part, value in inner.items() for match in find(value, path)]


def leaves(config: DataclassInstance, path: str) -> list[str]:
    """Return the full paths of all fields of the nested config at `path`, such as "grpo".

    If `path` is the full or short path of a field instead, return `find(config, path)`.
    """
    every = [name for name, _, _ in settings(config)]
    return [name for name in every if name.startswith(f"{path}.")] or find(config, path)


def get(config: DataclassInstance, path: str) -> Any:
    """Return the value of the field at a full path, such as "grpo.optim.learning_rate"."""
    for name in path.split("."):
        config = getattr(config, name)
    return config


def put(config: Config, path: str, value: object) -> Config:
    """Return a copy of `config` with `value` in the field at a full path, such as "grpo.beta"."""
    head, _, rest = path.partition(".")
    return replace(config, **{head: put(getattr(config, head), rest, value) if rest else value})


def scaled(config: Config, **changes: Any) -> Config:
    """Return a copy of `config` with changed fields: `scaled(config, steps=8, grpo={"beta": 0.0})`.

    A short name, such as `learning_rate`, changes every field that `find` returns for it. If the
    value for a nested config is a mapping, as for `grpo` above, only the fields in the mapping are
    changed. If the value is a config, such as `grpo=GRPO()`, the whole nested config is replaced.

    Raises:
        AssertionError: a name matches no field.
    """
    for path, value in flattened(changes):
        paths = [path] if is_dataclass(value) else find(config, path)
        assert paths, f"{type(config).__name__} has no field '{path}'"
        for full in paths:
            config = put(config, full, value)
    return config


def override(config: Config, name: str, changes: Sequence[str]) -> Config:
    """Return a copy of `config` with the changes of `--set`, such as "truthrl.reward=binary".

    Args:
        name: name of the config, such as "truthrl". Each change must begin with it.
        changes: values of the option `--set`.

    Raises:
        WorkbenchError: the config has no such field (the message lists similar names, or all fields
            of the group that the change names, or of the config), or the value has the wrong type.
    """
    for change in changes:
        target, equals, text = change.partition("=")
        prefix, _, path = target.strip().partition(".")
        if not equals or prefix != name or not path:
            raise WorkbenchError(f"--set {change}: write {name}.FIELD=VALUE")
        paths = find(config, path)
        if not paths:
            group, known = path.strip("."), []
            while group and not (known := _within(config, group)):
                group = group.rpartition(".")[0]  # the longest part of the path that is a group
            known = known or [full for full, _, _ in settings(config)]
            rest = path.strip(".").removeprefix(group).strip(".")
            ends = {full: full.rpartition(".")[2] for full in known}
            near = get_close_matches(rest.rpartition(".")[2], set(ends.values()))
            hint = f"its fields are {', '.join(known)}"
            if near:
                hint = f"did you mean {' or '.join(full for full in known if ends[full] in near)}?"
            title = f"{name}.{group}" if group else name
            wrong = f"has no field '{rest}'" if rest else "is a group"
            raise WorkbenchError(f"--set {change}: {title} {wrong}: {hint}")
        for full in paths:
            owner, _, field_name = full.rpartition(".")
            kind = _types(type(get(config, owner) if owner else config))[field_name]
            config = put(config, full, parse(text.strip(), kind, f"--set {change}"))
    return config


def _within(config: DataclassInstance, group: str) -> list[str]:
    """Return the full paths of the fields of a nested config; [] if there is no such config.

    A short path may name several nested configs. A full path takes precedence.
    """
    every = [full for full, _, _ in settings(config)]
    full_path = [full for full in every if full.startswith(f"{group}.")]
    return full_path or [full for full in every if f".{group}." in full]


def restore(config: Config, stored: JsonMapping) -> Config:
    """Return a copy of `config` with the values of `stored`, a config as a JSON object.

    Stored paths may be short, as in `find`. Fields that `stored` lacks keep their values. Stored
    fields that do not exist are ignored.
    """
    for path, value in flattened(stored):
        for full in find(config, path):
            config = put(config, full, value)
    return config


def flattened(stored: JsonMapping, prefix: str = "") -> Iterator[tuple[str, object]]:
    """Yield (path, value) of each value in nested mappings, such as ("grpo.steps", 40).

    Args:
        prefix: text before every path, such as "grpo."; "" at the top level.
    """
    for name, value in stored.items():
        if isinstance(value, Mapping):
            yield from flattened(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def check_values(config: DataclassInstance, prefix: str = "") -> None:
    """Check the values of a config and of its nested configs.

    Args:
        prefix: the name of the config with a dot, such as "grpo.", for messages.

    Raises:
        WorkbenchError: a value is not one of the choices of its field, or a number is not finite or
            outside its bounds. The absolute value of a number other than 0 must also lie between
            1e-12 and 1e9.
    """
    for part, inner in parts(config).items():
        check_values(inner, f"{prefix}{part}.")
    kinds = _types(type(config))
    for spec in fields(config):
        kind, value, name = kinds[spec.name], getattr(config, spec.name), f"{prefix}{spec.name}"
        options = typing.get_args(kind)
        if value is None and type(None) in options:
            continue
        for literal in (kind, *options):
            allowed = typing.get_args(literal)
            if typing.get_origin(literal) is Literal and value not in allowed:
                listed = ", ".join(map(str, allowed))
                raise WorkbenchError(f"{name} is '{value}': choose one of {listed}")
        if isinstance(value, float) and not math.isfinite(value):
            raise WorkbenchError(f"{name} is {value}: it must be a finite number")
        if isinstance(value, int | float):
            if value and not SMALLEST <= abs(value) <= LARGEST:
                raise WorkbenchError(
                    f"{name} is {str(value)[:20]}: its absolute value must be 0 or between"
                    f" {SMALLEST:g} and {LARGEST:g}, so that no result overflows"
                )
            _check_bounds(name, value, spec.metadata)


def _check_bounds(name: str, value: float, bounds: JsonMapping) -> None:
    least, most, above, below = (bounds.get(key) for key in ("least", "most", "above", "below"))
    wrong = ""
    if above is not None and value <= above:
        wrong = f"be above {above:g}"
    elif below is not None and value >= below:
        wrong = f"be below {below:g}"
    elif most is not None and not (least or 0) <= value <= most:
        wrong = f"lie between {least or 0:g} and {most:g}"
    elif least is not None and value < least:
        wrong = f"be at least {least:g}"
    if wrong:
        raise WorkbenchError(f"{name} is {value}: it must {wrong}")


def parse(text: str, kind: Any, where: str) -> object:
    """Convert `text` to a value of the type `kind`, the annotation of a field.

    The type may be bool, int, float, str, a Literal, or a union of one of these with None.

    Raises:
        WorkbenchError: the text does not fit the type; the message begins with `where`.
    """
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
        article = "an" if kind is int else "a"
        raise WorkbenchError(f"{where}: '{text}' is not {article} {kind.__name__}") from error


# Resolved once per config class, because every reward checks its config.
_types: Callable[[type], JsonObject] = cache(typing.get_type_hints)
