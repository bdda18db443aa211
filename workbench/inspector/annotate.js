// Annotate: claims one by one, with their answers and evidence, but without the judge's verdict.

const ORDER_WORDS = {random: "in a random order, the same for everyone", recorded: "as recorded"};

function mountAnnotate(root, gradio) {
  root.classList.add("tv-colours", "wb-annotate");
  const bar = div("wb-filters"), done = div("wb-done"), last = h("p", {class: "tv-small", role: "status"}), card = div("wb-panel"), out = h("p", {class: "tv-failure", role: "alert", hidden: true});
  let now = {claim: null, labels: []}, state = {run: null, order: "random"}, passed = [], seen = [], asking = false, started = false;

  // Request the claim `at`, else the next one, after storing the label `given`. `then` updates the page's state after success
  // only, so that a label that could not be stored is not lost.
  async function ask(more = {}, then = () => {}) {
    if (asking) return void (last.textContent = "The last label is still being saved, so this action was ignored. Try again in a moment.");
    asking = true;
    root.setAttribute("aria-busy", "true");
    try {
      const found = await gradio.server.annotation({...state, passed, ...more}).catch(() => null);
      if (!found || found.error) return failed(found ? found.error : "The inspector does not respond: check that it is running, and try again.");
      out.hidden = true;
      then();
      draw(JSON.parse(found.text), more.given);
    } finally {
      asking = false;
      root.removeAttribute("aria-busy");
    }
  }

  function failed(words) {
    [out.hidden, out.textContent] = [false, words];
    last.replaceChildren();
  }

  const place = () => now.claim && now.claim.place;
  const other = (one) => (two) => JSON.stringify(one) !== JSON.stringify(two);
  const label = (name, at = place()) => at && ask({given: {place: at, label: name}}, () => (seen.push(at), (passed = passed.filter(other(at)))));
  const next = (_, at = place()) => at && ask({passed: [...passed, at]}, () => (seen.push(at), passed.push(at)));
  const previous = () => seen.length && ask({at: seen.at(-1)}, () => seen.pop());
  // Remove the last label, and show its claim again.
  const given = [];
  function undo() {
    if (!given.length) return;
    const one = given.at(-1);
    ask({given: {place: one, label: null}, at: one}, () => (given.pop(), (seen = seen.filter(other(one)))));
  }

  function draw(data, stored) {
    if (stored && stored.label) given.push(stored.place);
    now = data;
    Object.assign(state, {run: data.run});
    const choice = (words, name, options) => h("label", {}, `${words} `, select(words, "tv-select",
      ({target}) => {
        const chosen = target.value;
        target.value = state[name]; // until it is redrawn
        ask({[name]: chosen, passed: []}, () => ((state[name] = chosen), ([passed, seen] = [[], []]), (given.length = 0)));
      },
      options.map(([value, text]) => h("option", {value, selected: value === state[name]}, text))));
    keepFocus(bar, () => bar.replaceChildren(choice("Claims of run", "run", data.runs.map((name) => [name, name])),
      choice("Order", "order", data.orders.map((name) => [name, ORDER_WORDS[name] || name]))));
    done.replaceChildren(h("progress", {max: data.total || 1, value: data.done, "aria-label": "labelled claims"}),
      span("", `${data.done.toLocaleString()} of ${data.total.toLocaleString()} claims labelled`), span("wb-agreement", agreementWords(data.agreement)));
    last.replaceChildren(...lastWords(data.last));
    card.replaceChildren(...(data.claim ? claimCard(data.claim) : [h("p", {}, data.total ? "Every claim is labelled or skipped." : "The rows of this run have no claims.")]));
  }

  function claimCard(claim) {
    const letters = Array.from(claim.answer), [start, end] = claim.span || [0, 0];
    const text = [letters.slice(0, start).join(""), h("mark", {}, letters.slice(start, end).join("")), letters.slice(end).join("")];
    const choices = now.labels.map((name, index) => button(`wb-button wb-choice${claim.label === name ? " wb-chosen" : ""}`, [h("kbd", {}, String(index + 1)), " ", chip(name)], () => label(name),
      {"data-label": name, "aria-pressed": String(claim.label === name), title: meaningOf(name)}));
    return [
      h("p", {class: "tv-small"}, span("tv-tag", h("bdi", {}, claim.place[0])), `claim ${claim.id + 1}`),
      h("h3", {class: "wb-claim-text", dir: "auto"}, claim.text), div("wb-choices", choices),
      h("h4", {}, "Evidence"), claim.evidence.length ? div("tv-evidence wb-wide", opened(evidence(claim))) : h("p", {class: "tv-small"}, "No evidence is stored for this claim: use your own knowledge, or skip it."),
      h("h4", {}, "Question"), h("p", {dir: "auto"}, claim.question || "(no question)"), claim.answers.length ? h("p", {class: "tv-small"}, `Gold answer ${claim.answers.join(" · ")}`) : null,
      h("h4", {}, "Answer"), h("p", {class: "wb-differs", dir: "auto"}, claim.span ? text : claim.answer),
    ].filter(Boolean);
  }
  const opened = (all) => all.map((one) => ((one.open = true), one));

  const digits = ["1", "2", "3", "4", "5"];
  const keys = keyList(root, [
    [digits, "label the claim", (key) => now.labels[Number(key) - 1] && label(now.labels[Number(key) - 1])],
    ["n", "skip the claim", next], ["p", "previous claim", previous], ["u", "undo the last label", undo],
  ]);
  const steps = div("wb-actions", button("wb-button", "Previous", previous), button("wb-button", "Skip", next), button("wb-button", "Undo", undo));
  root.replaceChildren(div("tv", bar, done, steps, keys, last, out, card));
  const start = () => root.offsetParent && !started && ((started = true), ask());
  new IntersectionObserver(start).observe(root);
}

function agreementWords({n, accuracy, kappa}) {
  if (!n) return "The agreement with the judge is shown when both have labelled a claim.";
  const measure = kappa === null ? "" : `, Cohen's κ ${number(kappa)}`;
  return `You and the judge agree on ${Math.round(accuracy * n)} of ${n} (${Math.round(100 * accuracy)} %${measure}).`;
}

function lastWords(one) {
  if (!one) return [];
  const text = h("q", {dir: "auto"}, one.text);
  if (!one.label) return ["Label removed: ", text];
  const judge = one.judge ? ["; the judge: ", chip(one.judge), one.judge === one.label ? " – you agree" : " – you disagree"] : ["; the judge has no verdict"];
  return ["Stored: ", text, " – you: ", chip(one.label), ...judge];
}
