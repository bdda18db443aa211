// What if: every constant of every method as a control. The server recomputes the rewards of the stored row after a change.

function mountWhatIf(root, gradio) {
  root.classList.add("tv-colours");
  const side = div("tv wb-controls"), place = h("div"), group = div("tv wb-group"), out = div("tv wb-export");
  const bench = div("wb-whatif", side, div("wb-whatif-main", place, group, out));
  let key = null, settings = Object.create(null), edits = Object.create(null), latest = null, asked = 0, waiting = null;

  const view = tokenView(place, {
    onEdit: (id, change) => ((edits[id] = {...edits[id], ...change}), ask()),
    onState: ({method}) => latest && method && method !== drawnMethod && (controls(), below()),
  });
  let drawnMethod = null;

  async function ask() {
    const turn = ++asked;
    const found = await gradio.server.what_if({key, settings, edits});
    if (turn !== asked) return; // a newer request is pending
    if (found.error) return fail(found.error);
    latest = found;
    view.update(found.view);
    if (drawnMethod !== view.state.method) controls();
    else follow();
    below();
  }
  const soon = () => (clearTimeout(waiting), (waiting = setTimeout(ask, 40)));
  const fail = (message) => out.replaceChildren(h("p", {class: "tv-failure", role: "alert"}, message));
  const set = (field, value, now) => {
    settings[drawnMethod] = {...settings[drawnMethod], [field]: value};
    now ? ask() : soon();
  };

  // One control for each field; unchanged controls follow the server's values.
  function controls() {
    drawnMethod = view.state.method;
    const fields = own(latest.controls, drawnMethod) || [];
    const row = (field) => [field.head ? h("h5", {}, field.head) : null, control(field)];
    const reset = button("wb-button", "Reset all", () => ((settings = Object.create(null)), (edits = Object.create(null)), ask().then(controls)));
    side.replaceChildren(div("wb-controls-head", h("h4", {}, `${nameOf(drawnMethod)} settings`), reset), ...fields.flatMap(row).filter(Boolean));
  }
  function follow() {
    const touched = settings[drawnMethod] || {};
    for (const field of own(latest.controls, drawnMethod) || []) {
      const box = side.querySelector(`[data-field="${field.name}"]`);
      if (!box || field.name in touched || field.kind !== "number") continue;
      box.querySelector("input[type=range]").value = field.value ?? field.min;
      box.querySelector("input[type=number]").value = field.value ?? "";
    }
  }
  function control(field) {
    const id = `wb-${drawnMethod}-${field.name}`, touched = (settings[drawnMethod] || {})[field.name];
    const value = touched === undefined ? field.value : touched;
    const label = h("label", {for: id, title: `${field.help} (${drawnMethod}.${field.name})`}, field.label);
    const draw = {choice, flag, number: slider}[field.kind];
    return draw(field, {id, label, value});
  }
  function choice(field, {id, label, value}) {
    const options = field.options.map((name) => h("option", {value: name, selected: String(value) === name}, name));
    const change = (event) => set(field.name, event.target.value, true);
    const box = h("select", {id, class: "tv-select", onchange: change}, options);
    return h("div", {class: "wb-control", "data-field": field.name}, label, box);
  }
  function flag(field, {id, label, value}) {
    const box = h("input", {id, type: "checkbox", onchange: (event) => set(field.name, event.target.checked, true)});
    box.checked = Boolean(value);
    return h("div", {class: "wb-control wb-flag", "data-field": field.name}, label, box);
  }
  function slider(field, {id, label, value}) {
    const range = h("input", {id, type: "range", min: field.min, max: field.max, step: field.step});
    const exact = h("input", {type: "number", step: field.step, class: "wb-exact", placeholder: "off", "aria-label": `${field.label}, exact value`});
    const stand = (at) => ((range.value = at ?? field.min), (exact.value = at ?? ""), box.classList.toggle("wb-unset", at === null));
    const move = (at, now) => (stand(at), set(field.name, at, now));
    range.addEventListener("input", () => move(Number(range.value)));
    exact.addEventListener("change", () => exact.value !== "" && move(Number(exact.value), true));
    const off = field.optional ? button("wb-off", "off", () => move(null, true), {title: "no value", "aria-label": `${field.label} off`}) : null;
    const box = h("div", {class: "wb-control wb-number", "data-field": field.name}, label, range, div("wb-exact-frame", exact, off));
    stand(value ?? null);
    return box;
  }

  // Below the text: the group's rewards and advantages, and the export of the changes.
  function below() {
    group.replaceChildren(...(latest.group.length < 2 ? [] : groupTable(latest.group, view.state.method)));
    const status = h("span", {class: "wb-said", role: "status"});
    const copy = async () => (status.textContent = (await copied(latest.line)) ? "copied" : "select the line to copy it");
    const store = async () => {
      const stored = await gradio.server.label_claims({key, edits});
      status.textContent = stored.error || `saved in ${stored.path}`;
    };
    const config = () => {
      const method = view.state.method;
      download(`${method}.json`, "application/json", JSON.stringify(own(latest.config, method) || {}, null, 2));
    };
    out.replaceChildren(h("h4", {}, "Export"), h("code", {class: "wb-line-out"}, latest.line || "no changes"), div("wb-actions",
      button("wb-button", "Copy --set", copy, {disabled: !latest.line}),
      button("wb-button", "Config as JSON", config),
      button("wb-button", "Save labels as annotations", store, {disabled: !Object.keys(edits).length}), status));
  }

  // The settings extend to the end of the window; their start depends on the fonts above.
  const fit = () => root.offsetParent && bench.style.setProperty("--wb-top", `${Math.round(root.getBoundingClientRect().top + window.scrollY)}px`);
  new ResizeObserver(fit).observe(root);
  window.addEventListener("resize", fit);

  subscribe((data) => {
    root.replaceChildren(data ? bench : nothingOpen());
    if (!data) return ([key, asked] = [null, asked + 1]);
    if (data.key === key) return;
    [key, settings, edits, drawnMethod] = [data.key, Object.create(null), Object.create(null), null];
    ask();
  });
}

// The answers to one prompt with their current rewards and their mean token advantages by every estimator.
function groupTable(rows, method, open = null) {
  const estimators = [...new Set(rows.flatMap((row) => Object.keys(own(row.advantages, method) || {})))];
  const cell = (label, value, more) => h("td", {class: "tv-num", "data-label": label, ...more}, value === null ? "n/a" : signed(value));
  const more = (row) => open && {tabindex: "0", "data-row": row.id, onclick: () => open(row), onkeydown: pressed(() => open(row))};
  const line = (row) => h("tr", {class: `${row.open ? "tv-row-on" : ""}${open ? " wb-open" : ""}`, ...more(row)},
    h("td", {class: "tv-claim", dir: "auto"}, div("wb-answer", row.text)),
    cell("reward", own(row.values, method) ?? null),
    estimators.map((name) => cell(estimatorOf(name)[0], own(own(row.advantages, method) || {}, name) ?? null, {"data-estimator": name})));
  const mean = (name) => [`Advantage, ${estimatorOf(name)[0]}`, `mean over the answer's tokens; ${estimatorOf(name)[1]}`];
  const heads = ["Answer", `Reward, ${nameOf(method)}`, ...estimators.map(mean)];
  const table = plainTable(heads, rows.map(line), "tv-table wb-plain", (index) => (index ? "tv-num" : null));
  const count = rows.length === 1 ? "The only answer to this prompt" : `The ${rows.length} answers to this prompt`;
  return [h("h4", {}, count), table, estimators.length &&
    h("p", {class: "tv-small tv-glossary"}, h("b", {}, "Advantage: "), "the training signal that each estimator computes from the rewards; mean over the answer's tokens.")].filter(Boolean);
}
