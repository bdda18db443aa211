"""Estimate the cost of the papers' settings, and of a million prompts, by `workbench plan`.

    python benchmarks/papers.py --results benchmarks/results/papers.json

Nothing is run. Values that a paper does not state are ours or assumed, and are listed. Hours are
for this project's way (an adapter, one GPU, plain transformers), not for the papers' (all
parameters, a generation server).
"""

import argparse
import math
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.findings_tables import PAPER  # noqa: E402
from benchmarks.tables import markdown  # noqa: E402
from workbench.experiments.plan import (  # noqa: E402
    GIB,
    OF_FLOPS,
    PER_RESPONSE,
    forward_flops,
    judge_requests,
    judged_checks,
    plan,
)
from workbench.experiments.shape import GPUS, shape_of  # noqa: E402
from workbench.judge import render  # noqa: E402
from workbench.methods import METHODS  # noqa: E402
from workbench.scoring.estimate import CHARACTERS, Counter  # noqa: E402
from workbench.util.jsonl import write_json  # noqa: E402

POLICY_GPUS, MILLION = ("a100-80", "h100-80"), 1_000_000
# assumed for all settings: the judge, whose hours are listed separately
JUDGE, JUDGE_GPU = "meta-llama/Llama-3.1-70B", "h100-80"
# tokens of a claim, a question, an answer, a passage; passages per claim; items per checklist
CLAIM, QUESTION, ANSWER, PASSAGE, PASSAGES, ITEMS = 12, 24, 8, 150, 5, 10
ASSUMED = (
    f"assumed, where a language model judges: {CHARACTERS} characters per token, questions of"
    f" {QUESTION} tokens, answers of {ANSWER}, claims of {CLAIM}, {PASSAGES} passages of {PASSAGE}"
    f" per claim, and checklists of {ITEMS} items. All prompts differ and each is sent once. Every"
    " response has the maximum length"
)
BOX, DAY = 8, 24  # GPUs per machine, and hours in which everything must finish


@dataclass(frozen=True)
class Setting:
    """A paper's training.

    `part` trains the policy. `prompts` and `group` are per step. `new` is the assumed length of a
    response. `asked` is the number of prompts in all, `questions` the number in the earlier stages.
    """

    name: str
    method: str
    part: str
    policy: str
    prompts: int
    group: int
    new: int
    asked: int
    prompt_tokens: int
    stated: str
    assumed: str
    reported: str
    claims: int | None = None
    questions: int | None = None
    more: tuple[str, ...] = ()
    samples: int = 0  # judged samples per question in earlier stages

    def plan(self, gpu: str, count: int | None = None) -> dict[str, Any]:
        """Return the plan of the setting, with `count` prompts if given."""
        path = f"{self.method}.{self.part}"
        steps = math.ceil((count or self.asked) / self.prompts)
        changed = {
            "steps": steps,
            "prompts_per_step": self.prompts,
            "group_size": self.group,
            "max_new_tokens": self.new,
        }
        settings = [*(f"{path}.{name}={value}" for name, value in changed.items()), *self.more]
        return plan(
            self.method,
            policy=self.policy,
            gpu=gpu,
            overrides=settings,
            prompt_tokens=self.prompt_tokens,
        )

    def judged(self, steps: int, count: int | None = None) -> dict[str, float]:
        """Return the judge's requests and tokens for rollouts and for the samples of earlier
        stages.
        """
        config = METHODS[self.method].configure("paper", [*self.more])
        claims = self.claims or -(-self.new // PER_RESPONSE)
        checks = judged_checks(METHODS[self.method].checks(config), config)
        rollouts = steps * self.prompts * self.group
        total = {name: rollouts * n for name, n in about(checks, self.new, claims).items()}
        earlier = (count or self.questions or self.asked) * self.samples
        for name, n in about(["fact"], self.new, claims).items():
            total[name] += earlier * n
        return {name: round(n) for name, n in total.items()}


SEVEN = "Qwen/Qwen2.5-7B"
TRUTHRL: dict[str, Any] = {
    "method": "truthrl",
    "part": "grpo",
    "policy": "meta-llama/Llama-3.1-8B",
    "prompts": 64,
    "group": 8,
    "new": 512,
    "asked": 6_400,
    "reported": "8 H100, no hours",
}
SETTINGS = (
    Setting(
        "RLFH",
        "rlfh",
        "ppo",
        SEVEN,
        128,
        1,
        512,
        20_000,
        512,
        "20,000 questions; batch 128 of one response each (code); 21 claims a "
        "response (table 3); policy of 7B",
        "512 tokens of prompt and of response (at most 1,024: code); one pass; "
        "Qwen2.5-7B for Vicuna-7B",
        "8 A100 and 4–8 for the judge, half a day to a day: 144–384 GPU-hours",
        claims=21,
    ),
    Setting(
        "TruthRL",
        **TRUTHRL,
        prompt_tokens=512,
        stated="64 prompts a step; at most 2,048 tokens; Llama-3.1-8B",
        assumed="group of 8 and 100 steps (ours); 512 tokens of prompt and of response",
    ),
    Setting(
        "TruthRL, with pages",
        **TRUTHRL,
        prompt_tokens=14_336,
        stated="as above; a context of 16,384",
        assumed="as above; prompts as long as the context leaves room",
        more=("truthrl.generation_batch=16",),
    ),
    Setting(
        "FoRAG",
        "forag",
        "ppo",
        SEVEN,
        128,
        1,
        409,
        43_579,
        1_024,
        "43,579 questions; answers of 409 tokens with their outline (table 1)",
        "batch 128, one pass, 4 judged samples a question (ours); 1,024 tokens "
        "of prompt; Qwen2.5-7B for Llama2-7B",
        "8 A100; reward model and RLHF 55.5 hours (table 8, without the number of GPUs)",
        more=("forag.drawn.max_new_tokens=409",),
        samples=4,
    ),
    Setting(
        "KLCF",
        "klcf",
        "grpo",
        "Qwen/Qwen2.5-14B",
        16,
        8,
        700,
        13_230,
        512,
        "13,230 prompts of 14,589 that are prepared (table 6); about 700 "
        "tokens; 48 claims a prepared prompt (table 11)",
        "16 prompts a step, group of 8, one pass (ours); one sample a prepared "
        "prompt; 512 tokens of prompt",
        "16 H100, no hours; 693,049 claims verified",
        claims=48,
        questions=14_589,
        more=(
            "klcf.prepare.samples=1",
            "klcf.prepare.max_new_tokens=700",
            "klcf.generation_batch=64",
        ),
        samples=1,
    ),
    Setting(
        "KnowRL",
        "knowrl",
        "grpo",
        SEVEN,
        8,
        10,
        512,
        1_600,
        512,
        "80 responses a step, 200 steps; R1-Distill-Qwen-7B",
        "groups of 10 (code); 512 tokens of prompt and of response; no cold start",
        "1 A800, no hours",
        more=("knowrl.cold.cold_samples=0",),
    ),
)


def about(checks: Collection[str], response: int, claims: int) -> dict[str, float]:
    """Return the judge's requests and tokens for one response, with texts of assumed lengths.

    Replies have the lengths of `workbench score --dry-run`.
    """

    def text(tokens: int) -> str:
        return "x" * (CHARACTERS * tokens)

    whole = {"question": text(QUESTION), "response": text(response)}
    gold, listed = {**whole, "answers": [text(ANSWER)]}, [text(CLAIM)] * claims
    asked: list[tuple[int, str, dict[str, Any]]] = []
    if not {"fact", "truth", "claim_checklist"}.isdisjoint(checks):
        asked.append((1, "extract", whole))
    if "fact" in checks:
        seen = {"question": text(QUESTION), "passages": [text(PASSAGE)] * PASSAGES}
        asked.append((claims, "verify", {**seen, "claims": [text(CLAIM)]}))
        asked.append((1, "inform", {**whole, "claims": listed}))
    if "outcome" in checks:
        asked.append((1, "outcome", {**gold, "response": text(ANSWER)}))
    if "checklist" in checks:
        asked.append((1, "checklist", {**whole, "items": [text(CLAIM)] * ITEMS}))
    found = {"requests": 0.0, "tokens_in": 0.0, "tokens_out": 0.0}
    for times, task, texts in asked:
        counter = Counter()
        counter([render(task, **texts)])
        for name, n in zip(found, (1, counter.tokens_in, counter.tokens_out), strict=True):
            found[name] += times * n
    assert found["requests"] == judge_requests(checks, claims), checks
    return found


def measured(setting: Setting, count: int | None = None) -> dict[str, Any]:
    """Return rollouts, tokens, judge requests, GPU-hours, and machines to finish in a day."""
    plans = {gpu: setting.plan(gpu, count) for gpu in POLICY_GPUS}
    one = plans[POLICY_GPUS[0]]
    judged, rollouts = setting.judged(one["steps"], count), one["steps"] * one["responses_a_step"]
    hours, judge = {gpu: found["hours"] for gpu, found in plans.items()}, judge_hours(judged)
    return {
        "setting": setting.name,
        "prompts": count or setting.asked,
        "rollouts": rollouts,
        "generated": rollouts * setting.new,
        "learnt": rollouts * (setting.prompt_tokens + setting.new),
        **judged,
        "hours": hours,
        "judge_hours": judge,
        "machines": math.ceil((hours[JUDGE_GPU] + judge) / (BOX * DAY)),
        "held": held(plans[JUDGE_GPU]),
    }


def held(found: Mapping[str, Any]) -> str:
    """Return whether the memory of one GPU is enough for all phases.

    Phases without a part are evaluations. Their batch size is not a setting.
    """
    over = {
        phase["part"]
        for phase in found["phases"]
        if phase["total"] > GPUS[found["gpu"]]["memory"] * GIB
    }
    return "no" if over - {""} else "but for evaluations" if over else "yes"


def judge_hours(judged: Mapping[str, float]) -> float:
    """Return the GPU-hours of the judge's passes over the tokens it reads and writes.

    The utilisation is that assumed for learning. Batches are large enough that memory bandwidth
    does not matter.
    """
    tokens = judged["tokens_in"] + judged["tokens_out"]
    each = (
        forward_flops(shape_of(JUDGE), round(tokens / judged["requests"]))
        if judged["requests"]
        else 0.0
    )
    return round(tokens * each / (OF_FLOPS * GPUS[JUDGE_GPU]["flops"]) / 3600, 2)


def found() -> dict[str, Any]:
    rows = [measured(one) for one in SETTINGS]
    scaled = [{**measured(one, MILLION), "setting": f"{one.name}, 1M prompts"} for one in SETTINGS]
    given = [
        {name: getattr(one, name) for name in ("name", "stated", "assumed", "reported")}
        for one in SETTINGS
    ]
    assumed = {
        "judge": JUDGE,
        "judge_gpu": JUDGE_GPU,
        "box": BOX,
        "day": DAY,
        "counts": ASSUMED,
    }
    return {"assumed": assumed, "settings": given, "rows": [*rows, *scaled], "beside": beside()}


def beside() -> dict[str, dict[str, Any]]:
    """Return our and the paper's token counts for a response with the claims of KLCF's table 5.

    The number of claims is the table's number of searches.
    """
    ways = {"FActScore": ("fact",), "KLCF": ("truth", "checklist")}
    claims = round(float(PAPER["serial"]["FActScore"][2]))
    return {
        way: {
            "claims": claims,
            **{n: round(v) for n, v in about(checks, claims * PER_RESPONSE, claims).items()},
            "paper": PAPER["serial"][way][3:],
        }
        for way, checks in ways.items()
    }


COUNTS = ("rollouts", "generated", "learnt", "requests", "tokens_in", "tokens_out")
HEAD = [
    "",
    "rollouts",
    "tokens sampled",
    "through the learner",
    "judge: requests",
    "tokens in",
    "tokens out",
    "A100-hours",
    "H100-hours",
    "judge: H100-hours",
    "machines for a day",
    "one GPU holds it",
]


def table(found: Mapping[str, Any]) -> str:
    """Return the table of counts, the settings, and the assumptions."""
    rows = [
        [
            row["setting"],
            *(short(row[name]) for name in COUNTS),
            *(short(row["hours"][gpu]) for gpu in POLICY_GPUS),
            short(row["judge_hours"]),
            str(row["machines"]),
            row["held"],
        ]
        for row in found["rows"]
    ]
    given = [
        [one["name"], one["stated"], one["assumed"], one["reported"]] for one in found["settings"]
    ]
    head, judge = ["", "the paper states", "assumed here", "the paper reports"], found["assumed"]
    about = (
        f"The judge's hours are a lower bound for {judge['judge'].rpartition('/')[2]}, whatever"
        f" judge the paper used. *Machines for a day*: machines of {judge['box']} H100\nthat run"
        f" policy and judge in {judge['day']} hours. Judging assumes"
        f" {judge['counts'].partition(': ')[2]}."
    )
    near = " ".join(
        f"{way}: {one['tokens_in']:,} tokens in and {one['tokens_out']:,} out; the paper"
        f" counts {int(one['paper'][0]):,} and {int(one['paper'][1]):,}."
        for way, one in found["beside"].items()
    )
    checked = (
        "Comparison with KLCF's table 5, for a response of"
        f" {found['beside']['KLCF']['claims']} claims.\n{near}"
    )
    return "\n\n".join([markdown(HEAD, rows), about, checked, markdown(head, given)])


def short(value: float) -> str:
    """Return a rounded number such as 51.2k, 1.3M or 5.5B."""
    for size, unit in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e4, "k")):
        if value >= size:
            return f"{value / (1e3 if unit == 'k' else size):.3g}{unit}"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results", type=Path)
    given = parser.parse_args()
    result = found()
    print(table(result))
    if given.results:
        write_json(given.results, result)


if __name__ == "__main__":
    main()
