"""A warning about settings of RLFH with which a vague or wrong claim raises the reward."""

import warnings
from math import log1p

from workbench.methods.rlfh.config import RLFH, factors, label_values


def warn_of_rewarded_mistakes(config: RLFH) -> None:
    """Warn if a vague or wrong claim can raise the reward.

    The largest gain is α·f·|g| + β·log(1 + max(ε, g)), in a sentence of its own. In a sentence with
    Σg ≥ 0 the logarithm changes by less (for β ≥ 0).

    The paper's maps reward no such claim, nor does the launch script's f. The exception, without a
    warning, is a sentence of useless claims, where the logarithm is steep. With table 9, a vague
    claim raises the reward after five of them (Σg = −.5: −1 + log(1.5/.5) = +.10), a hedged wrong
    one after eight and a wrong one after nine; with the launch script's f after two, four and six.
    """
    f, g, cases = label_values(config), factors(config), list[str]()
    for name in ("vague", "hedged_wrong", "wrong"):
        gains = {
            rating: config.alpha * f[name] * abs(weight)
            + max(config.beta * log1p(max(config.epsilon, weight)), 0.0)
            for rating, weight in g.items()
        }
        gains = {rating: gain for rating, gain in gains.items() if gain > 0}
        if gains:
            at = ", ".join(f"g_{rating}={g[rating]:g}" for rating in gains)
            cases.append(f"f_{name}={f[name]:g} (up to {max(gains.values()):+.2g}, at {at})")
    if cases:
        settings = f"{' and '.join(cases)} with alpha={config.alpha:g} and beta={config.beta:g}"
        warnings.warn(
            f"rlfh rewards a bad claim more than no claim with {settings}: lower rlfh.f_… or"
            " rlfh.beta",
            stacklevel=3,  # the caller of `reward`
        )
