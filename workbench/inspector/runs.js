// Runs: the list of runs, newest first, the curves of the checked runs, and the rollouts of the selected run. While the tab is
// visible, new data is requested every two seconds; only changes are drawn, so that scroll positions stay.

const EVERY = 2000, PATIENCE = 10000; // milliseconds

function mountRuns(root, gradio) {
  root.classList.add("tv-colours", "wb-runs");
  const board = curveBoard((step) => go({step, start: 0})), busy = busySign(), list = runTable({choose, draw: tick});
  const notice = div("tv wb-notice"), rows = div("wb-listed"), filters = filterBar(go), how = {smooth: 0, bands: false};
  const state = {run: null, drawn: [], stamp: null, runs: [], curves: null, query: {}, choices: null, turn: 0, looking: null};
  const at = () => (typeof state.query.step === "number" ? state.query.step : null);
  const after = beforeAfter(gradio, () => state, busy);
  root.replaceChildren(div("tv", list.root), div("tv wb-how", howBar(how, redraw)), notice, div("tv", board.parts), after.root, div("tv wb-bar", filters.root, busy.sign), rows);

  async function look(force) {
    if (!root.offsetParent || (state.looking && !force)) return;
    const mine = (state.looking = {}); // a user's request replaces a pending one
    setTimeout(() => state.looking === mine && (state.looking = null), PATIENCE);
    try {
      const known = force || (state.curves && state.curves.reading) ? null : state.stamp;
      const found = await gradio.server.look({names: state.drawn, stamp: known});
      if (state.looking !== mine) return;
      if (found.error) return say(notice, found);
      if (found.same) return state.missing ? await page(true) : undefined; // a large run is still being read
      const grown = state.stamp !== null;
      [state.stamp, state.runs, state.curves] = [found.stamp, JSON.parse(found.runs), JSON.parse(found.curves)];
      if (state.run === null && state.runs.length) return choose(state.runs[0].name);
      list.draw(state.runs, state);
      redraw();
      if (grown && state.run) await page(true);
    } finally {
      if (state.looking === mine) state.looking = null;
    }
  }

  function redraw() {
    if (!state.curves) return;
    const count = state.curves.runs ? board.draw(state.curves, how, at()) : 0;
    if (!state.curves.runs) board.draw({runs: [], series: []}, how, null);
    say(notice, {error: state.curves.error, note: state.curves.reading || (count ? null : state.curves.note)});
  }

  // Select the run whose rollouts are listed; its curves are drawn, and its last step is listed.
  async function choose(name) {
    const alone = state.drawn.length < 2 ? [name] : [...new Set([name, ...state.drawn])];
    Object.assign(state, {run: name, drawn: alone, query: {order: state.query.order, step: "last"}, choices: null});
    rows.replaceChildren();
    after.show();
    await Promise.all([page(false), busy.during(look(true))]);
  }
  function tick(name, on) {
    state.drawn = on ? [...state.drawn, name] : state.drawn.filter((one) => one !== name);
    if (!state.drawn.includes(state.run) && state.run) state.drawn = [state.run, ...state.drawn.filter((one) => one !== state.run)];
    after.show();
    busy.during(look(true));
  }
  function go(change) {
    Object.assign(state.query, change);
    if ("step" in change) board.mark(at());
    page(false);
  }

  // A page of the list. `quiet`: an update of a growing run, which keeps the scroll position.
  async function page(quiet) {
    const turn = ++state.turn, asked = gradio.server.list_rollouts({run: state.run, query: state.query});
    const found = await (quiet ? asked : busy.during(asked));
    if (turn !== state.turn) return; // a newer request is pending
    const data = found.error ? found : JSON.parse(found.text);
    if (data.choices) state.choices = data.choices;
    if (state.query.step === "last") state.query.step = data.step ?? null;
    filters.draw(state.choices, state.query);
    state.missing = data.missing;
    const text = JSON.stringify([data.rows, data.note, data.error]), frame = () => rows.querySelector(".tv-table-frame");
    if (quiet && text === state.listed) return;
    const top = quiet && frame() ? frame().scrollTop : 0;
    state.listed = text;
    rows.replaceChildren(div("tv", messages(data), data.rows ? answerList(data, open) : null, data.rows ? pager(data, (start) => go({start})) : null));
    if (top && frame()) frame().scrollTop = top;
    board.mark(at());
  }
  const open = (row) => gradio.trigger("select", {run: state.run, id: row.id, query: {...state.query, start: 0}});

  onValue(gradio, ({run}) => {
    if (run && run !== state.run) state.run === null ? Object.assign(state, {first: run}) : choose(run);
  });
  const start = () => root.offsetParent && (state.run === null && state.first ? choose(state.first) : look(false));
  new IntersectionObserver(start).observe(root);
  setInterval(() => look(false).catch(() => null), EVERY); // if the server has stopped, the next click shows the error
}

const say = (place, data) => place.replaceChildren(...messages(data).filter(Boolean));

// A sign that a request is in progress, after a short delay.
function busySign() {
  const sign = h("span", {class: "wb-busy", role: "status"});
  let open = 0;
  const show = () => (sign.textContent = open ? "working …" : "");
  const during = async (promise) => {
    sign.ariaBusy = String((open += 1) > 0);
    const timer = setTimeout(show, 150);
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      sign.ariaBusy = String((open -= 1) > 0);
      show();
    }
  };
  return {sign, during};
}

function runTable({choose, draw}) {
  const search = h("input", {type: "search", class: "tv-select wb-find", placeholder: "Find a run", "aria-label": "find a run", oninput: () => again()});
  const body = h("tbody"), frame = div("tv-table-frame wb-run-frame"), count = small();
  const heads = [["Draw", "check the runs whose curves are drawn together"], "Run", "Last written", "Method", "Seed", "Status", "Steps",
    ["Reward", "mean reward of the last step's rollouts"], ["Evaluation", "the main metric of the greedy answers, before and after training"]];
  frame.append(h("table", {class: "tv-table wb-plain wb-run-table"}, columnHeads(heads, (index) => (index > 5 ? "tv-num" : null)), body));
  let last = [[], {drawn: []}];
  const cell = (label, content, style) => h("td", {"data-label": label, class: style}, content);
  const line = (run, state) => {
    const box = h("input", {type: "checkbox", "aria-label": `draw ${run.name}`, checked: state.drawn.includes(run.name), disabled: Boolean(run.broken),
      onchange: (event) => draw(run.name, event.target.checked)});
    const name = button("wb-run-name", h("bdi", {}, run.label), () => choose(run.name), {"aria-pressed": String(run.name === state.run), "data-name": run.name, title: run.name});
    const cells = run.broken ? [h("td", {colspan: 7, class: "tv-small tv-error-text"}, run.broken)] : [
      cell("last written", dateOf(run.date)), cell("method", nameOf(run.method)), cell("seed", run.seed === null ? "–" : String(run.seed)),
      cell("status", span(`wb-status wb-status-${run.status === "running" ? "on" : "off"}`, run.status)),
      cell("steps", run.steps === null ? "–" : String(run.steps), "tv-num"), cell("reward", number(run.last, 3), "tv-num"),
      cell("evaluation", evaluated(run.evaluation), "tv-num")];
    return h("tr", {class: run.name === state.run ? "tv-row-on" : "", "data-run": run.name}, h("td", {}, box), h("td", {class: "wb-run-cell"}, name), cells);
  };
  function again() {
    const [runs, state] = last, words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const like = runs.filter((run) => words.every((word) => `${run.name} ${run.label} ${run.method || ""} ${run.status || ""} seed${run.seed}`.toLowerCase().includes(word)));
    keepFocus(body, () => body.replaceChildren(...like.map((run) => line(run, state))));
    count.textContent = like.length === runs.length ? `${runs.length} ${runs.length === 1 ? "run" : "runs"}, newest first` : `${like.length} of ${runs.length} runs`;
  }
  return {root: div("wb-run-list", div("wb-run-head", search, count), frame), draw: (runs, state) => ((last = [runs, state]), again())};
}

const evaluated = (found) => (found ? [small(`${found.metric} `), known(found.before) ? `${percent(found.before)} → ` : "", percent(found.after)] : "–");
const dateOf = (text) => new Date(text).toLocaleString(undefined, {dateStyle: "medium", timeStyle: "short"});

function howBar(how, redraw) {
  const out = h("output", {class: "tv-small"}, "off");
  const smooth = h("input", {type: "range", min: 0, max: 0.95, step: 0.05, value: 0, "aria-label": "smoothing", oninput: (event) => {
    how.smooth = Number(event.target.value);
    out.textContent = how.smooth ? fixed(how.smooth) : "off";
    redraw();
  }});
  const bands = h("input", {type: "checkbox", onchange: (event) => ((how.bands = event.target.checked), redraw())});
  return [
    h("label", {title: "exponential moving average with this weight of earlier values; the thin line is unsmoothed"}, "Smoothing ", smooth, " ", out),
    h("label", {title: "checked runs that differ only in their seed become one line, their mean, with a band from minimum to maximum"}, bands, " Seeds as a band"),
  ];
}

// Filters and order of the rollouts. The bar is rebuilt only for other choices.
function filterBar(go) {
  const root = div("wb-filters");
  let built = null, fields = {};
  const soon = later((change) => go(change), 250);
  const choice = (name, words, options) => {
    const box = h("select", {class: "tv-select", "aria-label": words, onchange: (event) => go({[name]: event.target.value, start: 0})},
      options.map(([value, text]) => h("option", {value}, text)));
    fields[name] = box;
    return options.length > 1 ? h("label", {}, `${words} `, box) : null;
  };
  const edge = (name, words) => (fields[name] = h("input", {type: "number", step: "any", class: "tv-select wb-edge", placeholder: words, "aria-label": `${words} value`,
    oninput: (event) => soon({[name]: event.target.value === "" ? null : Number(event.target.value), start: 0})}));

  function build(choices) {
    const [first, last] = choices.steps.length ? choices.steps : [0, 0], any = (names) => [["", "any"], ...names.map((name) => [name, name === "none" ? "no outcome" : wordsOf(name)])];
    fields = {};
    fields.text = h("input", {type: "search", class: "tv-select", placeholder: "Search answers and questions", "aria-label": "search answers and questions",
      oninput: (event) => soon({text: event.target.value, start: 0})});
    fields.at = h("output", {class: "wb-step-now"});
    fields.step = h("input", {type: "range", min: first, max: last, step: 1, "aria-label": "step", oninput: (event) => {
      fields.at.textContent = event.target.value;
      soon({step: Number(event.target.value), start: 0});
    }});
    fields.all = h("input", {type: "checkbox", onchange: (event) => go({step: event.target.checked ? null : Number(fields.step.value), start: 0})});
    const parts = choices.parts.map((name) => [name, `${spaced(name.split(":").slice(1).join(":"))}`]);
    root.replaceChildren(...[
      last > first ? h("label", {class: "wb-step"}, "Step ", fields.step, " ", fields.at) : null,
      last > first ? h("label", {}, fields.all, " all steps") : null,
      choice("order", "Sort by", choices.orders.map(([words, key]) => [key, words])), fields.text,
      choice("outcome", "Outcome", any(choices.outcomes)), choice("tier", "Tier", any(choices.tiers)), choice("kind", "Kind", any(choices.kinds)),
      h("span", {class: "wb-range"}, choice("of", "Value of", [["", "the reward"], ...parts]), edge("low", "from"), edge("high", "to")),
    ].filter(Boolean));
  }
  function draw(choices, query) {
    if (!choices) return root.replaceChildren();
    const shape = JSON.stringify({...choices, steps: choices.steps.length ? choices.steps[1] > choices.steps[0] : null});
    if (shape !== built || !root.childElementCount) build(choices);
    built = shape;
    if (choices.steps.length) [fields.step.min, fields.step.max] = choices.steps;
    if (known(query.step) && document.activeElement !== fields.step) fields.step.value = query.step;
    fields.at.textContent = known(query.step) ? `${query.step} of ${choices.steps[1]}` : "all";
    fields.all.checked = !known(query.step);
    for (const name of ["order", "outcome", "tier", "kind", "of", "text", "low", "high"])
      if (document.activeElement !== fields[name]) fields[name].value = query[name] ?? (name === "order" ? "lowest" : "");
  }
  return {root, draw};
}

// Merge calls in quick succession into one, with all their changes.
function later(call, wait) {
  let timer = null, pending = {};
  return (change) => {
    clearTimeout(timer);
    Object.assign(pending, change);
    timer = setTimeout(() => {
      const all = pending;
      pending = {};
      call(all);
    }, wait);
  };
}

function pager({start, count, page}, to) {
  if (count <= page) return null;
  const turn = (words, at) => button("wb-button", words, () => to(at), {disabled: at < 0 || at >= count});
  return div("wb-pager", turn("First", start ? 0 : -1), turn("Previous page", start - page), turn("Next page", start + page),
    turn("Last", start + page < count ? Math.floor((count - 1) / page) * page : -1));
}

// The evaluations of the checked runs before and after training, the settings in which the runs differ, and a link to the page
// of `workbench compare`.
function beforeAfter(gradio, state, busy) {
  const tables = div("tv"), page = h("a", {class: "wb-page", target: "_blank"}, "Compare the checked runs on one page");
  let turn = 0;
  async function show() {
    const mine = ++turn;
    page.href = location.pathname.replace(/\/?$/, "/compare?") + new URLSearchParams(state().drawn.map((name) => ["run", name]));
    if (!details.open || !state().run) return;
    const found = await busy.during(gradio.server.before_and_after({names: state().drawn}));
    if (mine === turn) tables.replaceChildren(...noted(found.error ? found : JSON.parse(found.text)).filter(Boolean)); // else other runs are checked
  }
  const details = h("details", {class: "wb-before", ontoggle: show}, h("summary", {}, "Before and after"), tables);
  return {root: div("tv", details, page), show};
}
