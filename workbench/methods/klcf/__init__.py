"""KLCF: an answer agrees with what the base model knows, without retrieval during training (arXiv
2509.23765).

The paper: a checklist of facts that the base model can state, verified once before training,
rewards recall and precision. A truthfulness model, fine-tuned from the same base, rewards claims
that it finds true. Qwen2.5-14B base to KLCF-zero: FActScore 46.8 → 61.2, F1@64 on LongFact
.637 → .733. The checklist alone raises recall and lowers precision; truthfulness alone does the
reverse. A reward takes 57 s without searches; FActScore takes 198 s and 52 searches.

Training prepares checklists and labelled claims from samples of the base model (`workbench klcf
prepare`), trains the truthfulness model, then runs GRPO. The paper's baseline, GRPO on FActScore,
is `w_check=0 rewarded=judge`.

Our deviations:

* Scoring has no truthfulness model: "fact" verdicts replace its score. The part `stood_in` counts
  the claims for which they do.
* The general reward is off by default. Without a named preference model, a run trains a model of
  good form (whole, on-subject answers) on the base model's own answers (`general.py`).
* Formulas that the text does not state are defined in `reward.py`.
* The judge extracts claims and compares checklists, in place of two fine-tuned models. It also
  merges facts of a checklist that say the same in other words.
* Adapters are trained, not all parameters. The truthfulness model has a scalar head, not the
  probability of a word.
* `rewarded=confidence` uses the base's own confidence in place of the truthfulness model.

The paper's baseline Intuitor, which maximises the policy's certainty of its next tokens, is
`grpo.self_certainty=true w_truth=0`.
"""
