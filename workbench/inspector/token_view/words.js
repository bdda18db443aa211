// Words of the view and their meanings. page.py declares the constants NAMES (of methods), PART_WORDS (method -> part -> words,
// meaning), LACKING (missing inputs by kind of error), LOCAL_LIMITS and CLAIM_LABELS before this script.

// Labels of verdicts: sign, words, meaning.
const LABELS = {
  correct: ["✓", "correct", "the evidence supports it"],
  hedged_correct: ["≈✓", "hedged, correct", "stated with reservation, and the evidence supports it"],
  vague: ["~", "vague", "the evidence neither supports nor contradicts it"],
  hedged_wrong: ["≈✗", "hedged, wrong", "stated with reservation, and the evidence contradicts it"],
  wrong: ["✗", "wrong", "the evidence contradicts it"],
  failed: ["!", "failed", "the check failed"],
  unchecked: ["–", "not judged", "its truth was not checked"],
  no_gold: ["–", LACKING.no_gold, "there is no gold answer to compare the final answer with"],
  consistent: ["✓", "stated", "the answer states this fact"],
  contradictory: ["✗", "contradicted", "the answer contradicts this fact"],
  missing: ["–", "missing", "the answer does not mention this fact"],
  uncertain: ["~", "abstains", "the answer says that it does not know"],
  incorrect: ["✗", "incorrect", "the final answer does not agree with the gold answer"],
  good: ["✓", "good", "the reasoning is sound"],
  poor: ["✗", "poor", "the reasoning is not sound"],
  known: ["✓", "known", "the model can be expected to know the answer"],
  unknown: ["–", "unknown", "the model cannot be expected to know the answer"],
  asked: ["✓", "about the question", "it is about the question's subject"],
  other: ["–", "another subject", "it is not about the question's subject"],
};
const GOOD = new Set(["correct", "hedged_correct", "consistent", "good"]);
const BAD = new Set(["wrong", "hedged_wrong", "contradictory", "incorrect", "poor"]);
const OUTCOME_CORRECT = "the final answer agrees with the gold answer";

// Values that the colours can show: channel, title, meaning.
const CHANNELS = [
  ["reward", "Reward", "reward of each token by the method"],
  ["advantage", "Advantage", "training signal of each token, relative to the other answers to this prompt"],
  ["logprob", "Log-prob", "log-probability of each token under the policy that sampled it"],
  ["kl", "KL", "log-probability under the policy minus that under the reference policy, by token"],
  ["ratio", "Ratio", "probability of each token under the trained policy divided by that under the sampling policy; clipped tokens are outlined"],
  ["value", "Value", "the critic's estimate of future reward"],
];
const WHY_OFF = {
  reward: "there are no token rewards", advantage: "the rewards of its group are not known", logprob: "no log-probabilities are stored in this row",
  kl: "no reference log-probabilities are stored in this row", ratio: "no probability ratios are stored in this row",
  value: "no critic's values are stored in this row",
};
const ESTIMATORS = {
  group: ["GRPO", "(total reward − mean of the group) / standard deviation, the same for all tokens"],
  batch: ["GRPO, batch's scale", "(total reward − mean of the group) / standard deviation of all totals of the batch (here, of the group)"],
  process: ["GRPO by step", "process supervision: each token gets the normalised rewards at it or after it"],
  rtg: ["return to go", "each token gets the rewards at it or after it, over the root mean square of the group's"],
  whiten: ["whitened", "each token gets the rewards at it or after it, with mean 0 and standard deviation 1 over the tokens of the batch (here, of the group)"],
  gae: ["GAE", "generalised advantage estimation with the critic's values"],
};

const COUNTS = new Set(["segments", "stood_in", "unfinished", "consistent", "contradictory", "missing"]);

const TOKENS_FROM = {sampled: "tokens as sampled", encoded: "tokens of the encoded text", words: "words as tokens"};
const JUDGES = {
  example: "hand", world: "the closed world", local: "the local verifier", rule: "rules", annotation: "a person", judge: "the judge",
};

// An object's own property. Names come from files, so inherited ones such as "constructor" must not match.
const own = (object, name) => (Object.hasOwn(object, name) ? object[name] : undefined);
const spaced = (name) => name.replace(/_/g, " ");
const nameOf = (method) => own(NAMES, method) || method;
// A trainer's logged number, which is not a reward of a method: "trl:accuracy" as "accuracy, logged by TRL".
const TRAINERS = {trl: "TRL"};
const loggedOf = (name) => {
  const [trainer, ...column] = name.split(":");
  return `${spaced(column.join(":"))}, logged by ${own(TRAINERS, trainer) || trainer}:`;
};
const entryOf = (label) => own(LABELS, label) || (own(LACKING, label) ? ["–", own(LACKING, label)] : ["•", label]);
const wordsOf = (label) => entryOf(label)[1];
const meaningOf = (label) => entryOf(label)[2];
const judgeOf = (by) => own(JUDGES, by) || by;
const partOf = (method, part) => own(own(PART_WORDS, method) || {}, part) || [spaced(part), null];
const estimatorOf = (name) => own(ESTIMATORS, name) || [spaced(name), null];
// Missing inputs, such as gold answers, are recorded like failures but are not failures.
const isFailure = (error) => Boolean(error) && !own(LACKING, error.kind);
const reasonOf = (error) => error.message + (isFailure(error) ? ` (stage: ${error.stage}, ${spaced(error.kind)})` : "");
const labelOf = ({error, label}) => (error ? (isFailure(error) ? "failed" : error.kind) : label || "unchecked");
