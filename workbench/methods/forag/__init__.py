"""FoRAG: long answers from retrieved passages, with an outline and fine-grained factuality rewards
(arXiv 2406.13779).

The paper: an outline makes answers more coherent and less factual. Doubly fine-grained RLHF
restores factuality. It varies the granularity of the evaluation (answer, sentence or subclaim) and
of the reward model (sequence or token). Share of wholly factual answers (WebGPT-en, Llama2-7B):

* with an outline, before RLHF: .7978
* after RLHF with a sequence-level reward model: .8897 (evaluation of subclaims), .8787 (of
  sentences), .8493 (of answers)
* baselines: .8419 (unlikelihood), .7831 (filtered MLE)

Here a segment is a sentence of the answer that makes a claim, or the whole answer. The reference
model is the policy before RL. Our deviations:

* Only the `[Answer]` part is scored.
* A baseline is subtracted from the reward of each segment: the mean factuality of the segments in
  the reference model's own answers to the question. These answers are sampled with the policy's
  settings, without beam search.
* A sentence without a reward model's score is scored by the verdicts on its claims. The reward's
  part `stood_in` counts these sentences.
* The policy learns to write outlines from its own samples. The prompt for sampling instructs it to
  plan; the prompt of the training row does not. With `cold.writer=judge`, as in the paper, a
  stronger model writes the outlined answers. `cold.outline=false` trains on plain answers.
* An adapter is trained instead of all parameters.
* GRPO is an alternative to PPO. `repeats=once` ignores repeated sentences; the paper rewards them.
"""
