"""The exported world is enough to decide claims: a script without the package agrees with the
oracle.
"""

import json
import random
from collections import Counter
from pathlib import Path

import pytest

from tests.helpers import run_python
from tests.helpers.errors import raises_error
from tests.helpers.world_names import names
from workbench.world import load_world, schema
from workbench.world.export import export_world
from workbench.world.oracle import Oracle


@pytest.fixture(scope="module")
def export(tmp_path_factory):
    out = tmp_path_factory.mktemp("world")
    return out, export_world(out)


def rows(folder, name):
    return [json.loads(line) for line in (folder / f"{name}.jsonl").open(encoding="utf-8")]


@pytest.mark.slow
def test_rows_have_the_promised_keys(export):
    out, counts = export
    promised = {
        "facts": {*"id subject relation object tier importance exposures".split()},
        "pages": {"id", "title", "text"},
        "questions": {*"id text lang kind tier split answers fact_ids covered".split()},
        "documents": {"text", "fact_ids"},
        "entities": {"id", "name", "kind"},
    }
    for name, keys in promised.items():
        table = rows(out, name)
        assert len(table) == counts[name] > 0 and all(keys <= row.keys() for row in table)


def claims(count, seed=7):
    """Claims in both languages: half with another object in any form, every tenth unreadable, some
    with a lead.
    """
    world, rng = load_world(0), random.Random(seed)
    written = []
    for number in range(count):
        fact = rng.choice(world.facts)
        lang = rng.choice(("en", "l2"))
        shown = fact
        if number % 2:
            shown = rng.choice(
                [f for f in world.facts if f.relation == fact.relation and f.object != fact.object]
            )
        relation = schema.RELATIONS[fact.relation]
        text = rng.choice((*relation.states[lang], *relation.hedges[lang]))
        forms = shown.forms[lang][:1] if relation.object == "population" else shown.forms[lang]
        claim = text.format(s=fact.subject, o=rng.choice(forms))
        if number % 10 == 8:
            claim = f"{rng.choice((*schema.HEDGE_LEADS[lang], *schema.LEAD_INS[lang]))} {claim}"
        if number % 10 == 9:
            claim = rng.choice(
                (
                    claim.replace(fact.subject, "Zyx"),
                    claim.replace(" ", " qq ", 1),
                    "",
                    "the the of.",
                )
            )
        written.append(claim)
    for template in schema.COMPOUNDS:
        subject = rng.choice(names(world, "person"))
        first, second = (
            world.by[subject][relation].forms[template.lang][0] for relation in template.relations
        )
        written.append(template.text.format(s=subject, o=first, o2=second))
    company = names(world, "company")[0]
    city = names(world, "city")[0]
    written += [
        f"{company} was founded on 31 May 2150.",
        f"{company} was founded on 99 May 1900.",
        f"{city} has 777 thousand inhabitants.",
    ]
    return written


@pytest.mark.slow
def test_a_script_with_only_the_export_agrees_with_the_oracle_on_2000_claims(export, tmp_path):
    asked = claims(2000)
    (tmp_path / "claims.json").write_text(json.dumps(asked))
    script = Path(__file__).with_name("helpers") / "standalone_judge.py"
    assert "import workbench" not in script.read_text()
    assert "from workbench" not in script.read_text()
    done = run_python("-I", script, export[0], tmp_path / "claims.json", check=True)
    decided = json.loads(done.stdout)
    verdicts = Oracle(load_world(0)).judge(asked)
    ours = [None if v.label is None else v.label in ("correct", "hedged_correct") for v in verdicts]
    assert [(a, b, c) for a, b, c in zip(asked, ours, decided, strict=True) if b != c] == []
    assert all(v.error is not None for v in verdicts if v.label is None)
    counts = Counter(decided[:2000])
    assert counts[True] > 900 and counts[False] > 700 and counts[None] > 150
    assert decided[-3:] == [False, None, False]


@pytest.mark.parametrize("name", ["questions.jsonl", "notes.txt"])
def test_a_folder_with_other_files_is_left_unchanged(tmp_path, name):
    """A run's folder has its own questions.jsonl, which an export would replace."""
    (tmp_path / name).write_text("mine\n")
    with raises_error(rf"no export of a world wrote \({name}\).* --out"):
        export_world(tmp_path)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine\n"]


@pytest.mark.slow
def test_an_export_is_replaced_even_after_a_kill_but_not_with_other_files(export, tmp_path, cli):
    out, _ = export
    killed = tmp_path / "killed"
    killed.mkdir()
    (killed / "world.json").write_text((out / "world.json").read_text())
    (killed / "entities.jsonl").write_text('{"id": "half')
    code, printed, _ = cli(f"world export --out {killed}")
    assert code == 0 and f"written to {killed}: rows by file\n" in printed
    assert (killed / "entities.jsonl").read_bytes() == (out / "entities.jsonl").read_bytes()
    (killed / "rollouts.jsonl").touch()
    with raises_error(r"wrote \(rollouts\.jsonl\)"):
        export_world(killed)
