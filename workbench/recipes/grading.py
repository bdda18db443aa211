"""The five methods side by side: their configs, their rewards on one row, and the checks that they need."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from types import ModuleType
from typing import TYPE_CHECKING, Any

from workbench.types import Claim, Claims, Extract, Grade, Response, RewardFn, WorkbenchError

if TYPE_CHECKING:
    from workbench.bench import Bench
    from workbench.checks import Checks

METHODS = ("rlfh", "truthrl", "forag", "klcf", "knowrl")  # modules of this package
CONFIGS = {"rlfh": "RLFH", "truthrl": "TruthRL", "forag": "FoRAG", "klcf": "KLCF", "knowrl": "KnowRL"}


def method(name: str) -> ModuleType:
    """The recipe's module: `METHOD`, `CHECKS`, `reward(config)`, `checks(config)`, `grader(config, bench)`."""
    if name not in METHODS:
        raise WorkbenchError(f"no method '{name}': choose one of {', '.join(METHODS)}")
    return importlib.import_module(f"workbench.recipes.{name}")


def default_config(name: str) -> Any:
    """The method's config with the paper's settings."""
    return getattr(method(name), CONFIGS[name])()


def configure_method(recipe: Any) -> tuple[str, Any]:
    """A method's name and config, given either: a name has the paper's settings."""
    if isinstance(recipe, str):
        return recipe, default_config(recipe)
    name = next((name for name, config in CONFIGS.items() if config == type(recipe).__name__), None)
    if name is None:
        raise WorkbenchError(f"'{recipe}' is neither a method nor a method's config: choose one of {', '.join(METHODS)}")
    return name, recipe


def method_configs(names: Sequence[str] = METHODS, settings: Sequence[str] = ()) -> dict[str, Any]:
    """The methods' configs with `settings` ("method.field=value") applied, each to its own.

    Raises:
        WorkbenchError: no such method or field, a value of the wrong type, or a setting of a method that is not named.
    """
    from workbench.config import override

    configs = {name: default_config(name) for name in names}
    for setting in settings:
        name = setting.strip().partition(".")[0]
        if name not in configs:
            raise WorkbenchError(f"--set {setting}: write METHOD.FIELD=VALUE with a METHOD out of {', '.join(names)}")
        configs[name] = override(configs[name], name, [setting])
    return configs


def reward_fns(configs: Mapping[str, Any]) -> dict[str, RewardFn]:
    """What each of the methods pays, for `grade` or `rescore`.

    Raises:
        WorkbenchError: a config whose values cannot work.
    """
    return {name: method(name).reward(config) for name, config in configs.items()}


def reward_settings(config: Any) -> dict[str, Any]:
    """The fields of a method's config that can change what a row is paid: not those of its training and evaluation."""
    from workbench.train.grpo import GRPO

    training = {one.name for one in fields(GRPO)} if isinstance(config, GRPO) else set()
    asked = {"kinds", *(one.name for one in fields(config) if one.name.startswith("eval_"))}
    return {name: value for name, value in asdict(config).items() if name not in training | asked}


def checks_needed(configs: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of the checks that the methods need between them, each once."""
    return tuple(dict.fromkeys(check for name, config in configs.items() for check in method(name).checks(config)))


def assemble(
    judge: Bench | Checks,
    rewards: Mapping[str, RewardFn],
    checks: Sequence[str],
    wanted: Callable[[Claim], bool] | None = None,
) -> Grade:
    """The checks of these names, by a judge or by a bench's, as one `Grade`; only `wanted` claims are checked and kept.

    Raises:
        WorkbenchError: the bench's judge cannot do one of the checks.
    """
    from workbench.checks import Checks
    from workbench.grade import grade

    able = judge if isinstance(judge, Checks) else judge.checks
    extract, names = able.extract, list(checks)
    if "single_pass" in names:
        if able.single_pass is None:
            raise WorkbenchError("the judge at hand reads claims only one step at a time: set rlfh.mode=pipeline")
        extract = able.single_pass
        names.remove("single_pass")
    if missing := [name for name in names if name not in able.verify]:
        known = ", ".join(sorted(able.verify))
        raise WorkbenchError(
            f"the judge at hand has no check {', '.join(missing)}: it has {known}; use another, or change the recipe"
        )
    reads = wanted is not None or "single_pass" in checks
    return grade([able.verify[name] for name in names], rewards, keep(extract, wanted) if reads else None)


def keep(extract: Extract, wanted: Callable[[Claim], bool] | None) -> Extract:
    """`extract`, but for the claims that are not `wanted`: nothing is asked about them. The others keep their ids."""
    if wanted is None:
        return extract

    def run(responses: Sequence[Response]) -> list[Claims]:
        return [_only(found, wanted) for found in extract(responses)]

    return run


def _only(found: Claims, wanted: Callable[[Claim], bool]) -> Claims:
    left_out = {f"claim:{claim.id}" for claim in found.claims if not wanted(claim)}
    return replace(
        found,
        claims=tuple(claim for claim in found.claims if wanted(claim)),
        verdicts=tuple(verdict for verdict in found.verdicts if verdict.target not in left_out),
    )
