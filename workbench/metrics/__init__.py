"""Factuality metrics of graded responses, with confidence intervals and paired tests.

* `outcomes`: accuracy, abstention, hallucination, truthfulness and F-score of graded answers.
* `rows`: reads stored feedback rows, with only the fields that metrics use.
* `claims`: FactScore, precision, recall@K, F1@K, VeriScore, facts per query and per sentence.
* `confidence`: risk–coverage curve, AURC and AUROC.
* `pairs`: win rate. A judge compares the answers of two files, each pair in both orders.
* `capability`: accuracies on other tasks before and after training.
* `marks`: a judge's ratings of coherence and helpfulness, from 1 to 5.
* `report`: every metric of one file, or of two files with paired tests.
* `distributions`: the numbers of RLFH's figures 4 to 9.
* `facets`: coverage, order, repetition and citations in answers about several entities.
* `hacks`: signs of reward hacking in rollouts, by training step.

Intervals are computed by resampling questions; over fewer than five questions there is none. An
undefined metric is null with a reason, never 0 or NaN. Rows whose grading failed are counted, but
metrics leave them out.
"""

from workbench.metrics.facets import FACET_METRICS, facet_table, facet_terms
from workbench.metrics.outcomes import (
    RATES,
    SIMPLEQA,
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
    "SIMPLEQA",
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
