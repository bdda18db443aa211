// An answer with sources: the plan, each sentence with its sources and its support, and the passages.

function mountAnswer(root, gradio) {
  root.classList.add("tv-colours", "wb-sourced");
  onValue(gradio, (data) => root.replaceChildren(...(Object.keys(data).length ? [div("tv", messages(data), data.passages ? sourced(data) : null)] : [])));
}

function sourced(data) {
  const numbers = new Map(data.passages.map((passage, index) => [passage.id, index + 1]));
  const sources = data.passages.map((passage, index) => sourceOf(passage, index + 1));
  const light = (ids) => data.passages.forEach((passage, index) => sources[index].classList.toggle("wb-lit", ids.includes(passage.id)));
  const lines = data.sentences.map((sentence) => sentenceOf(sentence, numbers, light));
  const judge = data.judge ? `judged by ${judgeOf(data.judge)}` : "not judged";
  return [
    h("h3", {class: "tv-question", dir: "auto"}, data.question),
    ...data.notes.map((note) => h("p", {class: "tv-small wb-note", dir: "auto"}, note)),
    div("wb-split",
      h("section", {},
        data.structure === null ? null : planOf(data),
        lines.length ? h("ol", {class: "wb-sentences"}, lines) : h("p", {class: "wb-plain-text", dir: "auto"}, data.text),
        h("p", {class: "tv-small"}, judge)),
      h("section", {}, h("h4", {}, data.passages.length ? "Sources" : "No sources"), h("ol", {class: "wb-sources"}, sources))),
  ];
}

const planOf = (data) => div("wb-plan", h("h4", {}, "Plan: ", h("bdi", {}, data.structure)),
  h("ol", {}, data.outline.map((point) => h("li", {dir: "auto"}, point))));

// A sentence highlights its sources while it is hovered over or has the focus.
function sentenceOf(sentence, numbers, light) {
  const shown = () => light(sentence.passages.length ? sentence.passages : sentence.found), dark = () => light([]);
  const listed = (ids) => ids.map((id) => `[${numbers.get(id)}]`).join("");
  const otherSources = sentence.found.length && !sentence.found.some((id) => sentence.passages.includes(id));
  const support = sentence.error ? chip("failed", sentence.error) : sentence.label ? chip(sentence.label) : span("tv-small", "no claim");
  const p = sentence.p === null ? null : span("tv-small", `p ${fixed(sentence.p)}`);
  return h("li", {tabindex: "0", onmouseenter: shown, onmouseleave: dark, onfocus: shown, onblur: dark},
    h("span", {dir: "auto"}, sentence.text), " ", span("wb-numbers", listed(sentence.passages)), " ", support, " ", p,
    otherSources ? span("tv-small", ` found in ${listed(sentence.found)}`) : null,
    sentence.error ? div("tv-small tv-error-text", sentence.error) : null);
}

const sourceOf = (passage, number) => h("li", {},
  h("div", {dir: "auto"}, span("wb-numbers", `[${number}] `), h("b", {}, passage.title || passage.id)),
  h("div", {dir: "auto"}, passage.text), h("div", {class: "tv-small"}, passage.id));
