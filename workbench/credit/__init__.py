"""Turn the events of a reward into token rewards and token advantages.

An event is a part of a reward with a position in the response (`workbench.types.Event`).

* `tokens` computes which characters each token covers.
* `attribute` aligns claims with the response and assigns rewards to tokens.
* `advantages` computes token advantages from token rewards.
* `tensors` has the tensor functions that the trainers share.
"""
