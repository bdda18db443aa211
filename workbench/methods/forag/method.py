"""Define the method FoRAG: its reward's parts, and which settings a config leaves unused."""

from workbench.methods.forag.config import FoRAG
from workbench.methods.forag.reward import reward
from workbench.methods.forag.scales import TINY
from workbench.methods.forag.stages import stages
from workbench.methods.method import Method, Training

PARTS = {
    "factuality": ("factuality", "sum of the sentences' factuality, each from 0 to 1"),
    "segments": ("sentences scored", "number of sentences of the answer that have a score"),
    "baseline": (
        "reference answers",
        "mean factuality of the reference's own answers, subtracted from every sentence",
    ),
    "stood_in": (
        "scored by claim verdicts",
        "sentences without a reward model's score: verdicts on their claims are used",
    ),
    "repeated": (
        "repeated",
        "with repeats=once: sentences that repeat what the answer stated, which earn no reward",
    ),
    "unfinished": (
        "missing",
        "added to a plan without an answer: each missing sentence counts as a false one",
    ),
}


def training(config: FoRAG) -> Training:
    """Return how a config is trained: its last stage, and the settings that it does not use."""
    modelled = config.by_rl and config.rewarded == "model"
    last = config.trainer if config.by_rl else "tuned"
    return Training(last, _unused(config) - {last}, resident_models=int(modelled))


def _unused(config: FoRAG) -> set[str]:
    """Return the paths of the settings that the config's other settings leave unused."""
    cold, judged = config.cold, config.by_rl and config.rewarded == "judge"
    by_policy = bool(cold.cold_samples) and cold.outline
    cases = (
        (True, "ppo grpo tuned"),
        (config.trainer != "unlikelihood", "unlearn"),
        (config.trainer != "ppo", "baseline"),
        # the baselines of section 6.3 select samples instead of rewarding them
        (not config.by_rl, "rewarded evaluation aggregate repeats"),
        (config.evaluation != "subclaim", "aggregate"),
        (not cold.cold_samples, "sft cold.outline cold.cold_questions"),
        (not by_policy, "cold.writer cold.told"),
        # the judge writes one answer a question, by its own prompt
        (by_policy and not cold.sampled, "cold.told cold.cold_samples"),
        (not config.by_rl or judged, "reward_model held_out"),
        (not config.compares, "references"),
        # only a cold start uses the sampling settings of `drawn`
        (judged, "drawn.questions drawn.samples"),
        (judged and not cold.sampled, "drawn.temperature drawn.top_p drawn.max_new_tokens"),
        (judged and not cold.cold_samples and not config.compares, "drawn.max_failed"),
    )
    return {name for unused, names in cases if unused for name in names.split()}


METHOD: Method = Method(
    "forag",
    "FoRAG",
    FoRAG,
    reward,
    lambda config: ("fact",),
    stages=lambda config, bench: stages(config, bench, METHOD),
    parts=PARTS,
    scales={"tiny": TINY},
    training=training,
)
