// The view around the text: methods, channels, tooltip, payment, claims. `tokenView(root)` returns {update, select, state}.

const PARTS = ["head", "bar", "legend", "notes", "checks", "pay", "claims"];

function tokenView(root, options = {}) {
  const state = {data: null, method: null, channel: "reward", estimator: "group", claim: null, token: null, show: "", order: "", passages: false};
  const text = h("div", {class: "tv-text", role: "listbox", tabindex: "0", "aria-label": "the answer, token by token", dir: "auto"});
  const tip = h("div", {class: "tv-tip", role: "tooltip", id: `tv-tip-${(tokenView.count = (tokenView.count || 0) + 1)}`, hidden: true});
  const parts = Object.fromEntries(PARTS.map((name) => [name, div(`tv-${name}`)]));
  const main = div("tv-main", parts.bar, div("tv-pane", text), parts.legend, parts.notes);
  const [side, below] = options.compact ? [[], []] : [[parts.pay, parts.checks], [parts.claims]];
  const view = div(`tv${options.compact ? " tv-compact" : ""}`, parts.head, div("tv-columns", main, side), below, tip);
  root.replaceChildren(view);
  let drawn = {elements: [], claimsAt: [], characters: []}, shape = "", cursor = 0, shown = null, listed = "";

  const values = (channel = state.channel) => series(state.data, state.method, channel, state.estimator);

  function update(data) {
    const same = state.data && data && state.data.key === data.key;
    state.data = data;
    view.classList.toggle("tv-empty", !data);
    if (!data) return;
    const methods = Object.keys(data.methods);
    if (options.method) state.method = options.method;
    else if (!methods.includes(state.method) || (!same && data.method)) state.method = data.method || methods[0] || null;
    if (!same) [state.claim, state.token, cursor] = [null, null, 0];
    const now = JSON.stringify([data.key, data.text, data.tokens, data.sentences, data.claims.map((c) => [c.span, labelOf(c)])]);
    if (now !== shape) drawn = drawText(text, data, {bands: !options.compact});
    shape = now;
    tip.hidden = true;
    refresh();
  }

  function refresh() {
    const {data} = state;
    if (!values()) state.channel = CHANNELS.map(([name]) => name).find((name) => values(name)) || "reward";
    const scale = paint(drawn.elements, values(), state.channel);
    const fresh = data !== shown;
    shown = data;
    if (fresh || options.compact) parts.head.replaceChildren(...(options.compact ? compactHead(state) : viewHead(state)));
    if (!options.compact) {
      keepFocus(parts.bar, () => parts.bar.replaceChildren(...toolbar(state, values, refresh)));
      parts.legend.replaceChildren(...legend(state, scale));
      drawClaims(fresh);
    }
    if (fresh && !options.compact) {
      parts.notes.replaceChildren(...notes(state, select));
      parts.checks.replaceChildren(...checkCard(data));
    }
    mark();
    if (options.onState) options.onState(state);
  }

  // A long answer has hundreds of claims, so their table is rebuilt only for other claims or another order.
  function drawClaims(fresh) {
    const order = shownClaims(state).map((claim) => claim.id).join();
    const build = () => parts.claims.replaceChildren(claimTable(state, {select, edit: options.onEdit, refresh}));
    if (fresh || order !== listed) keepFocus(parts.claims, build);
    else turnClaims(parts.claims, state, refresh);
    listed = order;
  }

  // Outline the selected claim or token in the text and in the table, and describe it next to the text.
  function mark() {
    const claim = state.data.claims.find((one) => one.id === state.claim);
    const paid = new Set(claim ? eventsOf(state, claim.id).map((event) => event.token) : []);
    const linked = new Set(state.token === null ? [state.claim] : claimsOfToken(state.token));
    text.classList.toggle("tv-focus", Boolean(claim && (claim.span || paid.size)));
    drawn.elements.forEach((element, index) => {
      const on = claim ? drawn.claimsAt[index].includes(claim.id) : false;
      element.classList.toggle("tv-on", on);
      element.classList.toggle("tv-paid", paid.has(index));
      element.classList.toggle("tv-picked", index === state.token);
      element.setAttribute("aria-selected", String(on || index === state.token));
    });
    for (const row of parts.claims.querySelectorAll("[data-claim]")) {
      const on = linked.has(Number(row.dataset.claim));
      row.classList.toggle("tv-row-on", on);
      row.setAttribute("aria-selected", String(on));
      if (on && state.token === null) row.querySelectorAll("details").forEach((details) => (details.open = true));
    }
    if (!options.compact) parts.pay.replaceChildren(...payment(state, {claims: claimsOfToken, choose: select, drawn}));
  }

  function claimsOfToken(index) {
    const events = state.method ? state.data.methods[state.method].events : [];
    const here = events.filter((event) => event.claim !== null && covers(event, index)).map((event) => event.claim);
    return [...new Set([...(drawn.claimsAt[index] || []), ...here])];
  }

  function select(id) {
    [state.claim, state.token] = [state.claim === id && state.token === null ? null : id, null];
    mark();
    const claim = state.data.claims.find((one) => one.id === state.claim);
    const paid = claim && eventsOf(state, claim.id)[0];
    const within = claim && drawn.elements.find((_, index) => drawn.claimsAt[index].includes(claim.id));
    const first = within || (paid && drawn.elements[paid.token]);
    if (first) reveal(first);
    if (options.onSelect) options.onSelect({claim: state.claim, token: null});
  }

  function pick(index) {
    [state.token, state.claim] = [state.token === index ? null : index, null];
    mark();
    const row = state.token === null ? null : parts.claims.querySelector(".tv-row-on");
    if (row) row.scrollIntoView({block: "nearest", behavior: "auto"});
    if (options.onSelect) options.onSelect({claim: null, token: state.token});
  }

  function reveal(element) {
    const box = text.getBoundingClientRect(), at = element.getBoundingClientRect();
    if (at.top < box.top || at.bottom > box.bottom) text.scrollTop += at.top - box.top - box.height / 3;
    if (box.bottom < 60 || box.top > window.innerHeight - 60) text.scrollIntoView({block: "center", behavior: "auto"});
  }

  function hint(index) {
    const element = drawn.elements[index];
    tip.replaceChildren(...tokenFacts(state, drawn, index));
    tip.hidden = false;
    element.setAttribute("aria-describedby", tip.id);
    const frame = view.getBoundingClientRect(), at = element.getClientRects()[0] || element.getBoundingClientRect();
    const left = Math.max(0, Math.min(at.left - frame.left, frame.width - tip.offsetWidth));
    const below = at.bottom - frame.top + 8;
    const fits = at.bottom + 8 + tip.offsetHeight < window.innerHeight;
    tip.style.left = `${left}px`;
    tip.style.top = `${fits ? below : at.top - frame.top - tip.offsetHeight - 8}px`;
  }

  const indexOf = (event) => {
    const token = event.target.closest ? event.target.closest(".tv-t") : null;
    return token ? Number(token.dataset.t) : null;
  };
  const focusOn = (index) => {
    if (!drawn.elements.length) return;
    drawn.elements.forEach((element) => element.classList.remove("tv-cursor"));
    cursor = Math.max(0, Math.min(index, drawn.elements.length - 1));
    drawn.elements[cursor].classList.add("tv-cursor");
    drawn.elements[cursor].id = `${tip.id}-cursor-${cursor}`;
    text.setAttribute("aria-activedescendant", drawn.elements[cursor].id);
    reveal(drawn.elements[cursor]);
    hint(cursor);
  };
  const paidFrom = (from, step) => {
    const numbers = values() || [];
    for (let at = from + step; at >= 0 && at < numbers.length; at += step) if (Math.abs(numbers[at]) > 1e-9) return at;
    return from;
  };
  text.addEventListener("pointerover", (event) => indexOf(event) !== null && hint(indexOf(event)));
  text.addEventListener("pointerleave", () => (tip.hidden = true));
  text.addEventListener("click", (event) => indexOf(event) !== null && ((cursor = indexOf(event)), pick(cursor)));
  text.addEventListener("focus", () => text.matches(":focus-visible") && focusOn(cursor));
  text.addEventListener("blur", () => {
    tip.hidden = true;
    drawn.elements.forEach((element) => element.classList.remove("tv-cursor"));
  });
  text.addEventListener("keydown", (event) => {
    const moves = {
      ArrowRight: () => focusOn(cursor + 1), ArrowLeft: () => focusOn(cursor - 1), Home: () => focusOn(0), End: () => focusOn(Infinity),
      ArrowDown: () => focusOn(paidFrom(cursor, 1)), ArrowUp: () => focusOn(paidFrom(cursor, -1)),
      Enter: () => pick(cursor), " ": () => pick(cursor), Escape: () => (tip.hidden = true),
    };
    if (moves[event.key]) (event.preventDefault(), moves[event.key]());
  });
  return {update, select, pick, state, refresh};
}

// Rebuild a part of the page; the keyboard focus moves to the same control of the new part.
function keepFocus(part, rebuild) {
  const focused = part.contains(document.activeElement) ? document.activeElement : null;
  const name = focused && ["aria-label", "data-claim", "data-method", "data-channel", "data-name"].find((one) => focused.hasAttribute(one));
  const value = name && focused.getAttribute(name);
  rebuild();
  const found = name && [...part.querySelectorAll(`[${name}]`)].find((one) => one.getAttribute(name) === value);
  if (found) found.focus({preventScroll: true});
}

const covers = (event, index) => (event.from === null ? event.token === index : event.from <= index && index <= event.token);
const eventsOf = (state, id) => (state.method ? paidFor(state.data.methods[state.method], id) : []);

// The reward events of a claim (null: without a claim), grouped once for all claims of an answer.
const grouped = new WeakMap();
function paidFor(found, id) {
  if (!grouped.has(found)) {
    const byClaim = new Map();
    for (const event of found.events) byClaim.has(event.claim) ? byClaim.get(event.claim).push(event) : byClaim.set(event.claim, [event]);
    grouped.set(found, byClaim);
  }
  return grouped.get(found).get(id) || [];
}
