"""Registry of the reward methods and the baselines, by name. Each paper has its own folder."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import entry_points
from typing import Any

from workbench.methods.baselines.method import BASELINES
from workbench.methods.binary_rar.method import METHOD as BINARY_RAR
from workbench.methods.forag.method import METHOD as FORAG
from workbench.methods.klcf.method import METHOD as KLCF
from workbench.methods.knowrl.method import METHOD as KNOWRL
from workbench.methods.method import Configs, Method, MethodConfig
from workbench.methods.rlfh.method import METHOD as RLFH
from workbench.methods.truthrl.method import METHOD as TRUTHRL
from workbench.types import RewardFn, WorkbenchError

OURS = {one.name: one for one in (RLFH, TRUTHRL, FORAG, KLCF, KNOWRL, BINARY_RAR)}
ENTRY_POINTS = "workbench.methods"  # the group under which other packages register a `Method`


METHODS: dict[str, Method] = dict(OURS)
TRAINED: dict[str, Method] = {**METHODS, **BASELINES}  # names that `workbench train` accepts


def register(value: Method) -> Method:
    """Add a method to the registry of this process, and return the method.

    A package can also declare its method as an entry point of the group "workbench.methods". Such
    methods are added when `workbench.methods` is imported.

    Raises:
        WorkbenchError: `value` is not a `Method`, or has the name of a method or baseline of the
            workbench.
    """
    if not isinstance(value, Method):
        raise WorkbenchError(f"{value!r} is not a `workbench.methods.Method`: register an instance")
    if value.name in OURS or value.name in BASELINES:
        raise WorkbenchError(
            f"the name '{value.name}' is taken by a method of the workbench: choose another"
        )
    # a method of another package with the same name is replaced
    METHODS[value.name] = TRAINED[value.name] = value
    return value


def _load_registered() -> None:
    """Register the methods that installed packages declare as entry points.

    If a method cannot be loaded, a message on stderr says so and the method is left out.
    """
    for entry in entry_points(group=ENTRY_POINTS):
        try:
            register(entry.load())
        except Exception as error:  # code of another package can raise anything
            print(
                f"workbench: cannot load method '{entry.name}' ({entry.value}): {error}",
                file=sys.stderr,
            )


_load_registered()


def method(name: str) -> Method:
    """Return the method called `name`, such as "truthrl". Baselines are not included.

    Raises:
        WorkbenchError: no method has this name.
    """
    return _named(name, METHODS)


def trained(name: str) -> Method:
    """Return the method or baseline called `name`, such as "truthrl" or "dpo".

    Raises:
        WorkbenchError: no method or baseline has this name.
    """
    return _named(name, TRAINED)


def _named(name: str, among: Mapping[str, Method]) -> Method:
    if name not in among:
        raise WorkbenchError(f"no method '{name}': choose one of {', '.join(among)}")
    return among[name]


def title(name: str) -> str:
    """Return the title of a method or baseline, such as "TruthRL".

    An unknown name is returned unchanged.
    """
    return TRAINED[name].title if name in TRAINED else name


def configure_method(recipe: str | MethodConfig) -> tuple[str, Any]:
    """Return a method's name and a config of the method, given either of them.

    Args:
        recipe: a method's name, such as "truthrl", for a config with the paper's settings; or a
            config, which is returned with the name of its method.

    Raises:
        WorkbenchError: there is no such method, or no method has a config of this type.
    """
    if isinstance(recipe, str):
        return recipe, method(recipe).configure()
    # a config does not store the name of its method
    name = next((name for name, entry in METHODS.items() if entry.config is type(recipe)), None)
    if name is None:
        raise WorkbenchError(
            f"'{recipe}' is neither a method nor a method's config: choose one of"
            f" {', '.join(METHODS)}"
        )
    return name, recipe


def method_configs(
    names: Iterable[str] | None = None, settings: Sequence[str] = ()
) -> dict[str, Any]:
    """Return a dict from method name to config: the paper's settings, changed by `settings`.

    Args:
        names: the methods; None for all.
        settings: changes such as "truthrl.abstain=0.2", which begin with the name of the method.

    Raises:
        WorkbenchError: a method or field does not exist, a value has the wrong type, or a setting
            is for a method that is not in `names`.
    """
    chosen = {name: method(name) for name in (METHODS if names is None else names)}
    by_name: dict[str, list[str]] = {name: [] for name in chosen}
    for text in settings:
        name = text.strip().partition(".")[0]
        if name not in chosen:
            raise WorkbenchError(
                f"--set {text}: write METHOD.FIELD=VALUE; METHOD is one of {', '.join(chosen)}"
            )
        by_name[name].append(text)
    return {name: entry.configure(settings=by_name[name]) for name, entry in chosen.items()}


def reward_fns(configs: Configs) -> dict[str, RewardFn]:
    """Return method name -> reward function, for each method in `configs` (name -> config).

    Raises:
        WorkbenchError: a config has invalid values.
    """
    return {name: method(name).reward(config) for name, config in configs.items()}


def checks_needed(configs: Configs) -> tuple[str, ...]:
    """Return the names of the checks that the methods in `configs` need, such as "fact".

    The rewards of these methods read the verdicts of the checks.

    Args:
        configs: name of the method -> config.
    """
    needed = (check for name, config in configs.items() for check in method(name).checks(config))
    return tuple(dict.fromkeys(needed))


def sections_read(configs: Configs) -> frozenset[str]:
    """Return the sections of a response whose claims the methods in `configs` read.

    The sections are "think" (the thinking), "answer" (the tagged answer) and "body" (text outside
    of tags).

    Args:
        configs: name of the method -> config.
    """
    return frozenset().union(*(method(name).sections(config) for name, config in configs.items()))
