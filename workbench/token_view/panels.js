// The pieces of the view that are rebuilt on every change: head, toolbar, legend, notes, payment, checks.

const SOURCES = {sampled: "sampled ids", encoded: "encoded", words: "words as tokens"};

function viewHead({data}) {
  const count = `${data.tokens.length} ${data.tokens.length === 1 ? "token" : "tokens"}`;
  const step = data.step === null ? null : `step ${data.step}`;
  const facts = [data.name, step, count, SOURCES[data.source], data.finish === "length" ? "cut off" : null];
  return [
    h("h3", {class: "tv-question", dir: "auto"}, data.question || "(no question)"),
    data.answers.length ? h("p", {class: "tv-gold"}, small("Gold answer "), data.answers.join(" · ")) : null,
    h("p", {class: "tv-small tv-facts"}, facts.filter(Boolean).join("  ·  ")),
    data.error ? failed("The row failed", data.error) : null,
  ].filter(Boolean);
}

function compactHead({data, method}) {
  const found = data.methods[method] || {value: null, parts: {}, error: null}, {paid, also} = partsOf(found);
  const part = (shown) => ([name, value]) => span("tv-part", `${spaced(name)} `, h("b", {}, shown(value)));
  const value = found.value === null ? "not scored" : signed(found.value);
  return [
    div("tv-compact-head", h("h3", {}, nameOf(method)), span(`tv-value tv-value-${tone(found.value || 0)}`, value)),
    div("tv-parts-line", paid.map(part((value) => signed(value)))),
    also.length ? div("tv-parts-line", "from", also.map(part((value) => number(value)))) : null,
    found.error ? failed("Not scored", found.error) : null,
  ].filter(Boolean);
}

// What the events pay, summed by part: these add up to the reward. The equation's other quantities are told beside it.
function partsOf(found) {
  const paid = new Map();
  for (const event of found.events || []) paid.set(event.part, (paid.get(event.part) || 0) + event.value);
  const told = ([name, value]) => !(Math.abs(paid.get(name) - value) < 1e-9);
  return {paid: [...paid], also: Object.entries(found.parts).filter(told)};
}

const spaced = (name) => name.replace(/_/g, " ");
const failed = (what, error) =>
  h("p", {class: "tv-failure"}, h("b", {}, `${what}: `), `${error.message} `, small(`(${error.stage}, ${error.kind})`));

function toolbar(state, values, refresh) {
  const {data} = state;
  const turn = (name, value) => () => ((state[name] = value), refresh());
  const method = ([name, found]) => {
    const value = span(`tv-tab-value tv-value-${tone(found.value || 0)}`, found.value === null ? "n/a" : signed(found.value));
    const more = {"aria-pressed": String(name === state.method), "data-method": name, title: found.error && found.error.message};
    return button("tv-tab", [nameOf(name), value], turn("method", name), more);
  };
  const channel = ([name, words]) => {
    const off = values(name) ? null : WHY_OFF[name];
    const more = {"aria-pressed": String(name === state.channel), "data-channel": name, disabled: Boolean(off), title: off};
    return button("tv-tab", words, turn("channel", name), more);
  };
  const offered = CHANNELS.filter(([name]) => name !== "value" || values(name));
  const group = (label, ...children) => h("div", {class: "tv-group", role: "group", "aria-label": label}, ...children);
  return [
    group("method", div("tv-tabs", Object.entries(data.methods).map(method))),
    group("what the colours show", div("tv-tabs", offered.map(channel)), state.channel === "advantage" ? estimators(state, refresh) : null),
  ];
}

function estimators(state, refresh) {
  const known = Object.keys((state.data.methods[state.method] || {}).advantages || {});
  const options = known.map((name) => h("option", {value: name, selected: name === state.estimator}, name));
  const change = (event) => ((state.estimator = event.target.value), refresh());
  return h("label", {class: "tv-small"}, "estimator ", select("advantage estimator", "tv-select", change, options));
}

function legend(state, {most, centre}) {
  if (most === null) return [small(state.method ? `${nameOf(state.method)} pays no token here.` : "No method has scored this answer.")];
  const sequential = state.channel === "logprob";
  const [low, high] = sequential ? ["0", number(-most)] : [number(centre - most), number(centre + most)];
  const label = sequential ? "darker is less likely" : "orange and underlined is negative, blue is positive";
  const ramp = h("span", {class: `tv-ramp${sequential ? " tv-ramp-seq" : ""}`, role: "img", "aria-label": label});
  const seen = [...new Set(state.data.claims.filter((claim) => claim.span).map(labelOf))];
  const key = (name) => span("tv-key", span(`tv-key-line tv-key-${lineOf(name)}`), wordsOf(name));
  return [
    span("tv-scale", span("", low), ramp, span("", high)),
    sequential ? null : span("tv-small tv-under", "negative"),
    seen.length ? span("tv-keys", small("claims:"), seen.map(key)) : null,
  ].filter(Boolean);
}

// Claims that the text does not show: not found in it, or not checked because something failed.
function notes(state, choose) {
  const lost = state.data.claims.filter((claim) => !claim.placed), broken = state.data.claims.filter((claim) => claim.error);
  const line = (words) => (claim) =>
    h("li", {}, button("tv-link", String(claim.id + 1), () => choose(claim.id)), ` “${claim.text}” — ${words(claim)}`);
  const list = (title, claims, words, more = "") =>
    claims.length ? div(`tv-note${more}`, h("b", {}, title), h("ul", {}, claims.map(line(words)))) : null;
  return [
    list("Not placed in the text", lost, (claim) => `paid at the end of ${claim.sentence === null ? "the response" : "its sentence"}`),
    list("Could not be checked", broken, (claim) => `${claim.error.message} (${claim.error.kind})`, " tv-note-failed"),
  ].filter(Boolean);
}

// What is known of a token: in its tooltip, and beside the text when it is selected.
function tokenFacts(state, drawn, index) {
  const {data} = state, [start, end] = data.tokens[index];
  const rows = CHANNELS.map(([name, words]) => [name === "advantage" ? `advantage (${state.estimator})` : words.toLowerCase(), name])
    .map(([words, name]) => [words, series(data, state.method, name, state.estimator)])
    .filter(([, numbers]) => numbers)
    .map(([words, numbers]) => div("tv-tip-row", span("", words), h("b", {}, signed(numbers[index], 3))));
  const events = state.method ? data.methods[state.method].events.filter((event) => covers(event, index)) : [];
  const claim = (event) => (event.claim === null ? "" : ` · claim ${event.claim + 1}`);
  const shown = start === end ? specialMark(data, index) : visible(drawn.characters.slice(start, end).join(""));
  return [
    div("tv-tip-head", h("code", {}, shown), span("", `${index + 1} / ${data.tokens.length}`)),
    ...rows,
    ...events.map((event) => div("tv-tip-event", `${event.part} ${signed(event.value)}${claim(event)}`)),
  ];
}

// Beside the text: what the method paid and why; and what the selected token holds.
function payment(state, {claims, choose, drawn}) {
  const found = state.data.methods[state.method];
  const cards = found ? [paymentCard(state.method, found)] : [];
  return state.token === null ? cards : [...cards, tokenCard(state, claims, choose, drawn)];
}

function paymentCard(method, found) {
  const {paid, also} = partsOf(found);
  const most = Math.max(1e-9, ...paid.map(([, value]) => Math.abs(value)));
  const row = ([name, value]) => {
    const bar = span(`tv-fill tv-fill-${tone(value)}`);
    bar.style.setProperty("--w", `${(50 * Math.abs(value)) / most}%`);
    return div("tv-bar-row", span("", spaced(name)), span("tv-bar-track", bar), h("b", {}, signed(value)));
  };
  const told = ([name, value]) => span("", `${spaced(name)} `, h("b", {}, number(value)));
  return h("section", {class: "tv-card"}, h("h4", {}, `${nameOf(method)} pays`),
    div(`tv-big tv-value-${tone(found.value || 0)}`, found.value === null ? "not scored" : signed(found.value)),
    found.error ? failed("Reason", found.error) : null, paid.map(row), also.length ? div("tv-also", also.map(told)) : null);
}

function tokenCard(state, claims, choose, drawn) {
  const linked = state.data.claims.filter((claim) => claims(state.token).includes(claim.id));
  const line = (claim) => button("tv-claim-link", [h("b", {}, String(claim.id + 1)), ` ${claim.text}`], () => choose(claim.id));
  return h("section", {class: "tv-card tv-token-card", "aria-live": "polite"}, h("h4", {}, `Token ${state.token + 1}`),
    tokenFacts(state, drawn, state.token), linked.length ? linked.map(line) : h("p", {class: "tv-small"}, "It belongs to no claim."));
}

// Verdicts on anything but a claim: the outcome, the reasoning, checklist items, the response as a whole.
function checkCard({checks}) {
  if (!checks.length) return [];
  const by = [...new Set(checks.map((check) => check.by).filter(Boolean))].join(", ");
  const found = ({error, label, p}) => (error ? chip("failed", error.message) : label ? chip(label) : h("b", {}, `p ${number(p)}`));
  const line = (check) => div("tv-check", h("span", {dir: "auto"}, check.words), found(check));
  const head = h("h4", {}, span("", "Other checks"), by ? small(`by ${by}`) : null);
  return [h("section", {class: "tv-card"}, head, div("tv-checks-list", checks.map(line)))];
}
