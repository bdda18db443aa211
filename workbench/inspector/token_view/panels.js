// The pieces of the view that are rebuilt on every change: head, toolbar, legend, notes, payment, checks.

function viewHead(state) {
  const {data} = state;
  const count = `${data.tokens.length} ${data.tokens.length === 1 ? "token" : "tokens"}`;
  const step = data.step === null ? null : `step ${data.step}`;
  const logged = Object.entries(data.logged || {}).map(([name, value]) => `${loggedOf(name)} ${value === null ? "n/a" : number(value)}`);
  const facts = [step, count, TOKENS_FROM[data.source], data.finish === "length" ? "cut off at the length limit" : null, ...logged].filter(Boolean);
  return [
    h("h3", {class: "tv-question", dir: "auto"}, data.question || "(no question)"),
    data.answers.length ? h("p", {class: "tv-gold"}, small("Gold answer "), data.answers.join(" · ")) : null,
    passageList(state),
    h("p", {class: "tv-small tv-facts"}, data.name ? span("tv-tag", data.name) : null, facts.join("  ·  ")),
    data.error ? failed("Failed", data.error) : null,
  ].filter(Boolean);
}

// The question's passages, closed until the user opens them; they then stay open for other responses. In the prompt of a sampled
// response, they are before the question, with numbers if there are several, and without their titles. Views stored by older versions have no passages.
function passageList(state) {
  const {passages = [], source} = state.data, count = passages.length;
  if (!count) return null;
  const passage = ([title, text], index) => h("p", {dir: "auto"}, count > 1 ? `[${index + 1}] ` : "", span("tv-tag", title), " ", text);
  const more = {class: "tv-passages", open: state.passages, ontoggle: (event) => (state.passages = event.target.open)};
  const words = `${count} ${count === 1 ? "passage" : "passages"} ${source === "sampled" ? "in the prompt" : "of the question"}`;
  return h("details", more, h("summary", {}, words), passages.map(passage));
}

function compactHead({data, method}) {
  const found = own(data.methods, method) || {value: null, parts: {}, error: null}, {paid, also} = partsOf(method, found);
  const part = ([words, title, value]) => h("span", {class: "tv-part", title}, `${words} `, h("b", {}, value));
  const value = found.value === null ? "not scored" : signed(found.value);
  return [
    div("tv-compact-head", h("h3", {}, nameOf(method)), span(`tv-value tv-value-${tone(found.value || 0)}`, value)),
    div("tv-parts-line", paid.map(([, value, words, title]) => part([words, title, signed(value)]))),
    also.length ? div("tv-parts-line", "from", also.map(part)) : null,
    found.error ? failed("Not scored", found.error) : null,
  ].filter(Boolean);
}

// The sums of the events by part, which add up to the reward, and the equation's other quantities: counts, and weighted parts
// before weighting.
function partsOf(method, found) {
  const paid = new Map();
  for (const event of found.events || []) paid.set(event.part, (paid.get(event.part) || 0) + event.value);
  const differs = ([name, value]) => !(Math.abs(paid.get(name) - value) < 1e-9);
  const also = ([name, value]) => {
    const [words, title] = partOf(method, name);
    return [paid.has(name) ? `${words} before weighting` : words, title, COUNTS.has(name) ? String(Math.round(value)) : number(value)];
  };
  return {paid: [...paid].map(([name, value]) => [name, value, ...partOf(method, name)]), also: Object.entries(found.parts).filter(differs).map(also)};
}

const failed = (what, error) => h("p", {class: isFailure(error) ? "tv-failure" : "tv-small tv-lacking"}, h("b", {}, `${what}: `), reasonOf(error));

function toolbar(state, values, refresh) {
  const {data} = state;
  const turn = (name, value) => () => ((state[name] = value), refresh());
  const method = ([name, found]) => {
    const value = span(`tv-tab-value tv-value-${tone(found.value || 0)}`, found.value === null ? "n/a" : signed(found.value));
    const more = {"aria-pressed": String(name === state.method), "data-method": name, title: found.error && `not scored: ${found.error.message}`};
    return button("tv-tab", [nameOf(name), value], turn("method", name), more);
  };
  const channel = ([name, words, meaning]) => {
    const off = values(name) ? null : WHY_OFF[name];
    const more = {"aria-pressed": String(name === state.channel), "data-channel": name, disabled: Boolean(off), title: off || meaning};
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
  const known = Object.keys((own(state.data.methods, state.method) || {}).advantages || {});
  const option = (name) => h("option", {value: name, selected: name === state.estimator, title: estimatorOf(name)[1]}, estimatorOf(name)[0]);
  const change = (event) => ((state.estimator = event.target.value), refresh());
  return h("label", {class: "tv-small"}, "estimator ", select("advantage estimator", "tv-select", change, known.map(option)));
}

function legend(state, {most, centre}) {
  if (most === null) return [small(state.method ? `${nameOf(state.method)} rewards no token here.` : "No method has scored this answer.")];
  const sequential = state.channel === "logprob";
  const [low, high] = sequential ? ["0", number(-most)] : [number(centre - most), number(centre + most)];
  const label = sequential ? "darker is less likely" : "orange and underlined is negative, blue is positive";
  const ramp = h("span", {class: `tv-ramp${sequential ? " tv-ramp-seq" : ""}`, role: "img", "aria-label": label});
  const seen = [...new Set(state.data.claims.filter((claim) => claim.span).map(labelOf))];
  const key = (name) => h("span", {class: "tv-key", title: meaningOf(name)}, span(`tv-key-line tv-key-${lineOf(name)}`), wordsOf(name));
  return [
    span("tv-scale", span("", low), ramp, span("", high)),
    sequential ? null : span("tv-small tv-under", "negative"),
    seen.length ? span("tv-keys", small("claims:"), seen.map(key)) : null,
  ].filter(Boolean);
}

// Claims that the text does not show: not found in it, or not checked because of a failure.
function notes(state, choose) {
  const lost = state.data.claims.filter((claim) => !claim.placed), broken = state.data.claims.filter((claim) => claim.error);
  const line = (words) => (claim) =>
    h("li", {}, button("tv-link", String(claim.id + 1), () => choose(claim.id)), ` “${claim.text}” — ${words(claim)}`);
  const list = (title, claims, words, more = "") =>
    claims.length ? div(`tv-note${more}`, h("b", {}, title), h("ul", {}, claims.map(line(words)))) : null;
  return [
    list("Not placed in the text", lost, (claim) => `rewarded at the end of ${claim.sentence === null ? "the response" : "its sentence"}`),
    list("Could not be checked", broken, (claim) => reasonOf(claim.error), " tv-note-failed"),
  ].filter(Boolean);
}

// The values of a token: in its tooltip, and next to the text when it is selected.
function tokenFacts(state, drawn, index) {
  const {data} = state, [start, end] = data.tokens[index];
  const rows = CHANNELS.map(([name, words]) => [name === "advantage" ? `advantage, ${estimatorOf(state.estimator)[0]}` : words.toLowerCase(), name])
    .map(([words, name]) => [words, series(data, state.method, name, state.estimator)])
    .filter(([, numbers]) => numbers)
    .map(([words, numbers]) => div("tv-tip-row", span("", words), h("b", {}, signed(numbers[index], 3))));
  const events = state.method ? data.methods[state.method].events.filter((event) => covers(event, index)) : [];
  const claim = (event) => (event.claim === null ? "" : ` · claim ${event.claim + 1}`);
  const shown = start === end ? specialMark(data, index) : visible(drawn.characters.slice(start, end).join(""));
  return [
    div("tv-tip-head", h("code", {}, shown), span("", `${index + 1} / ${data.tokens.length}`)),
    ...rows,
    ...events.map((event) => div("tv-tip-event", `${partOf(state.method, event.part)[0]} ${signed(event.value)}${claim(event)}`)),
  ];
}

// Next to the text: the method's reward by parts, and the values of the selected token.
function payment(state, {claims, choose, drawn}) {
  const found = own(state.data.methods, state.method);
  const cards = found ? [paymentCard(state.method, found)] : [];
  return state.token === null ? cards : [...cards, tokenCard(state, claims, choose, drawn)];
}

function paymentCard(method, found) {
  const {paid, also} = partsOf(method, found);
  const most = Math.max(1e-9, ...paid.map(([, value]) => Math.abs(value)));
  const row = ([, value, words, title]) => {
    const bar = span(`tv-fill tv-fill-${tone(value)}`);
    bar.style.setProperty("--w", `${(50 * Math.abs(value)) / most}%`);
    return h("div", {class: "tv-bar-row", title}, span("", words), span("tv-bar-track", bar), h("b", {}, signed(value)));
  };
  const line = ([words, title, value]) => h("div", {class: "tv-also-row", title}, span("", words), h("b", {}, value));
  return h("section", {class: "tv-card"}, h("h4", {}, `${nameOf(method)} reward`),
    div(`tv-big tv-value-${tone(found.value || 0)}`, found.value === null ? "not scored" : signed(found.value)),
    found.error ? failed("Why", found.error) : null, paid.map(row), also.length ? div("tv-also", also.map(line)) : null);
}

function tokenCard(state, claims, choose, drawn) {
  const linked = state.data.claims.filter((claim) => claims(state.token).includes(claim.id));
  const line = (claim) => button("tv-claim-link", [h("b", {}, String(claim.id + 1)), ` ${claim.text}`], () => choose(claim.id));
  return h("section", {class: "tv-card tv-token-card", "aria-live": "polite"}, h("h4", {}, `Token ${state.token + 1}`),
    tokenFacts(state, drawn, state.token), linked.length ? linked.map(line) : h("p", {class: "tv-small"}, "It belongs to no claim."));
}

// Verdicts on anything but the truth of claims: checklist facts, other checks of claims and sentences, the whole answer.
const CHECK_GROUPS = [["answer", "The answer as a whole"], ["checklist", "Facts that the answer should state"], ["parts", "Single claims and sentences"]];

function checkCard({checks}) {
  if (!checks.length) return [];
  const by = [...new Set(checks.map((check) => check.by).filter(Boolean))].map(judgeOf).join(", ");
  const title = (check) => (check.label === "correct" && check.group === "answer" ? OUTCOME_CORRECT : undefined);
  const found = (check) =>
    check.error || check.label ? chip(labelOf(check), check.error ? reasonOf(check.error) : title(check)) : h("b", {}, `${check.measure} ${fixed(check.p)}`);
  const why = (check) => (isFailure(check.error) ? span("tv-small tv-error-text tv-check-why", reasonOf(check.error)) : null);
  const line = (check) => div("tv-check", h("span", {dir: "auto"}, check.words), found(check), why(check));
  const part = ([group, words]) => {
    const here = checks.filter((check) => check.group === group);
    const head = here.length < checks.length ? h("h5", {}, words) : null;
    return here.length ? [head, div("tv-checks-list", here.map(line))] : [];
  };
  const head = h("h4", {}, span("", "Other checks"), by ? small(`judged by ${by}`) : null);
  return [h("section", {class: "tv-card"}, head, CHECK_GROUPS.flatMap(part))];
}
