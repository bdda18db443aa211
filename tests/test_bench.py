"""Benches: policies that match the questions, adapters of runs, and question files."""

from pathlib import Path

import pytest

import workbench.methods.bench as benches
from tests.helpers import examples, write_json
from tests.helpers.adapters import adapter_on
from tests.helpers.errors import raises_error
from tests.helpers.score_helpers import write
from tests.helpers.tiny_model import make_policy
from workbench.data import split_of
from workbench.experiments.experiment import initial_bench
from workbench.methods import METHODS
from workbench.methods.bench import Bench, bench
from workbench.methods.klcf.prepared import source_of
from workbench.policies.generate import generate
from workbench.runs.folder import versions
from workbench.types import Question
from workbench.verdicts.checks import rule_checks

QUESTIONS = [Question(name, f" Where is {name}", (" Rome",)) for name in ("Ada", "Bo", "Cy")]


def small_bench(folder: Path) -> Bench:
    return Bench(
        "tiny",
        "sft",
        lambda *_: QUESTIONS,
        4,
        "this",
        rule_checks,
        checkpoints={"sft": str(folder)},
    )


def make_run(folder: Path, policy: Path) -> Path:
    """A finished run's folder, with an adapter that is not the identity."""
    adapter_on(policy, folder)
    write_json(folder / "config.json", {"method": "truthrl", "bench": "tiny", "policy": "sft"})
    return folder


def test_a_policy_of_another_world_is_refused(tmp_path: Path) -> None:
    small = small_bench(make_policy(tmp_path / "policy" / "sft"))
    card = tmp_path / "policy" / "card.json"
    for written in (None, "{", "{}", '{"world_hash": "this"}'):
        if written is not None:
            card.write_text(written)
        assert small.load("sft").name == "sft"
    card.write_text('{"world_hash": "other"}')
    command = f"workbench world build --out {tmp_path / 'policy'} --size full"
    remedy = f"built on the world other, .* `{command}`"
    with raises_error(remedy):
        small.path("sft")
    with raises_error(remedy):
        small.load("sft")
    with raises_error(remedy):  # the policy under a run's adapter
        small.load(str(make_run(tmp_path / "run", tmp_path / "policy" / "sft")))
    assert small.path("elsewhere") == "elsewhere"


def test_a_method_that_starts_from_the_base_gets_that_of_the_named_policy() -> None:
    """KLCF starts from the pre-trained model of the policy, and prepares its data with it."""
    starts = {
        None: ("base", "sft"),
        "sft": ("base", "sft"),
        "base": ("base", "base"),
        "some/model": ("some/model", "some/model"),
    }
    klcf, rlfh = METHODS["klcf"], METHODS["rlfh"]
    for named, expected in starts.items():
        place = bench("tiny").with_policy(named)
        begun = [initial_bench(m, m.configure("tiny"), place) for m in (klcf, rlfh)]
        assert tuple(one.policy for one in begun) == expected
        if named != "some/model":
            tuned = initial_bench(klcf, klcf.configure("tiny", ["klcf.start=sft"]), place)
            for one in (begun[0], tuned):
                assert source_of(one, None).base == place.path(expected[0])


def test_a_missing_shipped_policy_names_its_build() -> None:
    with raises_error(f"world build --out {benches.TINY_POLICY}"):
        benches.check_policy("base", str(benches.TINY_POLICY / "nowhere"))


@pytest.mark.slow
def test_the_adapter_of_a_run_folder_is_applied(tmp_path: Path) -> None:
    small = small_bench(make_policy(tmp_path / "sft"))
    run = make_run(tmp_path / "run", tmp_path / "sft")

    def logprobs(policy: str) -> list[tuple[float, ...]]:
        drawn = generate(
            small.load(policy), QUESTIONS, max_new_tokens=4, greedy=True, logprobs=True
        )
        return [response.logprobs for response in drawn]

    assert logprobs(str(run)) != logprobs("sft")
    assert logprobs("sft") == logprobs("sft")
    assert logprobs(str(run)) == logprobs(str(run))


def test_hub_benches_need_questions() -> None:
    with raises_error(r"give --questions NAME\|FILE"):
        benches.bench("paper")


def test_questions_of_a_file_are_split_by_their_ids(tmp_path: Path) -> None:
    rows = [{"id": n, "question": f"Q{n}?", "answers": [f"A{n}"]} for n in range(1000)]
    paper = benches.bench("paper", questions=write(tmp_path / "questions.jsonl", rows))
    splits = {split: paper.questions(split) for split in ("rl", "validation", "test")}
    assert sum(map(len, splits.values())) == 1000
    assert 750 < len(splits["rl"]) < 850 and 70 < len(splits["test"]) < 130
    assert all(split_of(q.id) == split for split, found in splits.items() for q in found)
    assert paper.max_new_tokens == 2048
    assert "boxed" in splits["rl"][0].system and splits["rl"][0].answers[0].startswith("A")
    assert paper.questions("rl", ["yes_no"]) == []


def test_the_prompt_mentions_false_premises_only_if_questions_have_them(
    tmp_path: Path,
) -> None:
    """TruthRL, table 9."""
    row = {"question": "?", "answers": ["invalid question"], "kind": "false_premise"}
    for number, kinds in enumerate((["single"] * 40, [*["single"] * 39, "false_premise"])):
        rows = [{**row, "id": n, "kind": kind} for n, kind in enumerate(kinds)]
        file = write(tmp_path / f"{number}.jsonl", rows)
        prompted = benches.bench("small", questions=file).questions("rl")[0].system
        assert (r"\boxed{invalid question}" in prompted) == bool(number)


def test_every_field_of_a_question_file_changes_the_hash(tmp_path: Path) -> None:
    row = {
        "id": "1",
        "question": "?",
        "answers": ["!"],
        "title": "Ada",
        "passages": [{"title": "t", "text": "a"}],
        "checklist": ["c"],
        "kind": "single",
    }
    changes = examples("changed_questions")
    files = [
        write(tmp_path / f"{number}.jsonl", [{**row, **change}])
        for number, change in enumerate([{}, {}, *changes])
    ]
    first, same, *others = (bench("paper", file).hash for file in files)
    assert first == same and len({first, *others}) == len(changes) + 1


def test_an_environment_variable_sets_the_dtype_of_weights(
    policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    from workbench.policies.load import load_checkpoint

    def formats() -> set[str]:
        model, _ = load_checkpoint(policy, device="cpu")
        return {str(weight.dtype).removeprefix("torch.") for weight in model.parameters()}

    assert formats() == {"float32"} and "dtype" not in versions()
    monkeypatch.setenv("WORKBENCH_DTYPE", "bfloat16")
    assert formats() == {"bfloat16"} and versions()["dtype"] == "bfloat16"
    model, _ = load_checkpoint(policy, device="cpu")
    ids = torch.tensor([[1, 2, 3, 4]])
    last = model(input_ids=ids, logits_to_keep=2).logits
    assert torch.equal(last, model(input_ids=ids).logits[:, -2:])
    monkeypatch.setenv("WORKBENCH_DTYPE", "float8")
    with raises_error("'float8': set it to float32 or bfloat16"):
        formats()


def test_a_prompt_contains_the_passages_that_a_search_finds() -> None:
    tiny = bench("tiny").with_retrieved(2)
    for question in tiny.questions("validation"):
        first, _ = question.passages
        assert (first.title == question.title) == (question.meta["tier"] != "unknown")
        assert question.messages()[0]["content"].startswith(f"[1] {first.text} [2] ")
    # questions keep passages of their own
    asked = ("validation", ("two_facets",))
    assert tiny.questions(*asked) == bench("tiny").questions(*asked)
    with raises_error("bench 'small' takes .* evidence .* retrieved=0"):
        bench("small").with_retrieved(1)
