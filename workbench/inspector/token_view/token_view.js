// The token view: one response, what each claim earned, and which tokens earned it.
// Everything that comes from a model or a file becomes a text node: nothing here parses HTML or loads anything.

const CLIP = 0.2; // ratios outside 1 ± CLIP are outlined as clipped
const LANES = 3; // claims that overlap more deeply are shown when selected

function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.className = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

const div = (style, ...children) => h("div", {class: style}, ...children);
const span = (style, ...children) => h("span", {class: style}, ...children);
const small = (...children) => span("tv-small", ...children);
const button = (style, words, onclick, more) => h("button", {type: "button", class: style, onclick, ...more}, words);
const select = (label, style, onchange, options) => h("select", {class: style, "aria-label": label, onchange}, options);
// A head is a text, or a text with its meaning.
const columnHeads = (names, styles = () => null) => h("thead", {}, h("tr", {}, names.map((head, index) => {
  const [name, title] = [head].flat();
  return h("th", {scope: "col", class: styles(index), title}, name);
})));

function number(value, digits = 2) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size < 0.5 * 10 ** -digits) return size < 1e-12 ? "0" : `${value < 0 ? "−" : ""}${size.toExponential(1)}`;
  return (value < 0 ? "−" : "") + size.toFixed(digits);
}

const fixed = (value, digits = 2) => (value === null || value === undefined ? "–" : value.toFixed(digits)); // of shares, 0.00 to 1.00
const percent = (value) => (value === null || value === undefined ? "–" : `${number(100 * value, 1)}%`);
const signed = (value, digits) => (value > 1e-12 ? "+" : "") + number(value, digits);
const tone = (value) => (value > 1e-12 ? "pos" : value < -1e-12 ? "neg" : "nil");
const worth = (value, more) => h("span", {class: `tv-value-${tone(value)}`, ...more}, Math.abs(value) < 1e-12 ? fixed(0) : signed(value));
const lineOf = (label) => (own(LABELS, label) ? label.replace("_", "-") : "unchecked");
const visible = (text) => text.replace(/\n/g, "↵").replace(/\t/g, "⇥").replace(/ /g, "·");

function chip(label, title = meaningOf(label)) {
  const [glyph, words] = entryOf(label);
  const kind = GOOD.has(label) ? "good" : BAD.has(label) ? "bad" : label === "failed" ? "failed" : "plain";
  return h("span", {class: `tv-chip tv-${kind}`, title}, h("span", {class: "tv-glyph", "aria-hidden": "true"}, glyph), " ", words);
}

// The numbers that a channel shows, one for each token; null where it has none.
function series(data, method, channel, estimator) {
  const found = own(data.methods, method);
  if (channel === "reward") return found && found.tokens.length ? found.tokens : null;
  if (channel === "advantage") return (found && found.advantages && own(found.advantages, estimator)) || null;
  const stored = data.channels[channel];
  return stored && stored.length ? stored : null;
}

// Claims to lanes under the text, so that overlapping ones do not hide each other.
function lanesOf(claims) {
  const ends = [], lanes = new Map();
  const placed = claims.filter((claim) => claim.span).sort((a, b) => a.span[0] - b.span[0] || b.span[1] - a.span[1]);
  for (const claim of placed) {
    let lane = ends.findIndex((end) => end <= claim.span[0]);
    if (lane < 0) lane = ends.length;
    if (lane >= LANES) continue;
    ends[lane] = claim.span[1];
    lanes.set(claim.id, lane);
  }
  return {lanes, count: ends.length};
}

// The text as elements: a span for each token, cut where sentences and claims begin and end so that bands can be drawn under it.
function drawText(pane, data, {bands = true} = {}) {
  const characters = Array.from(data.text); // positions count code points
  const {lanes, count} = bands ? lanesOf(data.claims) : {lanes: new Map(), count: 0};
  const spans = bands ? data.claims.filter((claim) => claim.span) : [];
  const cuts = new Set([0, characters.length]);
  for (const [start, end] of [...(bands ? data.sentences : []), ...spans.map((claim) => claim.span)]) cuts.add(start).add(end);
  const marks = [...cuts].sort((a, b) => a - b);
  const elements = [], claimsAt = [], fragment = document.createDocumentFragment();
  let position = 0, next = 0, sentence = 0;

  function pieces(parent, start, end) {
    while (next < marks.length && marks[next] <= start) next += 1;
    for (let from = start, at = next; from < end; at += 1) {
      const to = Math.min(end, at < marks.length ? marks[at] : end);
      parent.append(piece(from, to));
      from = to;
    }
  }
  function piece(from, to) {
    const element = h("span", {class: "tv-s"}, characters.slice(from, to).join(""));
    while (sentence < data.sentences.length && data.sentences[sentence][1] <= from) sentence += 1;
    const inside = sentence < data.sentences.length && data.sentences[sentence][0] <= from;
    const here = spans.filter((claim) => claim.span[0] <= from && claim.span[1] >= to);
    const lines = here.filter((claim) => lanes.has(claim.id)).map((claim) => [labelOf(claim), lanes.get(claim.id)]);
    if (bands && (inside || lines.length)) paintBands(element, inside, lines, count);
    return element;
  }

  data.tokens.forEach(([start, end], index) => {
    if (start > position) pieces(fragment, position, start);
    const element = h("span", {class: "tv-t", role: "option", "data-t": index, "aria-selected": "false"});
    if (start === end) element.append(h("span", {class: "tv-mark"}, specialMark(data, index)));
    else pieces(element, start, end);
    const text = characters.slice(start, end).join("");
    if (start < end && !text.trim()) element.classList.add(text.includes("\n") ? "tv-newline" : "tv-space");
    claimsAt.push(spans.filter((claim) => claim.span[0] < end && claim.span[1] > start).map((claim) => claim.id));
    fragment.append(element);
    elements.push(element);
    position = Math.max(position, end);
  });
  if (position < characters.length) pieces(fragment, position, characters.length);
  pane.style.setProperty("--tv-lanes", count);
  pane.replaceChildren(fragment);
  return {elements, claimsAt, characters};
}

function specialMark(data, index) {
  const last = index === data.tokens.length - 1;
  if (last && data.finish === "stop") return "end";
  return data.ids.length ? `#${data.ids[index]}` : "∅";
}

// Thin lines under a piece: the sentence's on top, then one lane for each claim, in the colour and pattern of its label.
function paintBands(element, sentence, lines, count) {
  const images = [], places = [];
  if (sentence) {
    images.push("linear-gradient(var(--tv-band) 0 0)");
    places.push(`0 calc(100% - ${4 * count}px)`);
  }
  for (const [label, lane] of lines) {
    images.push(`var(--tv-line-${lineOf(label)}, var(--tv-line-unchecked))`);
    places.push(`0 calc(100% - ${4 * (count - 1 - lane)}px)`);
  }
  element.style.backgroundImage = images.join(",");
  element.style.backgroundPosition = places.join(",");
  element.style.backgroundSize = images.map((_, index) => `100% ${sentence && !index ? 1 : 2.5}px`).join(",");
  element.style.backgroundRepeat = "no-repeat";
}

// Colour tokens by their numbers, which --a has as shares of the largest: blue above zero, orange and underlined below; log-probabilities in one shade of grey.
function paint(elements, values, channel) {
  const centre = channel === "ratio" ? 1 : 0;
  const sizes = (values || []).map((value) => Math.abs(value - centre));
  const most = Math.max(1e-9, ...sizes.slice(0, 100000));
  elements.forEach((element, index) => {
    const value = values ? values[index] : null;
    const given = value !== null && value !== undefined && sizes[index] > 1e-9;
    const kind = !given ? "" : channel === "logprob" ? "tv-seq" : value > centre ? "tv-pos" : "tv-neg";
    element.classList.remove("tv-seq", "tv-pos", "tv-neg", "tv-clipped");
    if (kind) element.classList.add(kind);
    if (given && channel === "ratio" && sizes[index] > CLIP) element.classList.add("tv-clipped");
    if (given) element.style.setProperty("--a", (sizes[index] / most).toFixed(3));
    else element.style.removeProperty("--a");
  });
  return {most: values ? Math.max(0, ...sizes.slice(0, 100000)) : null, centre};
}
