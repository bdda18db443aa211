"""The checks of each judge by name; every method finds the checks that it needs."""

import pytest

from tests.helpers.scripted import ScriptedJudge
from workbench.methods import METHODS, checks_needed, method_configs
from workbench.types import Checks, Response
from workbench.verdicts.checks import judge_checks, world_checks
from workbench.world import load_world

NAMES = {"fact", "outcome", "checklist", "claim_checklist", "reasoning"}


@pytest.fixture(scope="module")
def world() -> Checks:
    return world_checks(load_world(0, 0.1))


def test_world_and_model_judges_have_the_checks_of_every_method(world: Checks) -> None:
    judged = judge_checks(ScriptedJudge(lambda task, inputs: {"sentences": []}))
    needed = set(checks_needed(method_configs(METHODS)))
    # only the world has exposure counts
    for checks, more in ((world, {"out_of_knowledge"}), (judged, set())):
        assert set(checks.verify) - more == NAMES >= needed and more <= set(checks.verify)


def test_only_model_judges_have_a_single_pass(world: Checks) -> None:
    judge = ScriptedJudge(lambda task, inputs: {"sentences": []})
    read = judge_checks(judge).single_pass
    assert read is not None and world.single_pass is None
    response = Response("r", load_world(0, 0.1).questions("test")[0], "A claim is here.")
    assert read([response])[0].error is None
    assert [prompt.task for prompt in judge.batches[0]] == ["single_pass"]
