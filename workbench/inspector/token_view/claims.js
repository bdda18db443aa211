// The claims table. Its columns add up, because rewards without a claim have their own row above the total.

function claimTable(state, {select: choose, edit, refresh}) {
  const {data} = state, methods = Object.keys(data.methods);
  if (!data.claims.length) {
    const why = data.sentences.length ? "This answer makes no claims." : "No claims were extracted from this answer.";
    return h("p", {class: "tv-small tv-none"}, why);
  }
  const style = (method, more = "") => `tv-num${method === state.method ? " tv-now" : ""}${more}`;
  const cell = (method, content, more) => h("td", {class: style(method, more), "data-label": nameOf(method)}, content);
  const paid = (method, id) => {
    const events = paidFor(data.methods[method], id);
    if (!events.length) return cell(method, span("tv-dim", "·"), " tv-nothing");
    const title = events.map((event) => `${partOf(method, event.part)[0]} ${signed(event.value, 3)}`).join(", ");
    return cell(method, worth(events.reduce((sum, event) => sum + event.value, 0), {title}));
  };
  const total = (method) => {
    const {value, error} = data.methods[method];
    return cell(method, value === null ? h("span", {class: "tv-dim", title: error && `not scored: ${error.message}`}, "n/a") : h("b", {}, worth(value)));
  };
  const closing = (words, more, cells) =>
    h("tr", {class: `tv-sum${more}`}, h("td"), h("td", {}, words), h("td"), h("td"), methods.map(cells), h("td"));

  const pays = (method) => [nameOf(method), `reward of the claim by ${nameOf(method)}`];
  const heads = ["#", "Claim", "Verdict", ["Informative", INFORMATIVE], ...methods.map(pays), ["Evidence", EVIDENCE]];
  const headStyle = (index) => (methods[index - 4] ? style(methods[index - 4]) : null);
  const caption = h("caption", {class: "tv-hidden"}, "claims, their verdicts and their rewards by every method");
  const table = div("tv-table-frame", h("table", {class: "tv-table"}, caption, columnHeads(heads, headStyle), h("tbody", {},
    shownClaims(state).map((claim) => claimRow(claim, {choose, edit, rewards: methods.map((method) => paid(method, claim.id))})),
    closing("without a claim", "", (method) => paid(method, null)),
    closing("total", " tv-total", total))));
  return div("", data.claims.length > FEW ? claimBar(state, refresh) : null, table, glossary(data));
}

// Mark another method's column in the same table.
function turnClaims(part, state, refresh) {
  const methods = Object.keys(state.data.methods), bar = part.querySelector(".tv-claim-bar");
  if (bar) keepFocus(part, () => bar.replaceWith(claimBar(state, refresh)));
  for (const {cells} of part.querySelectorAll("tr")) methods.forEach((method, index) => cells[4 + index].classList.toggle("tv-now", method === state.method));
}

const FEW = 5; // up to this number, claims are neither filtered nor sorted
const earned = (state, id) => eventsOf(state, id).reduce((sum, event) => sum + event.value, 0);

// The claims with the selected label, in the selected order; claims with equal rewards keep their order.
function shownClaims(state) {
  const {claims} = state.data;
  if (claims.length <= FEW) return claims;
  if (!claims.some((claim) => labelOf(claim) === state.show)) state.show = "";
  const like = state.show ? claims.filter((claim) => labelOf(claim) === state.show) : claims;
  if (!state.order) return like;
  const sign = state.order === "lowest" ? 1 : -1, paid = new Map(like.map((claim) => [claim.id, earned(state, claim.id)]));
  return [...like].sort((a, b) => sign * (paid.get(a.id) - paid.get(b.id)));
}

function claimBar(state, refresh) {
  const {claims} = state.data, count = (label) => claims.filter((claim) => labelOf(claim) === label).length;
  const labels = [...new Set(claims.map(labelOf))];
  const option = (now) => ([value, words]) => h("option", {value, selected: value === now}, words);
  const turn = (name) => (event) => ((state[name] = event.target.value), refresh());
  const shown = [["", `all ${claims.length} claims`], ...labels.map((label) => [label, `${wordsOf(label)} only (${count(label)})`])];
  const orders = [["", "as in the answer"], ["lowest", `${nameOf(state.method)}, lowest first`], ["highest", `${nameOf(state.method)}, highest first`]];
  return div("tv-claim-bar", select("which claims", "tv-select", turn("show"), shown.map(option(state.show))),
    select("order of the claims", "tv-select", turn("order"), orders.map(option(state.order))));
}

const INFORMATIVE = "1: repeated or useless, 2: supplementary, 3: relevant, 4: crucial, 5: answers the question";
const EVIDENCE = "the passage that the judge read, with its sentence nearest to the claim; shared words are marked";

// The meanings of the table's labels and columns.
function glossary({claims}) {
  const shown = Object.keys(LABELS).filter((label) => claims.some((claim) => labelOf(claim) === label));
  const term = (word, meaning) => [h("b", {}, word), ` ${meaning}. `];
  return h("p", {class: "tv-small tv-glossary"},
    shown.flatMap((label) => term(`${wordsOf(label)}:`, meaningOf(label))),
    claims.some((claim) => claim.p !== null) ? term("P(true):", "the judge's probability that the claim is true") : null,
    claims.some((claim) => claim.informativeness !== null) ? term("Informative:", INFORMATIVE) : null,
    claims.some((claim) => claim.evidence.length) ? term("Evidence:", EVIDENCE) : null,
    claims.some((claim) => claim.by === "local") ? [h("b", {}, "Limits: "), LOCAL_LIMITS] : null);
}

function claimRow(claim, {choose, edit, rewards}) {
  const verdict = edit ? labelSelect(claim, edit) : chip(labelOf(claim), claim.error ? reasonOf(claim.error) : undefined);
  const sure = claim.p === null ? null : div("tv-small tv-p", `P(true) ${fixed(claim.p)}`);
  const notes = claim.notes.map((note) => div("tv-small tv-note", note));
  const row = h("tr", {
    "data-claim": claim.id, tabindex: "0", "aria-selected": "false",
    onclick: (event) => event.target.closest("select, summary, a, button") || choose(claim.id),
    onkeydown: (event) => event.target === row && ["Enter", " "].includes(event.key) && (event.preventDefault(), choose(claim.id)),
  },
  h("td", {class: "tv-id", "data-label": "claim"}, String(claim.id + 1)),
  h("td", {class: "tv-claim"}, h("div", {dir: "auto"}, claim.text), matched(claim)),
  h("td", {class: "tv-label", "data-label": "verdict"}, verdict, sure, notes, personal(claim)),
  h("td", {class: "tv-info", "data-label": "informative"}, edit ? infoSelect(claim, edit) : dots(claim.informativeness)),
  rewards,
  h("td", {class: "tv-evidence"}, evidence(claim)));
  return row;
}

// A person's label of the claim, and whether it agrees with the judge's.
function personal(claim) {
  if (!claim.person) return null;
  const judged = own(LABELS, claim.label) && claim.by !== "annotation", agree = claim.person === claim.label;
  return div("tv-person", small("a person: "), chip(claim.person), judged ? small(agree ? " agrees" : " disagrees") : null);
}

// The claim's match in the text, and the share of its words.
function matched(claim) {
  if (!claim.placed) return div("tv-small tv-where", span("tv-tag", "not placed"), claim.matched ? ` nearest: “${claim.matched}”` : "");
  const tag = claim.section === "body" ? null : span("tv-tag", claim.section);
  const share = claim.coverage !== null && claim.coverage < 1 ? ` (${Math.round(100 * claim.coverage)} % of its words)` : "";
  return div("tv-small tv-where", tag, "in the text: ", h("q", {dir: "auto"}, claim.matched), share);
}

function labelSelect(claim, edit) {
  const now = labelOf(claim), known = CLAIM_LABELS;
  const names = known.includes(now) ? known : [now, ...known];
  const option = (name) => h("option", {value: name, selected: name === now, disabled: !known.includes(name)}, wordsOf(name));
  const style = `tv-select${claim.edited ? " tv-edited" : ""}`;
  return select(`verdict on claim ${claim.id + 1}`, style, (event) => edit(claim.id, {label: event.target.value}), names.map(option));
}

function infoSelect(claim, edit) {
  const values = [1, 2, 3, 4, 5], now = claim.informativeness;
  const options = values.map((value) => h("option", {value, selected: value === now}, String(value)));
  if (now === null) options.unshift(h("option", {value: "", selected: true, disabled: true}, "–"));
  const change = (event) => edit(claim.id, {informativeness: Number(event.target.value)});
  return select(`informativeness of claim ${claim.id + 1}`, "tv-select", change, options);
}

function dots(count) {
  if (count === null) return span("tv-dim", "·");
  const title = `informativeness ${count} of 5`;
  const row = Array.from({length: 5}, (_, index) => h("i", {class: index < count ? "tv-dot tv-dot-on" : "tv-dot"}));
  return h("span", {class: "tv-dots", role: "img", "aria-label": title, title}, row);
}

// Passages with the quoted evidence, and its words that occur in the claim.
function evidence(claim) {
  if (claim.error) return span("tv-small tv-error-text", reasonOf(claim.error));
  if (!claim.evidence.length) return span("tv-dim", claim.by ? `judged by ${judgeOf(claim.by)}` : "·");
  const piece = ([text, level]) => (level === 2 ? h("mark", {}, text) : level === 1 ? span("tv-quoted", text) : text);
  return claim.evidence.map((item) =>
    h("details", {}, h("summary", {}, h("b", {}, item.title), quote(item)), h("p", {dir: "auto"}, item.parts.map(piece))));
}

// The quoted sentence, or else the beginning of the text: what is seen before the passage is opened.
function quote({parts}) {
  const quoted = parts.filter(([, level]) => level).map(([text]) => text).join("");
  const text = parts.some(([, level]) => level === 1) ? quoted : parts.map(([piece]) => piece).join("");
  return text.trim() ? h("q", {class: "tv-quote", dir: "auto"}, text.trim()) : null;
}
