"""The inspector's data: runs below the runs folder, rewards by every method, and what-if."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.helpers import examples, refusal, write_json
from tests.helpers.adapters import adapter_on
from tests.helpers.errors import raises_error
from workbench.inspector.annotated import relabelled
from workbench.inspector.curves import curve_data
from workbench.inspector.evaluations import before_after
from workbench.inspector.examples import worked_example
from workbench.inspector.inspect_tab import LOCAL, export_page, open_pasted
from workbench.inspector.listing import Query, disagreement, rollouts
from workbench.inspector.live import KINDS, answers_of, policies, some_question
from workbench.inspector.opened import open_feedback, open_row, show, with_rewards
from workbench.inspector.page import Settings, first_shown, settings
from workbench.inspector.runs import Runs
from workbench.inspector.what_if import labeller, what_if
from workbench.methods import method_configs
from workbench.methods.bench import TINY_POLICY, bench
from workbench.runs.store import Store, append_feedback, iter_feedback
from workbench.types import Failure, Feedback, Passage, Verdict
from workbench.util.failures import unparsed
from workbench.util.jsonl import append_json

STEPS, SIZE = 3, 4


def rollout(step: int, sample: int, text: str | None = None) -> Feedback:
    """The worked example as a stored rollout: one claim's label changes from sample to sample."""
    row = worked_example()
    response = replace(
        row.response,
        id=f"tarven/{step}/{sample}",
        group=f"tarven/{step}",
        step=step,
        sample=sample,
        logprobs=tuple(-0.1 * (n % 7) for n in range(len(row.response.offsets))),
        ref_logprobs=tuple(-0.1 * (n % 5) for n in range(len(row.response.offsets))),
    )
    label = ("wrong", "vague", "hedged_correct", "correct")[sample]
    verdicts = tuple(replace(v, label=label) if v.target == "claim:2" else v for v in row.verdicts)
    row = replace(row, response=response, verdicts=verdicts)
    return with_rewards(row, method_configs(("rlfh",)))


def record(folder: Path, rows: Sequence[Feedback] | None = None) -> Path:
    """Write a run's folder as training leaves it."""
    found = (
        [rollout(step, sample) for step in range(1, STEPS + 1) for sample in range(SIZE)]
        if rows is None
        else rows
    )
    append_feedback(folder, found)
    for step in range(1, STEPS + 1):
        append_json(
            folder / "metrics.jsonl",
            {
                "step": step,
                "reward": step / 10,
                "accuracy": 0.5,
                "kl": None,
                "failed": 1,
                "seconds": 1.0,
            },
        )
    write_json(
        folder / "config.json",
        {"method": "rlfh", "bench": "small", "config": {"alpha": 1.0, "unknown": 3}},
    )
    cell = {"value": 0.5, "low": 0.4, "high": 0.6}
    report = {
        "n": 10,
        "split": "test",
        "greedy": dict.fromkeys(("accuracy", "abstention", "hallucination", "truthfulness"), cell),
    }
    write_json(folder / "summary.json", {"before": report, "after": report})
    return folder


def record_scored(folder: Path) -> None:
    """Write rows without steps: a correct outcome, a failed judge, no gold answer, and no check."""
    timeout, no_gold = (
        Failure("judge", "timeout", "the judge gave no answer"),
        Failure("verify", "no_gold", "no gold answers"),
    )
    outcomes = (
        Verdict("outcome", "answer", "correct"),
        Verdict("outcome", "answer", error=timeout),
        Verdict("outcome", "answer", error=no_gold),
        None,
    )
    rows = []
    for number, outcome in enumerate(outcomes):
        row = rollout(1, number)
        kept = tuple(verdict for verdict in row.verdicts if verdict.target != "outcome")
        row = replace(
            row, response=replace(row.response, id=f"scored/{number}", step=None), rewards={}
        )
        rows.append(replace(row, verdicts=(*kept, outcome) if outcome else kept))
    append_feedback(folder, rows)


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Runs:
    root = tmp_path_factory.mktemp("runs")
    record(root / "a" / "first")
    return Runs(root)


def test_retrieved_evidence_is_shown_with_its_text(tmp_path):
    """As `workbench score --store` stores it: the passage does not belong to the question."""
    row, text = rollout(1, 0), "The Tarven bridge was opened in 1934 by the mayor."
    cited = Verdict(
        "claim:1",
        "fact",
        "correct",
        0.9,
        4,
        ({"passage": "wiki:7", "span": [0, 36]}, {"passage": "gone"}),
        "local",
    )
    row = replace(row, verdicts=(cited, *(v for v in row.verdicts if v.target != "claim:1")))
    with Store(tmp_path / "run") as store:
        store.append([replace(row, passages=(Passage("wiki:7", "Tarven", text),))])
    shown = open_row(Runs(tmp_path), "run", "tarven/1/0").data()
    first, second = next(claim["evidence"] for claim in shown["claims"] if claim["id"] == 1)
    assert first["title"] == "Tarven" and second["title"] == "passage gone"
    assert "".join(piece for piece, _ in first["parts"]) == text
    assert [title for title, _ in shown["passages"]] == ["Tarven bridge", "Osk tunnel"]


@pytest.mark.skipif(not TINY_POLICY.is_dir(), reason="the shipped policy is not in this checkout")
def test_a_question_is_asked_with_the_prompts_of_the_policys_training(tmp_path):
    run = adapter_on(TINY_POLICY / "sft", record(tmp_path / "run"))
    trained = {"bench": "tiny", "policy": "sft"}
    prompts = {"system": "Be brief.", "retrieved": 2}
    write_json(run / "config.json", {**trained, "config": {"prompts": prompts}})
    [row] = answers_of(Runs(tmp_path), "run", "What is the birthplace of Bakun Stopunos?", 1, 0.0)
    asked = row.response.question
    assert (asked.system, len(asked.passages), asked.answers[0]) == ("Be brief.", 2, "Manuro")


@pytest.mark.parametrize(
    "name",
    examples("outside_paths"),
)
def test_paths_stay_under_the_runs_folder(tmp_path, name):
    root = tmp_path / "runs"
    record(root / "a" / "first", [])
    record(tmp_path / "outside", [])
    (root / "link").symlink_to(tmp_path / "outside")
    with raises_error("choose another run"):
        Runs(root).folder(name)
    assert Runs(root).names() == ["a/first"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", "passages.jsonl questions.jsonl rollouts.jsonl metrics.jsonl config.json policy".split()
)
def test_links_out_of_the_runs_folder_are_not_followed(tmp_path, name):
    """Linked files of a foreign run are not shown; the page and other runs work as before."""
    secret, root = "SECRET-of-the-machine", tmp_path / "runs"
    record(root / "good")
    sly, outside = record(root / "sly"), record(tmp_path / "outside")
    for folder in (sly, outside):
        (folder / "policy").mkdir()
        (folder / "policy" / "adapter_config.json").write_text("{}")
    for file in outside.glob("*.json*"):
        file.write_text(file.read_text().replace("Tarven", secret).replace('"rlfh"', f'"{secret}"'))
    (sly / name).rename(tmp_path / "kept")
    (sly / name).symlink_to(outside / name)
    runs = Runs(root)
    output = [*runs.names(), *policies(runs)]
    for run in runs.names():
        output += [
            curve_data(runs, [run]),
            rollouts(runs, run, Query(1, "lowest")),
            before_after(runs, [run]),
        ]
        output += [json.dumps(runs.described(run, "config.json")), json.dumps(runs.metrics(run))]
        opened, error = first_shown(runs, Settings(root), {"run": run, "id": "tarven/1/0"})
        output += [show(opened), str(error)]
        assert opened.run == run or (run == "sly" and "outside its folder" in str(error))
    assert "good" in runs.names() and secret not in "".join(output)
    assert ("sly" in runs.names()) == (name != "rollouts.jsonl") and ("sly" in policies(runs)) == (
        name not in ("rollouts.jsonl", "policy")
    )
    assert runs.question("good", "tarven").text
    if name == "passages.jsonl":
        with raises_error("is a link to a file outside its folder"):
            runs.question("sly", "tarven")


def test_a_linked_policy_is_not_loaded(tmp_path):
    run = record(tmp_path / "runs" / "run")
    (tmp_path / "elsewhere.safetensors").touch()
    (run / "policy").mkdir()
    (run / "policy" / "adapter_model.safetensors").symlink_to(tmp_path / "elsewhere.safetensors")
    runs = Runs(tmp_path / "runs")
    assert runs.policy("run") is None
    with raises_error("no trained policy"):
        answers_of(runs, "run", "Who?", 1, 0.0)


def test_settings_find_the_runs_folder(runs, tmp_path):
    inside = runs.root / "a" / "first"
    assert settings(inside, runs.root, 0).run == "a/first"
    assert settings(inside, None, 0) == Settings(inside.parent.resolve(), "first", 0)
    with raises_error("--runs"):
        settings(inside, tmp_path, 0)
    with raises_error("no run"):
        settings(tmp_path / "none", tmp_path, 0)
    with raises_error(f"inside the runs folder '{runs.root}'"):  # not a run
        settings(runs.root, runs.root, 0)


def test_pasted_answers():
    asked, answer = "What does Dramem Torusin do for a living?", "Dramem Torusin is a baker."
    scored = open_pasted(asked, answer, "", "", "Closed world, without sources")
    assert scored.feedback.rewards["truthrl"].value is not None
    assert scored.feedback.rewards["rlfh"].value is not None
    plain = open_pasted(
        "Who?", "Ada wrote it. She lived in London.", "", "", "No judge: only find the claims"
    )
    assert plain.feedback.claims and plain.feedback.rewards["rlfh"].value is None
    with raises_error("no answer"):
        open_pasted("Who?", "  ", "", "", "No judge: only find the claims")
    with raises_error("sources"):
        open_pasted("Who?", "Ada.", "", "", LOCAL)


def asked(**changes) -> dict:
    key = json.loads(show(open_feedback(worked_example(), (worked_example(),), "test")))["key"]
    return what_if({"key": key, **changes})


def value(found: dict, method: str) -> float:
    return found["view"]["methods"][method]["value"]


def test_what_if_by_hand():
    """RLFH's reward is −0.25·α + 1.9051·β; see `worked_example`."""
    assert value(asked(), "rlfh") == pytest.approx(1.65509, abs=1e-5)
    both = asked(settings={"rlfh": {"alpha": 2.0, "beta": 0.5}, "truthrl": {"correct": 3}})
    assert value(both, "rlfh") == pytest.approx(-0.5 + 0.95255, abs=1e-5)
    assert value(both, "truthrl") == 3.0
    assert both["line"] == "--set rlfh.alpha=2 --set rlfh.beta=0.5 --set truthrl.correct=3"
    assert both["config"]["rlfh"]["alpha"] == 2.0 and both["config"]["rlfh"]["method"] == "rlfh"
    # the wrong claim (weight 1.0) relabelled as correct: −2 becomes +1
    assert value(asked(edits={"2": {"label": "correct"}}), "rlfh") == pytest.approx(
        4.65509, abs=1e-5
    )
    merged = asked(settings={"rlfh": {"granularity": "paragraph"}})["view"]["methods"]["rlfh"][
        "tokens"
    ]
    assert merged[-1] == pytest.approx(1.65509, abs=1e-5) and not any(merged[:-1])


def test_what_if_errors_are_one_line():
    for changes in examples("what_if_errors"):
        found = asked(**changes)
        assert set(found) == {"error"} and "\n" not in found["error"], changes
    assert "error" in what_if(None) and "error" in export_page({})


def test_edited_labels_are_stored_as_annotations(tmp_path):
    key = json.loads(show(open_feedback(worked_example(), (), "test")))["key"]
    keep = labeller(Runs(tmp_path))
    assert "error" in keep({"key": key, "edits": {}})
    assert keep({"key": key, "edits": {"2": {"label": "correct"}}}) == {
        "path": "annotations/rollouts.jsonl",
        "labels": {"2": "correct"},
    }
    (row,) = iter_feedback(tmp_path / "annotations")
    assert [(v.target, v.label, v.by) for v in row.verdicts] == [
        ("claim:2", "correct", "annotation")
    ]


def test_a_persons_label_replaces_unread_and_useless_verdicts():
    row = worked_example()
    unread = [
        unparsed("claim:2", "script", "local"),
        Verdict("claim:2", "subject", "other", by="world"),
    ]
    row = replace(row, verdicts=(*(v for v in row.verdicts if v.target != "claim:2"), *unread))
    output = [
        v
        for v in relabelled(row, {"2": {"label": "correct", "informativeness": 4}}).verdicts
        if v.target == "claim:2"
    ]
    assert [(v.aspect, v.label, v.evidence) for v in output] == [("fact", "correct", ())]
    assert row.verdicts[-1] in relabelled(row, {"2": {"label": "correct"}}).verdicts


def test_disagreement_is_the_spread_of_ranks():
    rows: list[dict[str, float | None]] = [
        {"m0": 0.0, "m1": 5.0, "m2": 1.0},
        {"m0": 1.0, "m1": 4.0, "m2": 1.0},
        {"m0": 2.0, "m1": None, "m2": 1.0},
    ]
    # m0 ranks 0, ½, 1; m1 ranks 1, 0; m2 ranks no row.
    assert disagreement(rows) == [1.0, 0.5, None]


def test_a_run_without_steps_or_rollouts_has_a_note(tmp_path):
    record_scored(tmp_path / "scored")
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "rollouts.jsonl").touch()
    runs = Runs(tmp_path)
    assert "its 4 rows are listed" in json.loads(curve_data(runs, ["scored"]))["note"]
    assert "no rollouts yet" in json.loads(curve_data(runs, ["empty"]))["note"]
    assert json.loads(rollouts(runs, "empty", Query(0, "lowest"))) == {}
    assert json.loads(rollouts(runs, "scored", Query(0, "lowest")))["note"].startswith(
        "4 rollouts. "
    )


def test_a_missing_run_is_refused(tmp_path, cli):
    assert "no run 'none'" in refusal(cli(f"inspect --run {tmp_path / 'none'}"))


@pytest.mark.parametrize("kind", KINDS)
def test_questions_of_every_kind_are_drawn(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.inspector.live.KINDS", (kind,))
    assert some_question() in {
        question.text for question in bench("tiny").questions("test", [kind])
    }
