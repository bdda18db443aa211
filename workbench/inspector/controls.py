"""Describe the settings of a method's reward as input controls of the inspector's page."""

import re
import typing
from typing import Any, Literal

from workbench.methods.method import reward_settings
from workbench.types import JsonObject
from workbench.util.config import help_of, range_of, unset_values

# headings above the fields with these names
HEADS = {
    "f_correct": "f: value of a claim by its verdict",
    "g_5": "g: factor by informativeness",
    "alpha": "Weights and bounds",
}


def controls(config: Any) -> list[JsonObject]:
    """Return the result of `control` for each reward setting in `config`.

    Settings whose type has no control are left out. So is `mode`, the method of claim extraction:
    stored responses have their claims already.
    """
    kinds, values = typing.get_type_hints(type(config)), reward_settings(config)
    values.pop("mode", None)  # how to extract claims: a stored row already has its claims
    items = (control(name, kinds[name], value, config) for name, value in values.items())
    return [item for item in items if item]


def control(name: str, kind: object, value: object, config: Any) -> JsonObject | None:
    """Return a description of the input control for one setting; None if its type has no control.

    The description has "name", "label", "value", "help", "head" (a heading above the control, or
    None) and "kind". The kinds are "choice" (with the key "options"), "flag" (a checkbox) and
    "number" (with "min", "max" and "step").

    Args:
        kind: the type of the setting.
        config: the config that has the setting.
    """
    options = typing.get_args(kind)
    plain = [option for option in options if option is not type(None)]
    entry: JsonObject = {
        "name": name,
        # f_hedged_wrong is f(hedged wrong), as the paper writes it
        "label": re.sub("^([fg]) (.+)", r"\1(\2)", name.replace("_", " ")),
        "value": value,
        "head": HEADS.get(name),
        "help": help_of(config)[name],
    }
    if typing.get_origin(kind) is Literal:
        return entry | {"kind": "choice", "options": [str(option) for option in options]}
    if kind is bool:
        return entry | {"kind": "flag"}
    if plain == [bool]:
        choices = ["none", "true", "false"]
        return entry | {"kind": "choice", "options": choices, "value": str(value).lower()}
    if kind in (int, float) or plain in ([int], [float]):
        low, high, step = range_of(config, name)
        entry |= {"kind": "number", "min": low, "max": high, "step": step}
        unset = unset_values(config)
        if name not in unset:
            return entry | {"optional": type(None) in options}
        return entry | ({"value": unset[name]} if value is None else {"optional": False})
    return None
