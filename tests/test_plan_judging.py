"""What `workbench plan` says a judge will be asked: by hand, and against the prompts and calls
of the checks themselves.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from workbench.checks import judge_checks
from workbench.judge import elements, render
from workbench.judge.prompts import FOLDER, TASKS
from workbench.judge.scripted import by_checksum
from workbench.plan import plan
from workbench.plan.judging import (
    ANSWER,
    CLAIM,
    LISTS,
    PASSAGE,
    QUESTION,
    _one,
    asked,
    expected_claims,
)
from workbench.recipes import METHODS, TRAINED
from workbench.score.estimate import Counter
from workbench.types import Passage, Prompt, Question, Reply, Response, WorkbenchError

Cli = Callable[..., tuple[int, str, str]]
SAID = ["The Aven is a river.", "Osk lies on the Aven.", "Lima is in Peru."]
ASKED = Question(
    "q",
    "What is the Aven?",
    ("a river",),
    passages=(Passage("p", "Aven", "The Aven is a river."),),
    checklist=tuple(SAID[:2]),
)
TEXTS = {"question": (1, QUESTION), "response": (1, 100), "responses": (2, 50), "outline": (1, 20), "passages": (5, PASSAGE),
         "claims": (7, CLAIM), "items": (10, CLAIM), "answers": (2, ANSWER)}  # fmt: skip


def written(task: str, texts: dict[str, tuple[int, int]]) -> Prompt:
    """The prompt with its texts written out, four characters a token."""
    given: dict[str, Any] = {
        name: ["word" * tokens] * count if name in LISTS else "word" * tokens
        for name, (count, tokens) in texts.items()
    }
    return render(task, **given)


@pytest.mark.parametrize(
    "task", ["extract", "single_pass", "verify", "inform", "outcome", "checklist", "reasoning"]
)
def test_a_prompt_is_counted_as_if_it_were_written(task: str) -> None:
    """Template, what stands around each text, and the texts, as the dry run of a scoring counts
    what is there.
    """
    texts = {name.rstrip("?"): TEXTS[name.rstrip("?")] for name in TASKS[task]}
    if task == "verify":
        texts["claims"] = (1, CLAIM)
    counter = Counter()
    counter([written(task, texts)])
    one = _one(task, texts)
    assert (one.requests, one.tokens_in, one.tokens_out) == (
        1,
        counter.tokens_in,
        counter.tokens_out,
    )


def test_an_outcome_by_hand() -> None:
    """The template without its five characters "$data"; the question, 24 tokens or 96
    characters, between 21 of tags; both answers, 8 tokens or 32 characters, between 17 and 21 of
    tags; two line ends. A label is 8 tokens of reply."""
    template = len((FOLDER / "outcome.md").read_text()) - len("$data")
    one = asked(["outcome"], response=2048, claims=0)
    assert one.tokens_in == (template + 96 + 21 + 32 + 17 + 32 + 21 + 2) / 4
    assert (one.requests, one.tokens_out) == (1, 8)


@pytest.mark.parametrize(
    ("checks", "requests"),
    [
        (("fact",), 1 + 10 + 1),
        (("fact", "outcome"), 13),
        (("single_pass",), 1),
        (("outcome",), 1),
        (("outcome", "reasoning"), 3),
        (("truth", "checklist"), 2),
        (("truth", "claim_checklist"), 2),
        (("outcome", "out_of_knowledge"), 1),
        (("general",), 0),
        ((), 0),
    ],
)
def test_requests_of_a_response_of_ten_claims_by_hand(
    checks: tuple[str, ...], requests: int
) -> None:
    assert asked(checks, 240, 10).requests == requests
    assert expected_claims(240) == 10 and expected_claims(241) == 11


def test_a_response_without_claims_is_only_read_for_them() -> None:
    assert asked(["fact"], 240, 0).requests == 1


@pytest.mark.parametrize("method", METHODS)
def test_requests_are_those_that_the_checks_make(method: str) -> None:
    """A response of three claims, through the method's own grader: what is asked of a judge is
    what the plan says.
    """
    tasks = list[str]()

    def judge(prompts: Sequence[Prompt]) -> list[Reply]:
        tasks.extend(prompt.task for prompt in prompts)
        return [Reply(by_checksum(prompt.task, elements(prompt.text))) for prompt in prompts]

    chosen = METHODS[method]
    config, text = chosen.config(), " ".join(SAID)
    said = f"<think>{text}</think><answer>{text}</answer>" if method == "knowrl" else text
    [feedback] = chosen.grader(config, judge_checks(judge))([Response("r", ASKED, said)])
    assert len(feedback.claims) == (0 if method == "truthrl" else 3)
    counted = asked(chosen.checks(config), 20, len(feedback.claims))
    # one extraction reads both parts, of which the thinking's claims are checked
    if method == "knowrl":
        assert tasks.count("extract") == 1 and tasks.count("verify") == 3
    assert len(tasks) == counted.requests


def stages(
    method: str, settings: Sequence[str] = (), **more: Any
) -> dict[str, tuple[int | None, tuple[str, int | None]]]:
    found = plan(method, overrides=settings, **more)["judging"]
    return {
        one["stage"]: (one["responses"], ("requests", one["requests"])) for one in found["stages"]
    }


def test_stages_of_each_method_by_hand() -> None:
    """Responses, and requests: of `fact` one for each claim and two more, with an outcome three
    more; a claim to 24 tokens.
    """
    # 1,024 tokens: 43 claims
    assert stages("rlfh") == {"ppo": (128 * 100, ("requests", 12_800 * (43 + 2)))}
    assert stages("rlfh", ["rlfh.mode=single_pass"]) == {"ppo": (12_800, ("requests", 12_800))}
    assert stages("truthrl") == {"grpo": (64 * 8 * 100, ("requests", 51_200))}
    knowing = stages("truthrl", ["truthrl.knowledge=true"], questions=1000)
    assert knowing == {
        "probe": (256 * 1000, ("requests", 256_000)),
        "grpo": (51_200, ("requests", 51_200)),
    }
    assert stages("knowrl", claims=10) == {
        "cold_start": (8 * 1000, ("requests", 8_000 * 13)),
        "grpo": (80 * 200, ("requests", 16_000 * 13)),
    }
    assert stages("knowrl", ["knowrl.cold.cold_samples=0"], claims=10) == {
        "grpo": (16_000, ("requests", 16_000 * 13))
    }
    assert stages("klcf", claims=10, questions=50) == {
        "prepare": (8 * 50, ("requests", 400 * 12)),
        "grpo": (128 * 100, ("requests", 12_800 * 2)),
    }
    assert stages("klcf", ["klcf.rewarded=judge", "klcf.w_check=0"], claims=10)["grpo"] == (
        12_800,
        ("requests", 12_800 * 12),
    )
    assert stages("klcf", ["klcf.trainer=dpo"], questions=5)["dpo"] == (8 * 5, ("requests", 40 * 2))
    assert stages("forag", claims=10, questions=100) == {
        "reward_model": (400, ("requests", 400 * 12))
    }
    assert stages("forag", ["forag.rewarded=judge"], claims=10) == {
        "reference": (4 * 12_800, ("requests", 51_200 * 12)),
        "ppo": (12_800, ("requests", 12_800 * 12)),
    }
    assert stages("sft_gold") == {}
    assert stages("rft", questions=10) == {"samples": (640, ("requests", 640))}
    assert stages("iterative_dpo", questions=10) == {"samples": (4 * 8 * 10, ("requests", 320))}


def test_what_the_number_of_questions_decides_is_not_counted_without_it() -> None:
    found = plan("klcf", claims=10)["judging"]
    assert found["uncounted"] == ["prepare"] and found["stages"][0]["requests"] is None
    assert found["per_run"]["requests"] == 25_600 and found["per_step"]["requests"] == 256
    known = plan("klcf", claims=10, questions=50)["judging"]
    assert known["uncounted"] == [] and known["per_run"]["requests"] == 25_600 + 4_800


@pytest.mark.parametrize("method", ["rlfh", "truthrl", "knowrl", "klcf"])
def test_twice_the_prompts_are_twice_the_judges_tokens(method: str) -> None:
    part = TRAINED[method].training(TRAINED[method].config()).trainer

    def judged(prompts: int, steps: int) -> tuple[dict[str, int], dict[str, int]]:
        settings = [
            f"{method}.{part}.{name}={value}"
            for name, value in (("prompts_per_step", prompts), ("steps", steps))
        ]
        batch = (
            []
            if part == "ppo"
            else [f"{method}.grpo.generation_batch=none", f"{method}.grpo.micro_batch=1"]
        )
        found = plan(method, overrides=[*settings, *batch])["judging"]
        return found["per_step"], next(one for one in found["stages"] if one["stage"] == part)

    step, run = judged(16, 10)
    twice_step, twice_run = judged(32, 10)
    same_step, longer_run = judged(16, 20)
    for name in ("requests", "tokens_in", "tokens_out"):
        # rounded once
        assert (
            abs(twice_step[name] - 2 * step[name]) <= 1
            and abs(twice_run[name] - 2 * run[name]) <= 1
        )
        assert same_step[name] == step[name] and abs(longer_run[name] - 2 * run[name]) <= 1


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"claims": -1}, "claims is -1"),
        ({"claims": 10**13}, "claims is"),
        ({"questions": 0}, "questions is 0"),
    ],
)
def test_numbers_that_cannot_be_are_refused(given: dict[str, int], told: str) -> None:
    with pytest.raises(WorkbenchError, match=told):
        plan("rlfh", **given)  # type: ignore[arg-type]


def test_numbers_that_nobody_can_mean_are_counted_at_once() -> None:
    """No prompt is written out, however long it would be."""
    assert plan("rlfh", claims=10**12)["judging"]["per_step"]["requests"] == 128 * (10**12 + 2)


def test_a_method_that_says_nothing_of_its_judge_is_counted_by_its_rollouts() -> None:
    rlfh = METHODS["rlfh"]
    assert rlfh.training(rlfh.config()).judged is None


def test_the_command_shows_what_a_judge_is_asked(cli: Cli) -> None:
    status, out, said = cli("plan", "klcf", "--claims", "10")
    assert status == 0 and "a step" in out and "for want of --questions: prepare" in out
    assert "assumed, where a language model judges" in said
    status, out, _ = cli("plan", "klcf", "--claims", "10", "--questions", "50", "--json")
    assert status == 0 and json.loads(out)["judging"]["per_run"]["requests"] == 30_400
    status, out, said = cli("plan", "klcf", "--claims", "-1", "--json")
    assert (status, out) == (2, "") and "--claims" in said
    assert "where a language model judges" not in cli("plan", "sft_gold")[1]
