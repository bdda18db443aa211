// Compare the open answer with an answer to the same prompt from another step or run, word by word.

function comparisonView(gradio, tab) {
  const bar = div("wb-filters"), status = h("p", {class: "tv-small", role: "status"}), out = h("div");
  const root = h("section", {class: "tv wb-same"}, h("h4", {}, "The same prompt in another step or run"), bar, status, out);
  let at, asked = null, other = {}, method = null, turn = 0;

  async function ask(change) {
    const mine = ++turn;
    other = {...other, ...change};
    if (!out.children.length) status.textContent = "Looking for other answers to this prompt…"; // a large run is read first
    const found = await gradio.server.other_answer({...at, other});
    if (mine !== turn) return; // a newer request is pending
    if (found.error) return (status.textContent = found.error), out.replaceChildren();
    draw(JSON.parse(found.text));
  }

  function draw(data) {
    const scored = (name) => [data.first, data.second].some((side) => side && known(own(side.values, name)));
    const methods = Object.keys(data.first.values).filter((name) => own(NAMES, name) && scored(name));
    if (!methods.includes(method)) method = methods[0] || null;
    const again = (name) => ((method = name), draw(data));
    const choice = (words, value, options, change) =>
      h("label", {}, `${words} `, select(words, "tv-select", (event) => change(event.target.value), options.map(([key, text]) => h("option", {value: key, selected: key === value}, text))));
    const step = (one) => [String(one), one === null ? "without steps" : String(one)];
    keepFocus(bar, () => bar.replaceChildren(
      choice("Compare with run", data.run, data.runs.map((name) => [name, name]), (run) => ask({run, step: undefined, id: undefined})),
      data.steps.length ? choice("step", String(data.step), data.steps.map(step), (one) => ask({run: data.run, step: one === "null" ? null : Number(one), id: undefined})) : "",
      choice("rewards by", method, methods.map((name) => [name, nameOf(name)]), again)));
    status.textContent = data.note || "";
    if (!data.second) return out.replaceChildren();
    const first = (row) => ((at = {...at, id: row.id}), ask({}));
    const sides = [[data.first, 1, first, "Open answer"], [data.second, 2, (row) => ask({run: data.run, step: data.step, id: row.id}), "Other answer"]];
    out.replaceChildren(
      h("p", {class: "tv-small"}, ...differenceWords(data)),
      div("wb-two", sides.map(([side, place, , title]) => answerSide(side, title, data.pieces, place, method))),
      paidTable(data, methods),
      div("wb-two", sides.map(([side, , open]) => div("wb-side-group", groupTable(side.group, method, open)))));
  }

  // Requested when the tab is first visible, so that opening an answer elsewhere stays fast.
  const start = () => {
    if (!tab.offsetParent || asked === at) return;
    asked = at;
    if (at) ask({}).catch(() => null);
  };
  new IntersectionObserver(start).observe(tab);
  function open(data) {
    const query = new URLSearchParams((data && data.link) || ""), [run, id] = [query.get("run"), query.get("id")];
    const row = run === null ? null : {run, id};
    if (JSON.stringify(row) === JSON.stringify(at)) return;
    [at, other, method] = [row, {}, data && data.method];
    turn += 1;
    [bar, out].forEach((part) => part.replaceChildren());
    status.textContent = at ? "" : "This answer does not belong to a stored run, so there is nothing to compare with. Open one under Runs.";
    start();
  }
  return {root, open};
}

function differenceWords({by, pieces}) {
  const words = {words: "word by word", texts: "as a whole, because they are too long for a comparison by words"}[by];
  if (pieces.every(([same]) => same)) return ["Both answers are the same, except for white space."];
  return [`Compared ${words}. `, h("del", {}, "Only in the first"), " · ", h("ins", {}, "only in the second"), "."];
}

function answerSide(side, title, pieces, place, method) {
  const piece = (one) => (one[0] ? one[place] : one[place] ? h(place === 1 ? "del" : "ins", {}, one[place]) : null);
  const value = own(side.values, method), missing = value === null || value === undefined;
  const where = [side.run, side.step === null ? null : `step ${side.step}`, side.id].filter(Boolean);
  return h("section", {class: "wb-panel", "aria-label": title},
    div("tv-compact-head", h("h3", {}, title), span(`tv-value tv-value-${tone(value || 0)}`, missing ? "not scored" : signed(value))),
    h("p", {class: "tv-small"}, where.map((one) => span("tv-tag", h("bdi", {}, one))), side.outcome ? chip(side.outcome) : null),
    h("div", {class: "wb-differs", dir: "auto"}, pieces.map(piece)));
}

// The rewards of both answers by the methods that scored one of them, and their difference.
function paidTable({first, second}, methods) {
  const cell = (label, side, name) => {
    const value = own(side.values, name), missing = value === null || value === undefined;
    const why = `not scored: ${own(side.reasons, name) || "this method has not been applied"}`;
    return h("td", {class: "tv-num", "data-label": label}, missing ? h("span", {class: "tv-dim", title: why}, "n/a") : worth(value));
  };
  const more = (name) => [first, second].every((side) => known(own(side.values, name))) ? signed(second.values[name] - first.values[name]) : "–";
  const line = (name) => h("tr", {"data-method": name}, h("td", {}, nameOf(name)), cell("open", first, name), cell("other", second, name),
    h("td", {class: "tv-num", "data-label": "difference"}, more(name)));
  return div("wb-same-paid", plainTable(["Reward", "Open answer", "Other answer", "Difference"], methods.map(line), "tv-table wb-plain", (index) => (index ? "tv-num" : null)));
}
