"""KLCF (arXiv 2509.23765): rewards for answers that agree with the knowledge of the base model.

The paper: each question has a checklist of facts that the base model can state. The facts are
verified once, before training. An answer is rewarded for recall and precision on its checklist, and
for the mean probability that its claims are true. This probability is from a truthfulness model,
which is fine-tuned from the same base model. Training needs no retrieval.

* Qwen2.5-14B base → KLCF-zero: FActScore 46.8 → 61.2, F1@64 on LongFact .637 → .733.
* The checklist alone raises recall and lowers precision. Truthfulness alone does the reverse.
* Computing a reward takes 57 s and no searches. Computing FActScore takes 198 s and 52 searches.

Training prepares checklists and labelled claims from samples of the base model (`workbench klcf
prepare`), trains the truthfulness model, then runs GRPO. Settings select two baselines of the
paper:

* GRPO on FActScore: `w_check=0 rewarded=judge`
* Intuitor, which maximises the policy's certainty of its next tokens: `grpo.self_certainty=true
  w_truth=0`

Our deviations:

* `workbench score` has no truthfulness model, so it uses "fact" verdicts instead. The part
  `stood_in` counts the claims that are scored by a "fact" verdict.
* The general reward, a preference model's score, is off by default. If no preference model is
  named, a run trains a model of good form. It scores whether an answer is whole and on subject
  (`general.py`).
* Formulas that the paper's text does not state are defined in `reward.py`.
* The judge extracts claims and compares checklists, in place of two fine-tuned models. The judge
  also compares the facts of a checklist, so that no two say the same in different words.
* Adapters are trained, not all parameters. The truthfulness model's score is from a scalar head,
  not the probability of a word.
* `rewarded=confidence` uses the base model's own confidence in place of the truthfulness model.
"""
