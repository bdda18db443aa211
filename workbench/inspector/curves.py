"""Data of the Runs tab: the list of runs, newest first, and curves of the selected runs."""

from collections.abc import Sequence
from datetime import UTC, datetime

from workbench.inspector.evaluations import headline
from workbench.inspector.listing import own_method
from workbench.inspector.parts import page_json
from workbench.inspector.runs import Runs, damage
from workbench.runs.folder import settings_path
from workbench.runs.steps import by_step
from workbench.types import JsonMapping, JsonObject, WorkbenchError
from workbench.util.jsonl import finite, json_digest

NO_RUN = "There is no run in the runs folder yet."
NO_ROLLOUTS = "This run has no rollouts yet: choose another, or come back after its first step."
MAX_RUNS = 12  # runs that are drawn together

# curves over the steps: column of metrics.jsonl or of the rollouts, title, whether it is a share
SERIES = (
    ("reward", "Reward", False), ("reward_std", "Spread of the reward in a group", False),
    ("accuracy", "Accuracy", True), ("abstention", "Abstention", True),
    ("hallucination", "Hallucination", True), ("kl", "KL to the reference", False),
    ("entropy", "Entropy", False), ("length", "Length, tokens", False),
    ("truncated", "Cut off", True), ("unplaced", "Claims not placed", True),
    ("failed", "Rows not scored", True),
)  # fmt: skip
# title of a part of the reward, by the prefix of its column
PARTS = {"part": "Reward,", "logged": "Logged,"}
PREFIXES = ("part:", "logged:")


def stamp(runs: Runs, names: Sequence[str]) -> str:
    """Return a digest by which the page detects that it must load its data again.

    It changes if other runs are selected (`names`), or if the files or the status of a run change.
    """
    stamps: list[object] = [list(names)]
    for name in runs.names():
        try:
            stamps.append((name, runs.stamp(name)))
        except WorkbenchError:  # the list shows the error
            stamps.append(name)
    return json_digest(stamps)


def run_list(runs: Runs) -> list[JsonObject]:
    """Return a summary of every run. The run that was written last comes first.

    The summary of a damaged run has only "name", "label", "broken" (the error) and "written" (0).
    """
    summaries = []
    for name in runs.names():
        try:
            with damage(f"run '{name}'"):
                summaries.append(_summary(runs, name))
        except WorkbenchError as error:
            summaries.append({"name": name, "broken": str(error), "written": 0.0})
    return sorted(_labelled(runs, summaries), key=lambda run: (-run["written"], run["name"]))


def _labelled(runs: Runs, summaries: Sequence[JsonMapping]) -> list[JsonObject]:
    described = runs.labels()
    return [{**run, "label": described.get(run["name"], run["name"])} for run in summaries]


def _summary(runs: Runs, name: str) -> JsonObject:
    config, written = runs.described(name, "config.json"), runs.file(name).stat().st_mtime
    steps = _steps(runs, name)
    own = own_method(runs, name) if runs.at_hand(name) else ""
    return {
        "name": name,
        "written": written,
        "date": datetime.fromtimestamp(written, UTC).isoformat(),
        "method": str(config.get("method") or own),
        "seed": config.get("seed") if type(config.get("seed")) is int else None,
        "status": _status(runs, name, config),
        "steps": steps[-1]["step"] if steps else None,
        "last": steps[-1]["reward"] if steps else None,
        "evaluation": headline(runs.described(name, "summary.json")),
        "family": _family(config, name),
    }


def _status(runs: Runs, name: str, config: JsonMapping) -> str:
    if status := runs.described(name, "summary.json").get("status"):
        return str(status)
    if not config:
        return "scored" if settings_path(runs.file(name)).is_file() else "recorded"
    return "running" if runs.in_use(name) else "unfinished"


def _family(config: JsonMapping, name: str) -> str:
    """Return a key that is equal for runs whose configs differ only in the seed.

    Differences in library versions and threads are ignored, too.
    """
    rest = {k: v for k, v in config.items() if k not in ("seed", "versions", "threads")}
    return json_digest(rest if config else name)


def _steps(runs: Runs, name: str) -> list[JsonMapping]:
    """Return a run's metrics, one row per step, without the steps that have no reward.

    The metrics are read from metrics.jsonl or, if this has no rows, computed from the stored
    responses. Return [] if reading the responses would take long.
    """
    rows = runs.metrics(name)
    if not rows and runs.at_hand(name):
        rows = by_step([], runs.rows(name), own_method(runs, name))
    return [
        row
        for row in rows
        if type(row.get("step")) is int and finite(row.get("reward")) is not None
    ]


@page_json()
def curve_data(runs: Runs, names: Sequence[str]) -> JsonObject:
    """Return the training curves of runs, as JSON text.

    Only the first 12 (`MAX_RUNS`) runs in `names` are used.

    Returns:
        The JSON object has these keys; if `names` is empty, only "note".

        * "runs": the steps and values of each run
        * "series": the curves to draw, each with "name", "title" and "share" (True for a share)
        * "note": text to show if there are no curves
        * "reading": names the runs whose files are not read completely yet; "" without such runs
        * "error": lists damaged runs, and says if `names` is too long; missing without errors
    """
    if not names:
        return {"note": NO_RUN}
    curves, errors = [], []
    for name in names[:MAX_RUNS]:
        try:
            with damage(f"run '{name}'"):
                curves.append(_curves(runs, name))
        except WorkbenchError as error:
            errors.append(str(error))
    if len(names) > MAX_RUNS:
        errors.append(f"Only {MAX_RUNS} of the {len(names)} selected runs are drawn together.")
    curves = _labelled(runs, curves)
    unread = [run["name"] for run in curves if run["missing"]]
    rows = curves[0]["rows"] if curves else 0
    count = "its one row is" if rows == 1 else f"its {rows:,} rows are"
    columns = ("name", "title", "share")
    return {
        "runs": curves,
        "series": [dict(zip(columns, series, strict=True)) for series in _series(curves)],
        "note": f"This run has no training steps: {count} listed below." if rows else NO_ROLLOUTS,
        "reading": f"Still being read, with curves of the rows so far: {', '.join(unread)}."
        if unread
        else "",
        **({"error": " ".join(errors)} if errors else {}),
    }


def _series(curves: Sequence[JsonMapping]) -> list[tuple[str, str, bool]]:
    """Return (column, title, whether it is a share) of each curve to draw.

    The curves are `SERIES` and the parts of the rewards. This function also changes `curves`: a run
    without a certain part gets a column of None for it.
    """
    columns = dict.fromkeys(column for run in curves for column in run["series"])
    parts = []
    for column in filter(lambda column: column.startswith(PREFIXES), columns):
        kind, _, name = column.partition(":")
        parts.append((column, f"{PARTS[kind]} {name.replace('_', ' ')}", False))
        for run in curves:
            run["series"].setdefault(column, [None] * len(run["steps"]))
    return [*SERIES[:2], *parts, *SERIES[2:]]


def _curves(runs: Runs, name: str) -> JsonObject:
    from pandas import Series

    rows = runs.rows(name)
    steps = by_step(runs.metrics(name), rows, own_method(runs, name))
    parts = [column for row in steps for column in row if column.startswith(PREFIXES)]
    names = dict.fromkeys([*(column for column, _, _ in SERIES), *parts])
    series = {column: [row.get(column) for row in steps] for column in names}
    numbers, grouped = [row["step"] for row in steps], rows.table.groupby("step")
    sums, counts = grouped[["claims", "unplaced"]].sum(), grouped.size()
    failed = Series(series["failed"], numbers, dtype="float64")
    # shares, because numbers per step depend on the batch size
    shares = {"unplaced": sums["unplaced"] / sums["claims"], "failed": failed / counts}
    for column, values in shares.items():
        series[column] = [finite(value) for value in values.reindex(numbers)]
    return {
        "name": name,
        "steps": numbers,
        "series": series,
        "rows": rows.total,
        "missing": rows.missing,
        "family": _family(runs.described(name, "config.json"), name),
    }
