"""Ray actors with a simulated Ray: policy checks, failed questions and processes that die.
`tests/engines/test_ray.py` uses Ray itself."""

from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.errors import raises_error
from tests.helpers.score_helpers import read
from tests.helpers.small_bench import NAMES, make_bench
from tests.helpers.tiny_model import make_policy
from workbench.experiments.probe import _answering, _undecided
from workbench.methods.truthrl.probing import answers, outcomes, probe_questions, samples_of
from workbench.metrics.boundary import Probed
from workbench.policies.generate import Sampling
from workbench.policies.load import load_policy
from workbench.runs.folder import policy_hash
from workbench.types import Failure, WorkbenchError
from workbench.util.actors import STRIKES, _map
from workbench.util.failures import TooManyFailures

DIED = Failure("grade", "died", "2 processes died while grading this item: out of memory")


def test_another_policy_on_an_actors_machine_is_refused(policy: str, tmp_path: Path) -> None:
    other = str(make_policy(tmp_path / "other", seed=1))
    how = Sampling(4, samples=3)
    assert callable(_answering(policy, None, {policy: policy_hash(policy)}, how))
    for folder, expected in (
        (policy, policy_hash(other)),
        (str(tmp_path / "nowhere"), policy_hash(policy)),
    ):
        with raises_error(f"'{folder}' is missing or different on .*copy it to every"):
            _answering(policy, None, {folder: expected}, how)


def test_a_question_that_could_not_be_answered_is_undecided(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = make_bench(tmp_path / "policy")
    questions = [question for question in place.questions("validation") if question.answers]
    policy, how = load_policy(place.path("sft")), Sampling(4, samples=3)

    def one_dies(chunks: Any) -> Any:
        for chunk in chunks:
            found = answers(policy, chunk, how)
            for number, question in enumerate(chunk):
                if question.id.endswith("Cy"):
                    found[number] = _undecided(question, DIED)
            yield samples_of(outcomes(place.checks), found, 3)

    (tmp_path / "probe").mkdir()
    probe_questions(one_dies, questions, tmp_path / "probe", 3)
    rows = read(tmp_path / "probe" / "probe.jsonl")
    bad = [row for row in rows if row["failed"]]
    assert [(row["question_id"], row["failed"], row["ook"]) for row in bad] == [
        ("validation-Cy", 3, None)
    ]
    assert len(rows) == len(NAMES) and Probed.from_row(rows[2]).majority is None
    assert (
        "'validation-Cy' is undecided: 2 processes died while grading this item"
        in capsys.readouterr().err
    )
    (tmp_path / "strict").mkdir()
    with pytest.raises(TooManyFailures, match="3 of 30 samples could not be graded"):
        probe_questions(one_dies, questions, tmp_path / "strict", 3, max_failed=0.09)


class Ray:
    """Simulates Ray's interface. Calls end in any order. A random share of them, and every call
    with a deadly item, fail because their process dies."""

    class exceptions:
        class RayError(Exception): ...

        class RayTaskError(RayError):
            def __init__(self, cause: Exception) -> None:
                self.cause = cause

    def __init__(self, chance: Random, share: float, deadly: set[int]) -> None:
        self.chance, self.share, self.deadly = chance, share, deadly
        self.cancelled: list[Any] = []
        self.cloudpickle = SimpleNamespace(dumps=lambda make: make, loads=lambda make: make)

    def remote(self, **_: Any) -> Any:
        return lambda work: SimpleNamespace(remote=lambda *given: SimpleCall(work, given))

    def wait(self, answers: list[Any], num_returns: int) -> tuple[list[Any], list[Any]]:
        return [self.chance.choice(answers)], []

    def get(self, answer: Any) -> Any:
        if self.deadly & set(answer.given[1]) or self.chance.random() < self.share:
            raise self.exceptions.RayError("its process has gone")
        try:
            return answer.call(*answer.given)
        except ValueError as error:
            raise self.exceptions.RayTaskError(error) from error

    def cancel(self, answer: Any, force: bool) -> None:
        self.cancelled.append(answer)


class SimpleCall:
    def __init__(self, call: Any, given: tuple[Any, ...]) -> None:
        self.call, self.given = call, given


def negative(items: list[int]) -> list[int]:
    return [-item for item in items]


def pooled(ray: Ray, chunks: list[list[int]], count: int, work: Any = negative) -> list[list[Any]]:
    with patch.dict("sys.modules", ray=ray):
        return list(_map(count, lambda: work, lambda item, failure: failure.kind, chunks))


SIZES = st.lists(st.integers(1, 4), max_size=8)


@given(SIZES, st.integers(1, 3), st.floats(0, 0.2), st.sets(st.integers(0, 20)), st.randoms())
def test_each_item_has_one_result_in_order_even_if_processes_die(
    sizes: list[int], count: int, share: float, deadly: set[int], chance: Random
) -> None:
    chunks = [[4 * number + place for place in range(size)] for number, size in enumerate(sizes)]
    try:
        found = pooled(Ray(chance, share, deadly), chunks, count)
    except WorkbenchError as error:
        assert "Ray processes died in a row" in str(error)
        return
    expected = [-item for chunk in chunks for item in chunk]
    results = [result for chunk in found for result in chunk]
    assert [len(chunk) for chunk in found] == sizes
    for result, wanted in zip(results, expected, strict=True):
        assert result == wanted or (result == "died" and (-wanted in deadly or share))
        assert -wanted not in deadly or result == "died"


def test_repeated_deaths_stop_the_map_and_exceptions_are_raised() -> None:
    with raises_error(f"{2 * STRIKES + 1} Ray processes died"):
        pooled(Ray(Random(1), 1.0, set()), [list(range(8))], 2)

    def broken(items: list[int]) -> list[int]:
        raise ValueError("broken")

    ray = Ray(Random(1), 0.0, set())
    with pytest.raises(ValueError, match="broken"):
        pooled(ray, [[1, 2], [3]], 2, broken)
    assert len(ray.cancelled) == 1
