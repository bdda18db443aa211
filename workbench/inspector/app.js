// The inspector's additions to the token view. The open response is announced to every tab that shows it; null is announced
// when no response is open.

const channel = {data: undefined, listeners: new Set()};
function announce(data) {
  channel.data = data;
  channel.listeners.forEach((listener) => listener(data));
}
function subscribe(listener) {
  channel.listeners.add(listener);
  if (channel.data !== undefined) listener(channel.data);
}
const nothingOpen = () => div("tv", h("p", {class: "tv-small tv-none"}, "No answer is open: open one under Inspect, Runs or Live."));

// A component's value is JSON text; it is read once at the start and again whenever it changes.
function onValue({props, watch}, read) {
  const now = () => props.value && read(JSON.parse(props.value));
  watch("value", now);
  now();
}

function permalink(data, method) {
  const query = new URLSearchParams(location.search);
  ["run", "id", "method"].forEach((name) => query.delete(name));
  if (data.link) new URLSearchParams(data.link).forEach((value, name) => query.set(name, value));
  if (data.link && method) query.set("method", method);
  const text = query.toString();
  return location.pathname + (text ? `?${text}` : "");
}

// The address is the open response's permalink. It is set after drawing, because setting it is slow on a large page.
let address = null;
function addressed(link) {
  if (address === null) setTimeout(() => {
    if (address !== location.pathname + location.search) history.replaceState(null, "", address);
    address = null;
  }, 100);
  address = link;
}

function download(name, type, text) {
  const link = h("a", {href: URL.createObjectURL(new Blob([text], {type})), download: name});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

const pressed = (act) => (event) => ["Enter", " "].includes(event.key) && (event.preventDefault(), act());
const copied = (text) => navigator.clipboard.writeText(text).then(() => true, () => false);
const fileName = (data) => data.id.replace(/[^\w.-]+/g, "-").replace(/^-+|-+$/g, "") || "response";

function mountInspect(root, gradio) {
  const actions = div("wb-actions"), place = h("div");
  root.classList.add("tv-colours", "wb-inspect");
  const given = []; // claims labelled by a key, in order
  const press = (id) => {
    const found = document.querySelector(`#${id}`);
    if (found && found.offsetParent) found.click();
  };
  const turn = (all, now, step) => all[(all.indexOf(now) + step + all.length) % all.length];
  const open = () => view.state.data;
  const claim = (step) => {
    const ids = open() ? open().claims.map((one) => one.id) : [], at = ids.indexOf(view.state.claim);
    if (ids.length) view.select(at < 0 ? ids[step > 0 ? 0 : ids.length - 1] : turn(ids, view.state.claim, step));
  };
  const method = () => {
    const names = open() ? Object.keys(open().methods) : [];
    if (names.length) (view.state.method = turn(names, view.state.method, 1)), view.refresh();
  };
  async function label(name, id) {
    if (!open() || id === null || id === undefined) return (status.textContent = "select a claim first: v");
    const shown = open(), stored = await gradio.server.label_claims({key: shown.key, edits: {[id]: name ? {label: name} : {}}});
    status.textContent = stored.error || (name ? `claim ${id + 1}: ${wordsOf(name)}, stored in ${stored.path}` : `claim ${id + 1}: label removed`);
    if (stored.error || open() !== shown) return;
    if (name) given.push(id);
    view.update({...shown, claims: shown.claims.map((one) => ({...one, person: own(stored.labels, String(one.id)) || null}))});
  }
  const keys = div("tv wb-keys", keyList(root, [
    ["n", "next row of the run", () => press("wb-row-after")], ["p", "previous row", () => press("wb-row-before")], ["m", "next method", method],
    [["v", "V"], "next or previous claim", (key) => claim(key === "v" ? 1 : -1)],
    [["1", "2", "3", "4", "5"], `label the claim: ${CLAIM_LABELS.map(wordsOf).join(" · ")}`, (key) => label(CLAIM_LABELS[Number(key) - 1], view.state.claim)],
    ["u", "undo the last label", () => given.length && label(null, given.pop())],
  ]));
  root.replaceChildren(actions, place);
  const status = h("span", {class: "wb-said", role: "status"});
  const view = tokenView(place, {onState: ({data, method}) => addressed(permalink(data, method))});
  const copy = async () => {
    const link = location.origin + permalink(view.state.data, view.state.method);
    status.textContent = (await copied(link)) ? "link copied" : link;
  };
  const save = async () => {
    const page = await gradio.server.export_page({key: view.state.data.key, method: view.state.method});
    if (page.error) status.textContent = page.error;
    else download(`${fileName(view.state.data)}.html`, "text/html", page.html);
  };
  onValue(gradio, (data) => {
    if (!data) {
      actions.replaceChildren();
      keys.remove();
      view.update(null);
      addressed(permalink({}, null));
      return announce(null);
    }
    const link = data.link ? [button("wb-button", "Copy link", copy)] : [];
    status.textContent = "";
    actions.replaceChildren(status, ...link, button("wb-button", "Save as HTML", save));
    given.length = 0;
    root.append(keys);
    view.update(data);
    announce(data);
  });
}

function mountCompare(root, gradio) {
  const head = div("tv"), grid = div("wb-grid"), rest = div("tv"), comparison = comparisonView(gradio, root);
  root.classList.add("tv-colours");
  subscribe((data) => {
    comparison.open(data);
    if (!data) return root.replaceChildren(nothingOpen());
    root.replaceChildren(head, grid, rest, comparison.root);
    const question = h("h3", {class: "tv-question", dir: "auto"}, data.question || "(no question)");
    head.replaceChildren(question, h("p", {class: "tv-small tv-facts"}, span("tv-tag", data.name)));
    const panels = Object.keys(data.methods).map((method) => {
      const place = div("wb-panel");
      tokenView(place, {compact: true, method}).update(data);
      return [method, place];
    });
    const scored = ([method]) => data.methods[method].value !== null;
    grid.replaceChildren(...panels.filter(scored).map(([, place]) => place));
    rest.replaceChildren(folded("wb-unscored", panels.filter((one) => !scored(one))) || "");
  });
}

// Several answers as a list; a click opens one in Inspect. Consecutive answers to one question show the question once.
function answerList({rows, methods, logged = [], scored = {}, unscored = {}, sorted = {}}, open) {
  const disagree = rows.some((row) => row.disagreement !== null);
  const cell = (method, content) => h("td", {class: "tv-num", "data-label": method}, content);
  const value = (row) => (method) => {
    const paid = own(row.values, method), missing = paid === null || paid === undefined;
    return cell(nameOf(method), missing ? h("span", {class: "tv-dim", title: `not scored: ${own(row.reasons, method) || "this method has not been applied"}`}, "n/a") : worth(paid));
  };
  const line = (row, place) => h("tr", {
    tabindex: "0", class: "wb-open", "data-row": row.id, onclick: () => open(row), onkeydown: pressed(() => open(row)),
  },
  h("td", {class: "tv-claim"},
    place && askedOf(rows[place - 1]) === askedOf(row) ? null : div("tv-small", tagsOf(row), h("bdi", {}, row.question)),
    h("div", {dir: "auto", class: "wb-answer"}, row.text.trim() || "(empty)")),
  h("td", {class: "tv-outcome", "data-label": "outcome"}, outcome(row)),
  methods.map(value(row)),
  logged.map((name) => cell(loggedOf(name), row.values[name] === null || row.values[name] === undefined ? h("span", {class: "tv-dim"}, "n/a") : number(row.values[name]))),
  disagree ? cell("disagreement", fixed(row.disagreement)) : null);
  const arrow = (name) => (sorted.by === name ? (sorted.order === "lowest" ? " ↑" : " ↓") : "");
  const share = (method) => (scored[method] ? `; ${scored[method][0]} of ${scored[method][1]} answers scored` : "");
  const head = (method) => [nameOf(method) + arrow(method), `reward of the whole answer by ${nameOf(method)}${share(method)}`];
  const column = (name) => [loggedOf(name).replace(/:$/, ""), "a number that the trainer logged, not a reward of a method"];
  const heads = ["Question and answer", "Outcome", ...methods.map(head), ...logged.map(column), ...(disagree ? [[`Disagreement${arrow("disagreement")}`, DISAGREEMENT]] : [])];
  const style = (index) => (index > 1 ? `tv-num${heads[index][0].match(/ [↑↓]$/) ? " tv-now" : ""}` : null);
  const asked = disagree || sorted.by === "disagreement";
  const same = disagree ? "" : " Here fewer than two methods rank the answers, so there is no disagreement to sort by.";
  const glossary = asked ? h("p", {class: "tv-small tv-glossary wb-disagreement"}, h("b", {}, "Disagreement: "), DISAGREEMENT + same) : null;
  const without = folded("wb-unscored", Object.entries(unscored).map(([method, why]) => [method, h("p", {class: "tv-small"}, h("b", {}, `${nameOf(method)}: `), why)]));
  return [glossary, without, plainTable(heads, rows.map(line), "tv-table", style)];
}

// The methods that have not scored something, in one line that opens.
const folded = (style, entries) => (entries.length
  ? h("details", {class: `tv-small tv ${style}`}, h("summary", {}, `Not scored: ${entries.map(([method]) => nameOf(method)).join(", ")}`), entries.map(([, content]) => content))
  : null);

// The step, tier and kind of a question, which identify it together with its text.
const tagsOf = (row) => [known(row.step) ? `step ${row.step}` : null, row.tier, row.kind].filter(Boolean).map((tag) => span("tv-tag", spaced(tag)));
const askedOf = (row) => JSON.stringify([row.step, row.question, row.tier, row.kind]);

const DISAGREEMENT = "how differently the methods rank an answer. Each method ranks the rollouts of the step (of the run, if it has no steps) by its " +
  "reward, from 0 (lowest) to 1 (highest); the value is an answer's highest rank minus its lowest. 0: all methods agree; 1: the best of one is the worst of another.";

// The outcome's label, or the failure's stage and reason.
function outcome({outcome, error}) {
  const label = outcome || (error ? labelOf({error}) : "unchecked");
  const title = own({correct: OUTCOME_CORRECT, unchecked: "the outcome was not checked"}, label);
  return [chip(label, title), isFailure(error) ? div("tv-small tv-error-text", reasonOf(error)) : null];
}

const plainTable = (heads, rows, style = "tv-table wb-plain", headStyle = undefined) =>
  div("tv-table-frame", h("table", {class: style}, columnHeads(heads, headStyle), h("tbody", {}, rows)));

// An error or a note of any component.
const messages = (data) => [
  data.error ? h("p", {class: "tv-failure", role: "alert"}, data.error) : null,
  data.note ? h("p", {class: "tv-small"}, data.note) : null,
];

function mountList(root, gradio) {
  root.classList.add("tv-colours", "wb-listed");
  const open = (row) => gradio.trigger("select", {id: row.id});
  onValue(gradio, (data) => root.replaceChildren(div("tv", messages(data), data.rows ? answerList(data, open) : null)));
}

// A message, or tables of texts.
function mountNote(root, gradio) {
  root.classList.add("tv-colours");
  onValue(gradio, (data) => root.replaceChildren(...(Object.keys(data).length ? [div("tv", noted(data))] : [])));
}

function noted(data) {
  const cells = (head) => (row) => h("tr", {}, row.map((cell, index) => h("td", {dir: "auto", "data-label": head[index]}, cell)));
  return [...messages(data), ...(data.tables || []).map(({head, rows}) => plainTable(head, rows.map(cells(head))))];
}
