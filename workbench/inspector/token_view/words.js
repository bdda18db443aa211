// What the view calls things, and what they mean. Before this script stand NAMES, the methods', PART_WORDS, what their rewards are
// made of (method -> part -> words, meaning), LACKING, what an input may give nothing for, by the kind of error that is recorded
// then, and CLAIM_LABELS, the labels of claims: see page.py.

// Labels of verdicts: sign, words, meaning.
const LABELS = {
  correct: ["✓", "correct", "the evidence supports it"],
  hedged_correct: ["≈✓", "hedged, correct", "said with reservation, and the evidence supports it"],
  vague: ["~", "vague", "the evidence neither supports nor contradicts it"],
  hedged_wrong: ["≈✗", "hedged, wrong", "said with reservation, and the evidence contradicts it"],
  wrong: ["✗", "wrong", "the evidence contradicts it"],
  failed: ["!", "failed", "the check could not be done"],
  unchecked: ["–", "not judged", "nobody was asked whether it is true"],
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
  asked: ["✓", "about the question", "it is about what was asked"],
  other: ["–", "another subject", "it is about something else than what was asked"],
};
const GOOD = new Set(["correct", "hedged_correct", "consistent", "good"]);
const BAD = new Set(["wrong", "hedged_wrong", "contradictory", "incorrect", "poor"]);
const OUTCOME_CORRECT = "the final answer agrees with the gold answer";

// What the colours can show: channel, title, meaning.
const CHANNELS = [
  ["reward", "Reward", "what the method pays to each token"],
  ["advantage", "Advantage", "what training makes of the rewards, compared with the other answers to this prompt"],
  ["logprob", "Log-prob", "log-probability of each token under the policy that sampled it"],
  ["kl", "KL", "log-probability under the policy less that under the reference policy, token by token"],
  ["ratio", "Ratio", "probability of each token under the trained policy over that under the sampling one; outlined where it is clipped"],
  ["value", "Value", "the critic's estimate of the reward to come"],
];
const WHY_OFF = {
  reward: "nothing was paid", advantage: "the rewards of its group are not known", logprob: "no log-probabilities are stored in this row",
  kl: "no reference log-probabilities are stored in this row", ratio: "no probability ratios are stored in this row",
  value: "no critic's values are stored in this row",
};
const ESTIMATORS = {
  group: ["GRPO", "(total reward − mean of the group) / standard deviation, the same for all tokens"],
  batch: ["GRPO, batch's scale", "(total reward − mean of the group) / standard deviation of all totals of the batch (here, of the group)"],
  process: ["GRPO by step", "process supervision: each token gets the normalised rewards paid at it or after it"],
  rtg: ["return to go", "each token gets the rewards paid at it or after it, over the root mean square of the group's"],
  whiten: ["whitened", "each token gets the rewards paid at it or after it, with mean 0 and standard deviation 1 over the tokens of the batch (here, of the group)"],
  gae: ["GAE", "generalised advantage estimation with the critic's values"],
};

const COUNTS = new Set(["segments", "stood_in", "unfinished", "consistent", "contradictory", "missing"]);

const TOKENS_FROM = {sampled: "tokens as sampled", encoded: "tokens of the encoded text", words: "each word taken as a token"};
const JUDGES = {
  example: "hand", world: "the closed world", local: "the local verifier", rule: "rules", annotation: "a person", judge: "the judge",
};

// What an object holds itself under a name that comes from a file: "constructor" is then a name like any other.
const own = (object, name) => (Object.hasOwn(object, name) ? object[name] : undefined);
const spaced = (name) => name.replace(/_/g, " ");
const nameOf = (method) => own(NAMES, method) || method;
// A trainer's logged number, which is no method's reward: "trl:accuracy" as "accuracy, logged by TRL".
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
// That a gold answer is missing, say, is recorded as a failure is, and is nobody's failure.
const isFailure = (error) => Boolean(error) && !own(LACKING, error.kind);
const reasonOf = (error) => error.message + (isFailure(error) ? ` (stage: ${error.stage}, ${spaced(error.kind)})` : "");
const labelOf = ({error, label}) => (error ? (isFailure(error) ? "failed" : error.kind) : label || "unchecked");
