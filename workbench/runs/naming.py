"""Describe runs by the settings in which they differ.

A queue names the folders of its runs by digests, so a run needs a readable description.
"""

import json
import re
from collections.abc import Mapping, Sequence

from workbench.types import JsonMapping, JsonObject
from workbench.util.config import flattened

DIGEST = re.compile(r"[0-9a-f]{8,64}")
LABEL = "name.txt"  # in a run's folder: its name in the queue that trained it
SETTING_CHARACTERS = 60  # characters of a setting in a name
# not compared: a description has method and seed anyway; the others are not the method's settings
APART = ("method", "seed", "threads", "versions")


def flat(settings: JsonMapping) -> JsonObject:
    """Flatten the content of a config.json: {"config": {"grpo": {"beta": 0}}} → {"grpo.beta": 0}.

    The prefix "config." is left out. A run's `retrieved` that is not stored is 0.
    """
    # without "config.", a name is the FIELD in `--set METHOD.FIELD=VALUE`
    named = {name.removeprefix("config."): value for name, value in flattened(settings)}
    return {"prompts.retrieved": 0, **named} if "config" in settings else named


def differing(configs: Sequence[JsonMapping]) -> list[str]:
    """Return the names of the settings whose values differ between configs, such as "grpo.beta".

    Method, seed, threads and versions are not compared. Names that end in "_hash" are returned only
    if no other setting differs.
    """
    known = [flat({k: v for k, v in one.items() if k not in APART}) for one in configs if one]
    values = {name: {json.dumps(one.get(name)) for one in known} for one in known for name in one}
    names = [name for name, different in values.items() if len(different) > 1]
    return [name for name in names if not name.endswith("_hash")] or names


def with_settings(method: str, settings: JsonMapping, names: Sequence[str]) -> str:
    """Return a method's name and selected settings as text, such as "truthrl reward=binary".

    Args:
        settings: name of a setting -> value.
        names: the settings to include.
    """
    return " ".join(
        [method, *(f"{name}={settings.get(name)}"[:SETTING_CHARACTERS] for name in names)]
    )


def short_names(names: Sequence[str]) -> list[str]:
    """Shorten the names of a table's rows, which are paths or methods with settings.

    Settings are left out, the last one first. A path is reduced to its last two parts, and then to
    the last one. A step that would give two rows the same name is skipped.
    """
    settings = re.findall(r" ([\w.]+)=", " ".join(names))
    # a name with settings begins with a method, which has no slash
    start, end = r"(?s)^([^\s/]+(?= ).*?)", r"=.*?(?= [\w.]+=|$)"
    cuts = [f"{start} {re.escape(key)}{end}" for key in reversed(settings)]
    for cut in (*cuts, r"^()\S*/(?=.*/)", r"^()\S*/"):
        shorter = [re.sub(cut, r"\1", name) for name in names]
        names = shorter if len({*shorter}) == len(names) else names
    return list(names)


def labels(configs: Mapping[str, JsonMapping]) -> dict[str, str]:
    """Return a readable description of each run, such as "truthrl reward=binary seed 2".

    A run of a queue has a digest as the name of its folder, such as "queue/3f2a91c0". It is
    described by its method, its seed, and the settings that differ between the runs of this method
    in the same folder. Any other run is described by its path.

    Args:
        configs: path of the run -> the content of its config.json.

    Returns:
        path of the run -> description.
    """
    families: dict[tuple[str, str], list[str]] = {}
    for name, config in configs.items():
        folder, _, digest = name.rpartition("/")
        if "method" in config and DIGEST.fullmatch(digest):
            families.setdefault((folder, str(config["method"])), []).append(name)
    described = {name: name for name in configs}
    for (_, method), names in families.items():
        keys = differing([configs[name] for name in names])
        for name in names:
            settings = flat(configs[name])
            label = f"{with_settings(method, settings, keys)} seed {settings.get('seed')}"
            # the name distinguishes runs whose labels would be equal
            described[name] = f"{label}, {name}" if label in described.values() else label
    return described
