"""FoRAG (arXiv 2406.13779): long answers from passages, with outlines and factuality rewards.

The paper: an outline makes answers more coherent, but less factual. "Doubly fine-grained" RLHF
makes them more factual again. It is fine-grained in the evaluation (answers, sentences or subclaims
are judged) and in the reward model (one score per sequence or per token). Share of answers that are
factual as a whole (WebGPT-en, Llama2-7B):

* with an outline, before RLHF: .7978
* after RLHF with a sequence-level reward model: .8897 (subclaims judged), .8787 (sentences judged),
  .8493 (answers judged)
* baselines: .8419 (unlikelihood), .7831 (filtered MLE)

Here a segment is a sentence of the answer that makes a claim, or the whole answer. The reference
model is the policy before RL. Our deviations:

* Only the `[Answer]` part is scored.
* PPO subtracts a baseline from the reward of each segment. This is the mean factuality of the
  segments in the reference model's own answers to the question. These answers are sampled with the
  policy's settings, without beam search.
* If the reward model did not score a sentence, verdicts on its claims are used. The reward's part
  `stood_in` counts these sentences.
* The policy learns to write outlines from its own samples. A system prompt for sampling asks for an
  outline. The training rows do not contain this system prompt. With `cold.writer=judge`, a stronger
  model writes the outlined answers, as in the paper. `cold.outline=false` trains on answers without
  an outline.
* An adapter is trained instead of all parameters.
* GRPO is an alternative to PPO.
* `repeats=once` ignores repeated sentences. The paper rewards them.
"""
