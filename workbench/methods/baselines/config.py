"""Settings of the baselines, with the defaults of TruthRL (arXiv 2509.25760, appendix)."""

from dataclasses import dataclass

from workbench.methods.method import Prompts
from workbench.training.offline import DPO, SFT
from workbench.training.settings import Passes, Samples, Sampling
from workbench.util.config import setting

# micro-batches that fit one 80 GB GPU, by `workbench plan`
BY_SFT = SFT(Passes(batch=16, micro_batch=2))
BY_DPO = DPO(passes=Passes(micro_batch=1))
PROMPTS = Prompts()
# appendix, for RFT: 64 samples at temperature .6 and top-p .9
SAMPLES = Samples(samples=64, sampling=Sampling(0.6, 0.9, 2048))


@dataclass(frozen=True)
class GoldSFT:
    """Settings of SFT on the gold answers of the training questions."""

    prompts: Prompts = PROMPTS
    sft: SFT = BY_SFT


@dataclass(frozen=True)
class SampleSFT:
    """Settings of RFT (SFT on correct samples of the policy) and of R-Tuning.

    R-Tuning is SFT on gold answers, or on "I don't know" if the policy does not know the answer.
    Samples of the policy show whether it knows the answer.
    """

    prompts: Prompts = PROMPTS
    drawn: Samples = SAMPLES
    sft: SFT = BY_SFT


@dataclass(frozen=True)
class PairDPO:
    """Settings of DPO on pairs of the policy's own sampled answers.

    Each round samples the current policy, makes pairs and trains the policy on them. The policy at
    the beginning of a round is also that round's reference model *(ours)*. The TruthRL paper's
    iterative DPO (table 1) is `rounds=5`: DPO and four more rounds.
    """

    rounds: int = setting(1, "rounds of sampling, pairing and DPO", least=1, trains=True)
    prompts: Prompts = PROMPTS
    drawn: Samples = SAMPLES
    dpo: DPO = BY_DPO
