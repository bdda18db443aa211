"""`workbench answer`: answer a question from passages, with sources."""

from collections.abc import Mapping
from typing import Annotated

from typer import Argument, Option

from workbench.cli.frame import (
    ABSENT,
    Engine,
    Json,
    Policy,
    SearchMode,
    Threads,
    app,
    complain,
    print_mapping,
    show,
    stdout_kept_clean,
)
from workbench.cli.judge_options import judge_options
from workbench.experiments.answering import answer as answer_question
from workbench.types import JsonMapping
from workbench.util.threads import DEFAULT_THREADS
from workbench.verdicts.llm_judge import LLMJudge


@app.command(
    epilog='Example: workbench answer "What is Fipon Stopunos known for and how does it compare'
    ' with Trobi Dupo?"'
)
@judge_options(store=False)
def answer(
    question: Annotated[str, Argument(help="The question.")],
    policy: Policy = None,
    store: Annotated[
        str | None,
        Option(
            metavar="NAME",
            help="Index (`workbench index build`) to search; default: the closed world's pages.",
        ),
    ] = None,
    k: Annotated[
        int | None,
        Option(
            "--k",
            "-k",
            min=1,
            max=50,
            help="Maximum number of passages; default: 3 for the tiny policy, else 5.",
        ),
    ] = None,
    mode: SearchMode = None,
    judge: LLMJudge | None = None,
    threads: Threads = DEFAULT_THREADS,
    engine: Engine = "hf",
    as_json: Json = False,
) -> int:
    """Answer a question from passages, with the sources of every sentence.

    The judge labels how well the passages support each sentence.
    """
    with stdout_kept_clean():
        result = answer_question(
            question, policy, store, judge=judge, k=k, mode=mode, threads=threads, engine=engine
        ).to_row()
    code = show(result, as_json, _print)
    for sentence in result["sentences"]:
        if sentence["error"]:
            complain(f"not judged: {sentence['text'][:80]}: {sentence['error']}")
    return code


def _print(result: JsonMapping) -> None:
    """Print the plan, each sentence of the answer with its support, and the sources."""
    numbers = {
        passage["id"]: f"[{number}]" for number, passage in enumerate(result["passages"], start=1)
    }
    columns = ("", "p", "sources", "sentence")
    support = [
        dict(zip(columns, _support(sentence, numbers), strict=True))
        for sentence in result["sentences"]
    ]
    shown = {
        "question": result["question"],
        "plan": result["structure"],
        "outline": result["outline"],
        "answer": None if support else result["text"],
        f"support, judged by {result['judge'] or ABSENT}": support,
        "notes": result["notes"],
        "sources": [
            {"": numbers[p["id"]], **{name: p[name] for name in ("title", "text", "id")}}
            for p in result["passages"]
        ],
    }
    print_mapping({name: value for name, value in shown.items() if value})


def _support(sentence: JsonMapping, numbers: Mapping[str, str]) -> tuple[str, ...]:
    label = "not judged" if sentence["error"] else sentence["label"] or "no claim"
    p = ABSENT if sentence["p"] is None else f"{sentence['p']:.2f}"
    sources = "".join(numbers[name] for name in sentence["passages"])
    return label.replace("_", ", "), p, sources or ABSENT, " ".join(sentence["text"].split())
