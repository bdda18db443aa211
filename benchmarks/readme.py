"""Write the generated parts of README.md and docs/, from `<!-- NAME -->` to `<!-- end -->`.

python benchmarks/readme.py            # write
python benchmarks/readme.py --check    # exit 1 if they differ from the results
"""

import argparse
import inspect
import json
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import workbench  # noqa: E402
from benchmarks import (  # noqa: E402
    abilities,
    confidence,
    doubt,
    findings_tables,
    growth,
    papers,
    profiles,
    scorecard,
    waits,
)
from benchmarks import human_labels as labelled  # noqa: E402
from benchmarks.tables import (  # noqa: E402
    cell,
    judge_orders,
    judge_prompts,
    markdown,
    real_judge,
    share,
    win_rate,
)
from benchmarks.verifier_card import measured_text  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results"
PAGES = (
    ROOT / "README.md",
    ROOT / "data" / "verifier" / "README.md",
    *(
        ROOT / "docs" / f"{name}.md"
        for name in ("measured", "numbers", "findings", "scorecard", "scaling", "trust", "api")
    ),
)
NOT_RUN = "*Not run yet.*"
WAYS, BEFORE = ("as it is", "and without a deciding window"), "without rules, all windows pooled"
RULES, BARE = ("as it is", "without rules"), "without rules"
MEANINGS = {
    "0.99": "equals a gold answer, after normalisation",
    "0.97": "states a gold answer",
    "0.3": "names a gold answer but may not state it; counts as wrong",
    "0.15": "shares a word with a gold answer; counts as wrong",
    "0.03": "shares no word, or says the opposite",
}
HALVES = {"kept aside": "held out"}
RATES = ("accuracy", "abstention", "hallucination", "truthfulness")


def title(policy: str) -> str:
    return {"start": "initial policy"}.get(policy, policy)


def truthrl(found: dict) -> str:
    reports, difference = found["reports"], found["ternary_minus_binary"]
    rows = [
        [title(policy), mode, *(cell(report[mode][rate]) for rate in RATES)]
        for policy, report in reports.items()
        for mode in ("greedy", "sampled")
    ]
    paired = ", ".join(
        f"{mode} {value['diff']:+.2f} [{value['low']:+.2f}, {value['high']:+.2f}]"
        for mode, value in difference.items()
    )
    tiers = {mode: reports["ternary"][mode]["by_tier"] for mode in ("greedy", "sampled")}
    greedy = tiers["greedy"]
    return (
        markdown(["policy", "decoding", *RATES], rows)
        + f"\n\nTruthfulness, ternary minus binary, paired over seeds and questions: {paired}.\n\n"
        f"- The ternary policy abstains on {greedy['unknown']['abstention']['value']:.0%} of the"
        " questions about unknown people. It still\n  answers"
        f" {greedy['known']['accuracy']['value']:.0%} of the questions about known people correctly"
        f" (greedy; {tiers['sampled']['known']['accuracy']['value']:.0%} sampled).\n"
        "- An oracle abstains exactly where the initial policy is wrong. The ternary policy reaches"
        f" {found['share_of_oracle']['ternary']:.2f} of the\n  oracle's gain.\n- The cost: it also"
        f" abstains on {greedy['half']['abstention']['value']:.0%} of the questions about"
        " half-known facts."
    )


def truthrl_short(found: dict) -> str:
    """Return the greedy rates of three policies, one row each."""
    reports = {name: report["greedy"] for name, report in found["reports"].items()}
    rows = [
        [title(name), *(cell(report[rate]) for rate in RATES)] for name, report in reports.items()
    ]
    return markdown(["policy", *RATES], rows)


def human_labels(found: dict) -> str:
    return labelled.table(found)


def verdicts(found: dict) -> str:
    """Return the reliability of the local verifier's verdicts on the held-out half."""
    if "agreement" not in found:
        return NOT_RUN
    rows = [
        [f"{said} ({evidence})", str(by[WAYS[0]]["n"]), *(share(by[way]) for way in WAYS)]
        for evidence in found["agreement"][WAYS[0]]
        for said, title in {
            "*correct*": "correct",
            "anything else, as *not supported*": "rest",
        }.items()
        for by in [{way: found["agreement"][way][evidence][title] for way in WAYS}]
    ]
    altered = [altered_row(kind, one["kept aside"]) for kind, one in found["altered"].items()]
    right = {
        way: sum(one["kept aside"]["both"] for one in found["verdicts_halves"][way].values())
        for way in RULES
    }
    left_out = sum(
        one["kept aside"]["left_out"] for one in found["verdicts_halves"][WAYS[0]].values()
    )
    head = [
        "change to a supported claim",
        "claims",
        "changed claim called *correct*",
        BARE,
        "original called *correct*",
        BARE,
    ]
    lost = right[RULES[1]] - right[RULES[0]]
    return (
        f"{markdown(['verdict', 'claims', 'people agree', BEFORE], rows)}\n\n"
        f"{markdown(head, altered)}\n\n"
        "Each claim counts once. A claim with several texts counts with the share of its verdicts."
        f" {left_out} pairs whose claim is also in\nthe other half are left out. The rules removed"
        f" {lost} of {right[RULES[1]]} right *correct* verdicts. The rules do not detect two"
        " changes.\n*Another name* is mostly in the same evidence. *Exchanged roles* (who did it to"
        " whom, or what happened at a date) use\nother words than their evidence."
    )


def altered_row(kind: str, found: dict) -> list[str]:
    """Return the shares of altered and original claims called correct, with and without rules."""
    cells = [share(found[which][way]) for which in ("altered", "whole") for way in RULES]
    return [kind, str(found["altered"][RULES[0]]["n"]), *cells]


def claims(found: dict) -> str:
    """Return the quality of claims by rules, in a few lines."""
    all_, read = found["claims"]["rules"]["F1 ≥ 0.6"], found["faithful"]
    again, chat, pages = (_first(read[name]) for name in ("chat, again", "chat", "encyclopaedia"))
    return (
        "Rules extract claims without a model. People read them on texts that were not used to"
        " develop the rules. Wrong claims, which the\ntext does not state:\n\n"
        f"- with the current rules: {again}, in {read['chat, again']['responses']} chat-style"
        f" answers;\n- before the last change: {chat}, in {read['chat']['responses']} chat-style"
        f" answers;\n- before the last change: {pages}, in {read['encyclopaedia']['responses']}"
        " paragraphs of Wikipedia.\n\nThe rules find"
        f" {all_['recall']['value']:.2f} of the claims that people wrote down for biographies, at a"
        f" precision of {all_['precision']['value']:.2f}\n([measured](measured.md), [what to"
        " expect](numbers.md#claims-by-rules))."
    )


def _first(read: dict) -> str:
    first = read["first"]
    share = (
        f"{first['value']:.0%} [{first['low']:.0%}, {first['high']:.0%}] of {first['claims']}"
        " claims"
    )
    return (
        share
        if not read["before"]["claims"]
        else f"{share} ({read['before']['value']:.0%} with the version before)"
    )


def outcomes(found: dict) -> str:
    """Return the answers that the rules accept on both halves, and the cost of a judge in doubt."""
    halves, all_ = found["matching_halves"], found["matching"]["workbench"]["accepted"]
    chat, qa = (
        {half: one[name] for half, one in halves.items()} for name in ("chat", "EfficientQA")
    )
    rates = [
        [
            "chat style: accepted right answers",
            *(share(one["recall"]) for one in chat.values()),
            "–",
        ],
        [
            "chat style: right accepted answers",
            *(share(one["precision"]) for one in chat.values()),
            "–",
        ],
        *(
            [
                f"EfficientQA: accepted, of {judgement}",
                *(share(one["accepted"][judgement]) for one in qa.values()),
                share(all_[judgement]),
            ]
            for judgement in ("definitely correct", "possibly correct", "definitely incorrect")
        ),
    ]
    right = [
        [p, meaning, *(of(one["kept aside"]["right by p"].get(p)) for one in (chat, qa))]
        for p, meaning in MEANINGS.items()
    ]
    asked = [
        [
            f"{name}, `p` {band}",
            f"{one['calls']['value'] * 100:.0f}",
            of(one["asked of the right ones refused"]),
        ]
        for name, some in (("chat style", chat), ("EfficientQA", qa))
        for band, one in some["kept aside"]["asking"].items()
    ]
    return (
        markdown(["", *(HALVES.get(half, half) for half in halves), "both"], rates)
        + "\n\n`p` estimates by rules how probable a right answer is. Right answers by `p`, on the"
        " held-out half:\n\n"
        + markdown(["`p`", "the answer", "chat style", "EfficientQA"], right)
        + "\n\nThe next table shows the cost of `--judge-in-doubt` on the held-out half. It also"
        " counts the right answers that\nthe rules rejected and the judge sees.\n\n"
        + markdown(["asked for", "calls per 100", "right answers seen"], asked)
    )


def of(rate: dict | None) -> str:
    return (
        "–" if not rate or not rate["n"] else f"{round(rate['value'] * rate['n'])} of {rate['n']}"
    )


def findings(found: dict) -> str:
    about = f"Test split, policy `{found['policy_hash']}`, {found['date']}.\n\n"
    return about + markdown(
        ["", "result", "statement", "contrast", "effect [95 %]"], findings_tables.statements(found)
    )


def arms(method: str, found: dict) -> str:
    return markdown(*findings_tables.arms(found, method))


def differences(found: dict) -> str:
    return markdown(*findings_tables.differences(found))


def costs(found: dict) -> str:
    shares = ", ".join(
        f"{part['ways']['KLCF']['passes']:.0%} ({name})" for name, part in found["parts"].items()
    )
    agreed = min(share for part in found["parts"].values() for share in part["agreement"].values())
    return (
        f"{found['date']}, {found['cores']} cores, {found['threads']} thread for the"
        f" model.\n\n{markdown(*findings_tables.costs(found))}\n\nShare of KLCF's seconds in its"
        f" model's passes: {shares}. Labels from evidence equal the world's for at least"
        f" {agreed:.1%} of the claims."
    )


def truth_arms(found: dict) -> str:
    return f"{found['date']}.\n\n{markdown(*findings_tables.truth_arms(found))}"


def majority(found: dict) -> str:
    """Return the outcomes by majority of k samples, from objects of `workbench probe --json`."""
    rates = ("accuracy", "abstention", "hallucination")
    rows = []
    for policy, probe in found["policies"].items():
        for k in ("1", "4", "16"):
            one = probe["majority"][k]
            values = [*(one[rate] for rate in rates), one["accuracy"] - one["hallucination"]]
            rows.append([policy, k, *(f"{value:.2f}" for value in values)])
    return f"{found['date']}, {probe['n']} questions of the test split, seed 1.\n\n" + markdown(
        ["policy", "k", *rates, "truthfulness"], rows
    )


# studies whose tables are written here
TABLED = [study.name for study in scorecard.STUDIES if study.name not in scorecard.OWN_SCRIPTS]
# part -> (file of its results, function that writes it)
TABLES: dict[str, tuple[str, Callable[[dict], str]]] = {
    "truthrl": ("truthrl_tiny", truthrl),
    "truthrl_short": ("truthrl_tiny", truthrl_short),
    "human_labels": ("human_labels", human_labels),
    "klcf_cost": ("klcf_cost", costs),
    "klcf_truth": ("klcf_truth", truth_arms),
    "claims": ("human_labels", claims),
    "growth": ("growth", growth.table),
    "papers": ("papers", papers.table),
    "abilities": ("abilities", abilities.table),
    "doubt": ("doubt", doubt.table),
    "doubt_training": ("doubt_training", doubt.table),
    "rlfh_rates": ("rlfh_rates", partial(arms, "rlfh_rates")),
    "truthrl_rates": ("truthrl_rates", partial(arms, "truthrl_rates")),
    "comparison_rates": ("comparison_rates", partial(arms, "comparison_rates")),
    "knowrl_rates": ("knowrl_rates", partial(arms, "knowrl_rates")),
    "klcf_rates": ("klcf_rates", partial(arms, "klcf_rates")),
    "forag_rates": ("forag_rates", partial(arms, "forag_rates")),
    "klcf_tuned_rates": ("klcf_tuned_rates", partial(arms, "klcf_tuned_rates")),
    "waits": ("waits", waits.table),
    "profiles": ("profiles", profiles.table),
    "verdicts": ("human_labels", verdicts),
    "real_judge": ("real_judge", real_judge),
    "judge_prompts": ("judge_prompts", judge_prompts),
    "judge_orders": ("judge_orders", judge_orders),
    "win_rate": ("win_rate", win_rate),
    "majority_smollm2": ("majority_smollm2", majority),
    "verifier_card": ("../../data/verifier/card", measured_text),
    "outcomes": ("human_labels", outcomes),
    **{f"{study}_findings": (study, findings) for study in TABLED},
    **{f"{study}_arms": (study, partial(arms, study)) for study in TABLED},
    "truthrl_confidence_findings": ("truthrl_confidence", findings),
    "truthrl_confidence": ("truthrl_confidence", confidence.table),
    "comparison_long_arms": ("comparison", partial(arms, "comparison_long")),
    "comparison_differences": ("comparison", differences),
}


def api() -> str:
    """Return the public names of the library with their signatures and docstrings."""
    parts = []
    for name in workbench.__all__:
        if name.startswith("__"):
            continue
        value = getattr(workbench, name)
        if callable(value):
            kind = "class " if inspect.isclass(value) else ""
            head = f"{kind}{name}{inspect.signature(value)}"
            text = inspect.getdoc(value) or ""
        else:
            head, text = name, f"The methods by name: {', '.join(value)}."
        parts.append(f"## `{name}`\n\n```\n{head}\n```\n\n{as_markdown(text)}")
    return "\n\n".join(parts)


def findings_hours() -> str:
    """Return number and hours of the trainings behind the findings; equal runs count once."""
    runs = {
        run["hash"]: (run["seconds"], file.stem)
        for file in sorted(RESULTS.glob("*.json"))
        for run in json.loads(file.read_text()).get("runs", [])
        if isinstance(run, dict) and {"hash", "seconds"} <= run.keys()
    }
    marks = ("real", "gpu", "smollm2")
    real = [seconds for seconds, study in runs.values() if any(mark in study for mark in marks)]
    total = sum(seconds for seconds, _ in runs.values())
    return (
        f"The stored findings took {len(runs)} trainings: {len(runs) - len(real)} in the closed"
        f" world with {(total - sum(real)) / 3600:.1f} hours, and {len(real)} of language models of"
        f" .1 and .5 billion parameters with {sum(real) / 3600:.1f} hours."
    )


def as_markdown(docstring: str) -> str:
    """Return a docstring with its argument and error sections as lists."""
    lines = []
    for line in docstring.splitlines():
        if re.fullmatch(r"(Args|Raises|Returns):", line):
            lines += ["", f"**{line}**", ""]
        elif match := re.match(r"    (\S[\w, `]*): (.*)", line):
            lines.append(f"- `{match[1]}`: {match[2]}")
        else:
            lines.append(f"  {line.strip()}" if line.startswith("    ") else line)
    return "\n".join(lines).strip()


WRITERS: dict[str, Callable[[], str]] = {
    "api": api,
    "scorecard": scorecard.markdown,
    "findings_hours": findings_hours,
    "other_waits": lambda: waits.others(RESULTS),
    "scorecard_counts": lambda: f"{scorecard.counts(scorecard.scorecard())}.",
}


def table(name: str, results: Path = RESULTS) -> str:
    """Return the text of a generated part, or `NOT_RUN` if its results do not exist."""
    if name in WRITERS:
        return WRITERS[name]()
    source, shown = TABLES[name]
    file = results / f"{source}.json"
    return shown(json.loads(file.read_text())) if file.exists() else NOT_RUN


def rendered(text: str, results: Path = RESULTS) -> str:
    """Return `text` with every generated part replaced by its current text."""

    def part(match: re.Match) -> str:
        name = match[1]
        return (
            f"<!-- {name} -->\n{table(name, results)}\n<!-- end -->"
            if name in TABLES or name in WRITERS
            else match[0]
        )

    return re.sub(r"<!-- (\w+) -->\n.*?<!-- end -->", part, text, flags=re.DOTALL)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    pages = {page: page.read_text() for page in PAGES}
    stale = [page.name for page, text in pages.items() if text != rendered(text)]
    if (ROOT / "docs" / "scorecard.svg").read_text() != scorecard.picture(scorecard.scorecard()):
        stale.append("scorecard.svg")
    if given.check:
        sys.exit(
            f"{' and '.join(stale)} differ from benchmarks/results: run benchmarks/readme.py"
            if stale
            else 0
        )
    for page, text in pages.items():
        page.write_text(rendered(text))
    (ROOT / "docs" / "scorecard.svg").write_text(scorecard.picture(scorecard.scorecard()))


if __name__ == "__main__":
    main()
