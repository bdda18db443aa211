"""KLCF: rewards for answers that agree with what the base model knows, without retrieval during
training (arXiv 2509.23765).

The paper: a checklist has facts that the base model can state, verified once before training. An
answer is rewarded for recall and precision against it. A truthfulness model, fine-tuned from the
same base model, gives the probability that a claim is true, which is rewarded too. Qwen2.5-14B base
→ KLCF-zero: FActScore 46.8 → 61.2, F1@64 on LongFact .637 → .733. The checklist alone raises recall
and lowers precision; truthfulness alone does the reverse. Computing a reward takes 57 s and no
searches; computing FActScore takes 198 s and 52 searches.

Training prepares checklists and labelled claims from samples of the base model (`workbench klcf
prepare`), trains the truthfulness model, then runs GRPO. The paper's baseline, GRPO on FActScore,
is `w_check=0 rewarded=judge`.

Our deviations:

* `workbench score` has no truthfulness model, so it uses "fact" verdicts instead. The part
  `stood_in` counts the claims that are scored by a "fact" verdict.
* The general reward, a preference model's score, is off by default. If no preference model is
  named, a run trains a model of good form (whole, on-subject answers) on the base model's own
  answers (`general.py`).
* Formulas that the paper's text does not state are defined in `reward.py`.
* The judge extracts claims and compares checklists, in place of two fine-tuned models. It also
  merges facts of a checklist that say the same in other words.
* Adapters are trained, not all parameters. The truthfulness model's score is from a scalar head,
  not the probability of a word.
* `rewarded=confidence` uses the base model's own confidence in place of the truthfulness model.

The paper's baseline Intuitor, which maximises the policy's certainty of its next tokens, is
`grpo.self_certainty=true w_truth=0`.
"""
