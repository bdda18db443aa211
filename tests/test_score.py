"""Scoring a file: input and output rows, replay, resuming, refusals and reports."""

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import Cli, examples, printed, read_json, write_json
from tests.helpers.errors import raises_error
from tests.helpers.score_helpers import LABELLED, ids, options, read, world_rows, write
from workbench.runs.store import iter_feedback, read_questions
from workbench.scoring import Options, estimate_file, score_file
from workbench.types import Claim, JsonObject, Question, Response
from workbench.verdicts.checks import judge_checks


def of_world(folder: Path, rows: int | list[Any]) -> Options:
    """Options for scoring this many biographies, or these rows, by RLFH with the world as judge."""
    found = world_rows(rows) if isinstance(rows, int) else rows
    return options(folder, found, judge="world", method="rlfh")


def unknown(count: int) -> list[JsonObject]:
    """Rows about a person who is not in the world."""
    text = {"question": "Who was Napoleon?", "response": "Napoleon was born in Ajaccio."}
    return [{"id": f"w{number}", **text} for number in range(count)]


def test_the_world_scores_its_own_biographies(tmp_path: Path) -> None:
    chosen = of_world(tmp_path, 12)
    summary = score_file(chosen)
    wanted = {"status": "done", "rows": 12, "failed": 0, "malformed": 0}
    assert summary.items() >= wanted.items()
    assert set(summary["labels"]) == {"correct"}
    rows = read(chosen.out)
    assert ids(chosen.out) == [str(number) for number in range(12)]
    assert all(row["schema"] == 1 and row["tokens"]["source"] == "words" for row in rows)
    assert all(len(row["claims"]) == 6 and row["rewards"]["rlfh"]["value"] > 0 for row in rows)
    for paid in (row["rewards"]["rlfh"] for row in rows):
        assert sum(paid["tokens"]) == pytest.approx(paid["value"], abs=1e-9)
    questions = read_questions(chosen.out.parent)
    assert all(questions[row["question_id"]].kind == "biography" for row in rows)
    assert len(list(iter_feedback(chosen.out))) == 12


def test_rewards_of_labelled_claims_by_hand_without_a_judge(tmp_path: Path) -> None:
    chosen = options(tmp_path, [LABELLED], method="all")
    summary = score_file(chosen)
    [row] = read(chosen.out)
    # RLFH: 1·|1.3| at "painter" and −2·|1.2| at "Rome"; log(1 + 1.3) and log(1 + 1.2) at the ends
    # of the sentences.
    first, second = 1.3 + math.log(2.3), -2.4 + math.log(2.2)
    paid = row["rewards"]["rlfh"]
    assert paid["value"] == pytest.approx(first + second)
    assert paid["tokens"] == pytest.approx([0, 0, 0, first, 0, 0, 0, 0, second])
    assert row["rewards"]["truthrl"]["value"] == 1.0
    assert [claim["end"] for claim in row["claims"]] == [
        len("Ada is a painter"),
        len(LABELLED["response"]) - 1,
    ]
    assert {verdict["by"] for verdict in row["verdicts"]} == {"given"}
    assert (summary["failed"], summary["cost"]["calls"]) == (0, 0)


@pytest.mark.parametrize("split", [True, False], ids=["split", "with sentences"])
@pytest.mark.parametrize("positioned", [(0, 1, 2), (1,)], ids=["all", "one"])
def test_spans_of_labelled_claims_change_nothing(
    positioned: tuple[int, ...], split: bool, tmp_path: Path
) -> None:
    """The claim in the thinking earns nothing; each sentence of the answer has its own logarithm:
    1·|1.3| + log(1 + 1.3), and 1·|1.2| + log(1 + 1.2).
    """
    text = "<think>Ana was born in Rome.</think> She paints. She lives in Oslo."
    claims: list[JsonObject] = [
        {"text": "Ana was born in Rome", "label": "wrong"},
        {"text": "She paints", "label": "correct", "informativeness": 5},
        {"text": "She lives in Oslo", "label": "correct", "informativeness": 4},
    ]
    for number in positioned:
        start = text.index(claims[number]["text"])
        claims[number]["span"] = [start, start + len(claims[number]["text"])]
    given: JsonObject = {"id": "a", "question": "Who is Ana?", "response": text, "claims": claims}
    if not split:
        given["sentences"] = [[0, 36], [37, 48], [49, 67]]
    chosen = options(tmp_path, [given], method="rlfh")
    score_file(chosen)
    [row] = read(chosen.out)
    assert [claim["section"] for claim in row["claims"]] == ["think", "body", "body"]
    assert [claim["sentence"] for claim in row["claims"]] == [0, 1, 2]
    assert not row["rewards"]["rlfh"].get("unplaced")
    expected = 1.3 + math.log(2.3) + 1.2 + math.log(2.2)
    assert row["rewards"]["rlfh"]["value"] == pytest.approx(expected)


def test_given_claims_are_verified_and_rewarded_like_extracted_claims(
    tmp_path: Path,
) -> None:
    """FActScore, VeriScore and SAFE write such claims."""
    [row] = world_rows(1)
    extracted = of_world(tmp_path, [row])
    score_file(extracted)
    [scored] = read(extracted.out)
    claims = [{"text": claim["text"]} for claim in scored["claims"]]
    spans = [{**one, "span": c["span"]} for one, c in zip(claims, scored["claims"], strict=True)]
    texts = [claim["text"] for claim in claims]
    for number, given in enumerate((claims, spans, texts)):
        folder = tmp_path / str(number)
        folder.mkdir()
        chosen = of_world(folder, [{**row, "claims": given}])
        assert score_file(chosen)["failed"] == 0
        [again] = read(chosen.out)
        assert again["verdicts"] == scored["verdicts"]
        paid, expected = (one["rewards"]["rlfh"] for one in (again, scored))
        assert paid["parts"]["truth"] == expected["parts"]["truth"]
        # "was born in 1904" shares most words with sentence 2, though sentence 3 has the year
        sentences = [0, 1, 2, 3 if given is spans else 2, 4, 4]
        assert [claim["sentence"] for claim in again["claims"]] == sentences
        assert (paid == expected) is (given is spans)
    mixed = [*claims[:-1], {**claims[-1], "label": "wrong"}]
    chosen = options(tmp_path, [{**row, "claims": mixed}], judge="world")
    with raises_error(rf"id '{row['id']}'.*\"label\""):
        score_file(replace(chosen, out=tmp_path / "mixed.jsonl"))


def test_a_single_pass_refuses_claims_of_the_row() -> None:
    replies = judge_checks(lambda prompts: [])
    assert replies.single_pass
    given = Response("r", Question("q", "?"), "It is.", given_claims=(Claim(0, "It is."),))
    [failed] = replies.single_pass([given])
    assert failed.error and "rlfh.mode=pipeline" in failed.error.message


def test_a_feedback_file_is_replayed_with_other_settings(tmp_path: Path) -> None:
    first = of_world(tmp_path, 3)
    score_file(first)
    settings = ["rlfh.alpha=2", "rlfh.beta=0"]
    second = Options(first.out, tmp_path / "again" / "g.jsonl", "rlfh", overrides=settings)
    score_file(second)
    for before, after in zip(read(first.out), read(second.out), strict=True):
        assert after["rewards"]["rlfh"]["value"] == pytest.approx(
            2 * before["rewards"]["rlfh"]["parts"]["truth"]
        )
        assert {**after, "rewards": {}} == {**before, "rewards": {}}
    assert read_questions(second.out.parent) == read_questions(first.out.parent)
    first_titles, titles = (
        [feedback.response.question.title for feedback in iter_feedback(one.out)]
        for one in (first, second)
    )
    assert first_titles == titles


def test_rewards_of_other_methods_stay(tmp_path: Path) -> None:
    first = options(tmp_path, [LABELLED], method="truthrl")
    score_file(first)
    second = Options(first.out, tmp_path / "again" / "g.jsonl", method="forag")
    score_file(second)
    assert set(read(second.out)[0]["rewards"]) == {"truthrl", "forag"}


def test_method_none_gives_only_claims_and_verdicts(tmp_path: Path) -> None:
    chosen = options(tmp_path, world_rows(2), judge="world", method="none")
    assert score_file(chosen)["failures"] == {}
    for row in read(chosen.out):
        assert row["rewards"] == {}
        assert {verdict["aspect"] for verdict in row["verdicts"]} == {"fact", "checklist"}


def test_missing_inputs_leave_a_method_unscored_without_failing_the_row(
    tmp_path: Path,
) -> None:
    chosen = options(tmp_path, world_rows(2, thinking=True), judge="world")
    summary = score_file(chosen)
    assert (summary["status"], summary["failed"]) == ("done", 0)
    for row in read(chosen.out):
        assert row["rewards"]["truthrl"]["value"] is None
        assert row["rewards"]["truthrl"]["error"]["kind"] == "no_gold"
        assert row["rewards"]["rlfh"]["value"] is not None


def test_resuming_adds_only_missing_rows(tmp_path: Path) -> None:
    rows = world_rows(6)
    chosen = of_world(tmp_path, rows[:4])
    score_file(chosen)
    before = chosen.out.read_bytes()
    options(tmp_path, rows)  # the input has grown
    summary = score_file(chosen)
    assert (summary["earlier"], summary["rows"]) == (4, 6)
    assert chosen.out.read_bytes().startswith(before)
    assert ids(chosen.out) == [str(number) for number in range(6)]


def test_a_truncated_last_line_is_repaired_and_its_row_scored_again(tmp_path: Path) -> None:
    chosen = of_world(tmp_path, 5)
    score_file(chosen)
    whole = chosen.out.read_bytes()
    chosen.out.write_bytes(whole[:-300])
    with pytest.warns(UserWarning, match="unfinished last line"):
        assert score_file(chosen)["earlier"] == 4
    assert chosen.out.read_bytes() == whole


def test_failed_rows_are_named_with_stage_and_reason(tmp_path: Path, cli: Cli) -> None:
    wrong = unknown(7)
    source = write(tmp_path / "in.jsonl", [*world_rows(2), *wrong])
    out = tmp_path / "out.jsonl"
    command = f"score --in {source} --out {out} --judge world --method rlfh --max-failed 1"
    assert cli(command)[0] == 3
    named = printed(cli(command, "--json"), 3)["failed_rows"]
    assert [row["id"] for row in named] == [row["id"] for row in wrong]
    assert {(row["stage"], row["kind"]) for row in named} == {("verify", "unparsed")}


def test_answers_without_required_tags_are_counted(tmp_path: Path, cli: Cli) -> None:
    """Of three answers, one has tags; without tags, KLCF's other terms do not count."""
    rows = world_rows(3)
    rows[0]["response"] = f"<think>I recall this.</think><answer>{rows[0]['response']}</answer>"
    source, out = write(tmp_path / "in.jsonl", rows), tmp_path / "out.jsonl"
    command = f"score --in {source} --out {out} --judge world --method klcf --set klcf.w_check=0"
    code, _, said = cli(command)
    assert code == 0 and "klcf: 2 of the answers lack the think and answer tags; --set" in said
    assert printed(cli(command, "--json"), 0)["untagged"] == {"klcf": 2}
    plain = f"{command} --set klcf.form=false --overwrite"
    assert printed(cli(plain, "--json"), 0)["untagged"] == {}


def test_unscored_rows_are_scored_again(tmp_path: Path) -> None:
    rows = world_rows(3)
    rows[2]["response"] = "Napoleon was an emperor."
    chosen = options(tmp_path, rows, judge="world", max_failed=1.0, method="truthrl")
    summary = score_file(chosen)
    assert (summary["failed"], summary["unscored"]) == (0, 3)  # no gold answers
    assert ids(chosen.out) == ["0", "1", "2"]
    given = [{**row, "answers": ["x"]} for row in read(chosen.source)]
    write(chosen.source, given)
    summary = score_file(chosen)
    assert (summary["earlier"], summary["failed"], summary["rows"]) == (0, 0, 3)
    assert sorted(ids(chosen.out)) == ["0", "1", "2"]


@pytest.mark.parametrize(("changed", "named"), examples("other_settings"))
def test_other_settings_are_refused_with_the_remedy(
    tmp_path: Path, changed: JsonObject, named: str
) -> None:
    chosen = of_world(tmp_path, 2)
    score_file(chosen)
    before = chosen.out.read_bytes()
    # names only this setting
    with raises_error(re.escape(f"with other settings ({named}): ")) as refused:
        score_file(replace(chosen, **changed))
    assert "--overwrite" in str(refused.value)
    assert chosen.out.read_bytes() == before
    assert score_file(replace(chosen, **changed, overwrite=True))["earlier"] == 0


def test_settings_of_training_are_not_compared(tmp_path: Path) -> None:
    """They are not stored, and are ignored if an older file has them."""
    chosen = options(tmp_path, [LABELLED], method="truthrl")
    score_file(chosen)
    path = chosen.out.with_name("f.settings.json")
    settings = read_json(path)
    assert settings["config"]["truthrl"]["reward"] == "ternary"
    assert "learning_rate" not in settings["config"]["truthrl"]
    settings["config"]["truthrl"]["learning_rate"] = 1.0
    write_json(path, settings)
    assert score_file(replace(chosen, overrides=["truthrl.learning_rate=3e-4"]))["earlier"] == 1
    with raises_error(r'\(truthrl\.reward is "ternary", not "binary"\)'):
        score_file(replace(chosen, overrides=["truthrl.reward=binary"]))


def test_another_response_under_the_same_id_is_refused(tmp_path: Path) -> None:
    rows = world_rows(2)
    chosen = of_world(tmp_path, rows)
    score_file(chosen)
    write(chosen.source, [rows[0], {**rows[1], "response": "It is another."}])
    with raises_error("another response for the id '1'"):
        score_file(chosen)


def test_a_file_of_another_program_is_not_overwritten(tmp_path: Path) -> None:
    chosen = options(tmp_path, [LABELLED])
    chosen.out.parent.mkdir()
    chosen.out.write_text('{"mine": 1}\n')
    with raises_error("are missing or damaged"):
        score_file(chosen)
    assert chosen.out.read_text() == '{"mine": 1}\n'


@pytest.mark.parametrize("name", ["questions.jsonl", "passages.jsonl"])
def test_other_files_under_the_names_of_sidecar_files_are_refused(
    tmp_path: Path, name: str
) -> None:
    mine = write(tmp_path / name, [LABELLED])
    out, other = tmp_path / "f.jsonl", write(tmp_path / "in.jsonl", [LABELLED])
    for chosen in (Options(mine, out), Options(other, out, passages=mine)):
        with raises_error("another folder"):
            score_file(chosen)
    with raises_error("another folder"):
        score_file(Options(tmp_path / "in.jsonl", tmp_path / "out" / name))
    for text in (mine.read_text(), '{"not": "ours"}\n{"cut', "no JSON\nat all"):
        mine.write_text(text)
        # even if no option names it
        with raises_error("not a file of stored feedback"):
            score_file(Options(tmp_path / "in.jsonl", tmp_path / "f.jsonl"))
        assert mine.read_text() == text


def test_a_judge_without_evidence_is_refused(tmp_path: Path) -> None:
    chosen = options(tmp_path, world_rows(2), judge="http://127.0.0.1:1/v1", model="m")
    for work in (score_file, estimate_file):
        with raises_error("--passages FILE or --store NAME"):
            work(chosen)


def test_too_many_failures_stop_a_scoring_which_can_be_resumed(tmp_path: Path, cli: Cli) -> None:
    wrong = unknown(300)
    source, out = write(tmp_path / "in.jsonl", wrong), tmp_path / "out.jsonl"
    command = f"score --in {source} --out {out} --judge world --method rlfh --json"
    stopped = printed(cli(command), 4)
    assert stopped["status"] == "too_many_failures"
    assert stopped["rows"] == stopped["failed"] == 128  # no further chunk
    assert all(verdict["label"] is None for row in read(out) for verdict in row["verdicts"])
    assert printed(cli(command, "--max-failed", 1), 3)["rows"] == 300
    assert sorted(ids(out)) == sorted(row["id"] for row in wrong)


@pytest.mark.slow
def test_the_tokenizer_of_a_model(tmp_path: Path) -> None:
    from tests.helpers.tiny_model import byte_tokenizer

    byte_tokenizer().save_pretrained(tmp_path / "model")
    chosen = options(tmp_path, [LABELLED], method="rlfh", tokenizer=str(tmp_path / "model"))
    score_file(chosen)
    [row] = read(chosen.out)
    offsets = row["tokens"]["offsets"]
    assert row["tokens"]["source"] == "encoded" and len(row["tokens"]["ids"]) == len(offsets) > 9
    assert (offsets[0][0], offsets[-1][1]) == (0, len(LABELLED["response"]))
    assert sum(row["rewards"]["rlfh"]["tokens"]) == pytest.approx(row["rewards"]["rlfh"]["value"])


def test_tokens_of_the_row_itself_are_kept(tmp_path: Path) -> None:
    tokens: JsonObject = {
        "ids": [5, 6],
        "offsets": [[0, 17], [17, 39]],
        "logprobs": [-1.0, -2.0],
    }
    tokens["source"] = "sampled"
    chosen = options(tmp_path, [{**LABELLED, "tokens": tokens}], method="rlfh")
    score_file(chosen)
    assert read(chosen.out)[0]["tokens"].items() >= tokens.items()
    words = replace(chosen, tokenizer="words", out=tmp_path / "w" / "f.jsonl")
    score_file(words)
    assert read(words.out)[0]["tokens"]["source"] == "words"


def test_a_question_id_names_one_question(tmp_path: Path) -> None:
    named = {**LABELLED, "question_id": "q"}
    other = {**named, "id": "2", "question": "Who was Ada?"}
    rows = [{**named, "id": "1"}, other, {**LABELLED, "id": "3"}, {**LABELLED, "id": "4"}]
    chosen = options(tmp_path, rows, method="rlfh")
    score_file(chosen)
    stored = [feedback.response.question for feedback in iter_feedback(chosen.out)]
    assert stored[0].id == "q" and stored[1].id.startswith("q-") and stored[2].id == stored[3].id
    is_ada = LABELLED["question"]
    assert [question.text for question in stored] == [is_ada, "Who was Ada?", is_ada, is_ada]
    again = replace(chosen, out=chosen.out.with_name("other.jsonl"), method="forag")
    score_file(again)  # in the same folder, with the same questions file
    assert [f.response.question for f in iter_feedback(again.out)] == stored
