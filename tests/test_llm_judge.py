"""A language model as a bench's judge: unusable options, its identity, and refusals that leave no
files.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.scripted_judge import JudgeServer, by_checksum
from tests.helpers import Cli, read_json, refusal, without
from tests.helpers.errors import raises_error
from tests.helpers.score_helpers import write
from tests.helpers.scripted import ScriptedJudge
from tests.helpers.small_bench import SMALL, make_bench
from tests.helpers.thinker import hotpotqa
from workbench.claims import single_pass
from workbench.experiments.evaluate import evaluate_policy, evaluation_grade
from workbench.experiments.experiment import identity_of, run_experiment
from workbench.experiments.run import Entry
from workbench.judge import Element, elements
from workbench.methods import METHODS
from workbench.methods.bench import Bench, bench
from workbench.retrieval import build_index, from_passages
from workbench.types import Claim, Claims, Failure, JsonObject, Passage, Question, Response
from workbench.util.failures import TooManyFailures
from workbench.verdicts.checks import judge_checks
from workbench.verdicts.llm_judge import REPLIES, LLMJudge, llm_judge, named_judge

TRUTHRL, RLFH = METHODS["truthrl"], METHODS["rlfh"]
NOWHERE = "http://127.0.0.1:9"


@pytest.fixture
def place(tmp_path: Path) -> Bench:
    return make_bench(tmp_path / "policy")


def index(folder: Path, text: str) -> str:
    pages = write(folder / "pages.jsonl", [{"id": "1", "title": "Ada", "text": text}])
    build_index(folder / "index", pages)
    return str(folder / "index")


@pytest.mark.slow
def test_the_local_judge_is_part_of_a_runs_identity_and_has_the_benchs_pages() -> None:
    small = bench("small").with_judge(named_judge("local"))
    assert small.llm_judge is None and small.named_judge
    assert small.named_judge.identity() == {"model": "local", "verifier": None, "store": None}
    assert "fact" in small.checks.verify and small.checks is not bench("small").checks


@pytest.mark.parametrize(
    ("url", "seconds"),
    [(NOWHERE, 600), ("http://localhost", 600), ("http://[::1]:8000/v1", 600), ("https://a", 60)],
)
def test_a_server_on_this_machine_has_a_longer_timeout(url: str, seconds: float) -> None:
    assert LLMJudge(url, "m").ask.send.__self__.timeout == seconds  # type: ignore[attr-defined]


def reader() -> ScriptedJudge:
    """A judge that keeps its prompts and replies with an error."""
    return ScriptedJudge(lambda *_: Failure("judge", "none", "no reply"))


def texts(judge: ScriptedJudge, task: str, tag: str) -> list[str]:
    parts = (part for one in judge.prompts if one.task == task for part in elements(one.text))
    found = [part for part in parts if part.tag == tag]
    return [piece.text for part in found for piece in (part.children or (part,))]


def test_the_gold_answer_is_among_the_materials_of_a_claim() -> None:
    """RLFH, tables 4 and 6."""
    judge, page = reader(), Passage("p", "Ada", "Ada was born in Paris.")
    claims = Claims(((0, 4),), (Claim(0, "Ada was born in Rome."),))
    for answers in ((), ("Paris", "Lutetia")):
        question = Question("q", "Where was Ada born?", answers, passages=(page,))
        judge_checks(judge).verify["fact"]([(Response("r", question, "Rome"), claims)])
    assert texts(judge, "verify", "materials") == [
        "Ada was born in Paris.",
        "Ada was born in Paris.",
        "Where was Ada born? Paris / Lutetia",
    ]


def test_the_time_of_a_question_is_in_the_prompts_of_policy_and_judge() -> None:
    """TruthRL, tables 9 to 11."""
    judge = reader()
    question = Question("q", "Who won last?", ("Ada",), meta={"query_time": "03/01/2024, 9:00 PT"})
    dated = "Who won last?\nQuery time: 03/01/2024, 9:00 PT"
    assert question.messages() == [{"role": "user", "content": dated}]
    judge_checks(judge).verify["outcome"]([(Response("r", question, "Bo"), Claims())])
    assert texts(judge, "outcome", "question") == [dated]


def test_a_single_pass_retrieves_passages_for_the_response() -> None:
    judge, page = reader(), Passage("p", "Ada", "Ada was born in Paris.")
    question = Question("q", "Where was Ada born?")
    own = replace(question, passages=(Passage("o", "Own", "Ada lived in Rome."),))
    extract = single_pass(judge, from_passages([page]).search)
    extract([Response("r", one, "Ada was born in Rome.") for one in (question, own)])
    assert texts(judge, "single_pass", "materials") == [page.text, "Ada lived in Rome."]

    def broken(*_: Any, **__: Any) -> Any:
        raise OSError("disk")

    [failed] = single_pass(judge, broken)([Response("r", question, "Ada was born in Rome.")])
    assert failed.error and failed.error.stage == "retrieve"


@pytest.mark.slow
def test_a_password_in_the_url_is_never_shown_or_stored(place: Bench, tmp_path: Path) -> None:
    url = "https://ada:pa55-w0rd@127.0.0.1:9"
    judged = place.with_judge(llm_judge(url, "m"))
    with raises_error("gives no verdict") as refused:
        run_experiment(TRUTHRL, SMALL, judged, tmp_path / "run", seed=1)
    output = (
        refused.value,
        judged,
        Entry("truthrl", judge=url),
        identity_of(TRUTHRL, SMALL, judged, seed=1),
    )
    assert "pa55" not in " ".join(map(repr, output))


def test_the_tiny_bench_keeps_its_exact_judge(tmp_path: Path, cli: Cli) -> None:
    run = tmp_path / "run"
    for command in (f"train truthrl --out {run}", "evaluate sft --split test", "probe"):
        error = refusal(cli(f"{command} --judge {NOWHERE} --judge-model m"))
        assert "has an exact judge of its own: leave --judge out" in error
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_runs_identity_has_the_judges_model_and_store_but_not_its_url(
    place: Bench, tmp_path: Path
) -> None:
    def identity(**changes: Any) -> JsonObject:
        return identity_of(
            TRUTHRL,
            SMALL,
            place.with_judge(LLMJudge(**{"url": NOWHERE, "model": "m", **changes})),
            seed=1,
        )

    plain = identity()
    assert plain == identity(url="http://127.0.0.1:10") == identity(cache=tmp_path / "cache")
    assert without(plain, "judge") == identity_of(TRUTHRL, SMALL, place, seed=1)
    known = identity(store=index(tmp_path, "Ada lives in Rome."))["judge"]
    assert plain["judge"] == {**known, "store": None} and known["store"]["passages"] == 1
    (tmp_path / "other").mkdir()
    assert identity(store=index(tmp_path / "other", "Ada lives in Oslo."))["judge"] != known
    assert identity(model="n")["judge"] == {**plain["judge"], "model": "n"}
    assert identity(options={"a": 1})["judge"] == {**plain["judge"], "options": {"a": 1}}
    assert identity(tokens=9) == plain
    with raises_error("no index in"):
        identity(store=str(tmp_path / "nothing"))


@pytest.mark.slow
def test_claims_without_evidence_are_refused_before_any_work(place: Bench, tmp_path: Path) -> None:
    judged = place.with_judge(LLMJudge(NOWHERE, "m"))
    assert "fact" not in judged.checks.verify and "outcome" in judged.checks.verify
    with raises_error(r"there are none: give the questions .*--store NAME"):
        run_experiment(RLFH, RLFH.configure(), judged, tmp_path / "run", seed=1)
    with_passages = bench("paper", hotpotqa(tmp_path / "hotpot.json")).with_judge(
        LLMJudge(NOWHERE, "m")
    )
    with_store = place.with_judge(LLMJudge(NOWHERE, "m", index(tmp_path, "Ada lives in Rome.")))
    assert all("fact" in one.checks.verify for one in (with_passages, with_store))
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_judge_without_verdicts_is_refused_and_leaves_no_folder(
    place: Bench, tmp_path: Path
) -> None:
    with JudgeServer(reply=lambda task, found: "Yes.") as server:
        for url, output in (
            (NOWHERE, "no connection to"),
            (server.url, "not a JSON object|not JSON"),
        ):
            with raises_error(f"gives no verdict .*({output}).*: start its server"):
                run_experiment(
                    TRUTHRL, SMALL, place.with_judge(LLMJudge(url, "m")), tmp_path / "run", seed=1
                )
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_judged_run_resumes_only_with_the_same_judge(place: Bench, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with JudgeServer() as server:
        judged = place.with_judge(LLMJudge(server.url, "m"))
        summary = run_experiment(TRUTHRL, SMALL, judged, out, seed=1, threads=1)
        asked = server.requests
        assert summary["status"] == "done"
        assert summary["judge"] == read_json(out / "config.json")["judge"]
        assert server.tasks == {"outcome": asked} and (out / REPLIES).exists()
        assert run_experiment(TRUTHRL, SMALL, judged, out, seed=1, threads=1) == summary
        assert server.requests == asked
        for other in (place, place.with_judge(LLMJudge(server.url, "n"))):
            with raises_error(r"another run \(judge"):
                run_experiment(TRUTHRL, SMALL, other, out, seed=1, threads=1)


def test_cached_replies_are_used_if_the_judges_url_changes(place: Bench, tmp_path: Path) -> None:
    responses = [
        Response(question.id, question, " It was Rome") for question in place.questions("test")[:3]
    ]
    with JudgeServer() as server, JudgeServer() as other:
        for url in (server.url, other.url):
            judged = place.with_judge(LLMJudge(url, "m")).with_cache_dir(tmp_path)
            assert all(
                one.verdicts[0].error is None for one in evaluation_grade(judged.checks)(responses)
            )
        assert server.requests == 3 and other.requests == 0
        evaluation_grade(
            place.with_judge(LLMJudge(other.url, "n")).with_cache_dir(tmp_path).checks
        )(responses)
        assert other.requests == 3  # another model is another judge


def test_an_evaluation_stops_after_too_many_failures(place: Bench) -> None:
    def reply(task: str, found: Sequence[Element]) -> str:
        return (
            by_checksum(task, found) if found[0].text.startswith("What is the capital") else "Yes."
        )

    with JudgeServer(reply=reply) as server:
        judge = LLMJudge(server.url, "m")
        report = evaluate_policy("sft", "test", place, 1, threads=1, judge=judge)
        failed = sum(report[decoding]["failed"] for decoding in ("greedy", "sampled"))
        assert failed > 2  # 10 questions, two decodings; empty responses need no judge
        with pytest.raises(
            TooManyFailures, match=f"{failed} of 20 answers of an evaluation could not be graded"
        ):
            evaluate_policy("sft", "test", place, 1, threads=1, judge=judge, max_failed=0.1)
