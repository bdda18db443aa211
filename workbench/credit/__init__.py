"""Turn the events of a reward into token rewards and token advantages.

* `tokens` computes which characters each token covers.
* `attribute` aligns claims with the response and assigns rewards to tokens.
* `advantages` has the estimators of advantages.
* `tensors` has the functions on tensors that the trainers share.
"""
