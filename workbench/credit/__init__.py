"""From reward events to token advantages. `tokens` computes the characters of each token,
`attribute` assigns rewards to tokens, `advantages` has the estimators, `tensors` functions on
tensors.
"""
