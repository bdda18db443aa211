"""Factuality metrics: arithmetic on graded responses, with intervals over questions and paired
tests.

* `outcomes`: accuracy, abstention, hallucination and truthfulness of graded answers.
* `rows`: a stored feedback row reduced to what a metric needs.
* `claims`: FactScore, precision, recall@K, F1@K, VeriScore, facts per query and per sentence.
* `confidence`: risk–coverage, AURC and AUROC.
* `pairs`: the answers of two files to the same questions, and which of both a judge prefers,
  asked in both orders: the win rate.
* `report`: every metric of one file, or of two with paired tests.
* `distributions`: the tables behind RLFH's figures 4 to 9.
* `facets`: form, facets, order, repetition and citations of an answer on several facets.
* `hacks`: what only serves a reward, by training step.

What is undefined is null with a reason, never 0 and never NaN; what failed is counted, and left
out.
"""

from workbench.metrics.facets import FACET_METRICS, facet_table, facet_terms
from workbench.metrics.outcomes import (
    RATES,
    RESAMPLES,
    breakdown,
    outcome_of,
    rates,
    share_of_oracle,
    table,
)
from workbench.metrics.report import claim_table, compare_files, summarise
from workbench.metrics.rows import Row, read_rows, rows_of

__all__ = [
    "FACET_METRICS",
    "RATES",
    "RESAMPLES",
    "Row",
    "breakdown",
    "claim_table",
    "compare_files",
    "facet_table",
    "facet_terms",
    "outcome_of",
    "rates",
    "read_rows",
    "rows_of",
    "share_of_oracle",
    "summarise",
    "table",
]
