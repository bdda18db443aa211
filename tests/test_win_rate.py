"""The controls of the benchmark of KLCF's win rate."""

from benchmarks.real.win_rate import controls
from workbench.world.parser import parser_of
from workbench.world.world import load_world


def test_controls_differ_from_the_true_biography_as_they_are_named() -> None:
    world = load_world()
    parser = parser_of(world)
    for question in world.questions("test", ["biography"])[:40]:
        made = controls(question, world)
        (true, false), (whole, half) = made["altered"], made["half"]
        parsed = {
            text: [
                (claim.subject, claim.relation, claim.object) for claim in parser.parse(text).claims
            ]
            for text in (true, false, half)
        }
        facts = [
            (name, relation, world.by[name][relation].object) for name, relation, _ in parsed[true]
        ]
        assert true == whole and parsed[true] == facts and len(facts) >= 4
        # the same relations in the same wording, half of the values false
        assert [one[:2] for one in parsed[false]] == [one[:2] for one in facts]
        wrong = sum(one != fact for one, fact in zip(parsed[false], facts, strict=True))
        assert wrong == (len(facts) + 1) // 2
        assert parsed[half] == facts[: len(parsed[half])] and 0 < len(parsed[half]) < len(facts)
