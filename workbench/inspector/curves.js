// Small line charts of a run over its steps, drawn as SVG; the step under the pointer is named, a click chooses it.

const WIDTH = 260, HEIGHT = 96;

function svg(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

function chart(series, runs, step, choose) {
  const points = runs.flatMap((run) => run.series[series.name].filter((value) => value !== null));
  if (!points.length) return null;
  const steps = runs.flatMap((run) => run.steps);
  const [first, last] = [Math.min(...steps), Math.max(...steps)];
  let [low, high] = series.share ? [0, Math.max(0.05, ...points)] : [Math.min(...points), Math.max(...points)];
  if (high - low < 1e-9) [low, high] = [low - 0.5, high + 0.5];
  const x = (at) => (last === first ? WIDTH / 2 : ((at - first) / (last - first)) * WIDTH);
  const y = (value) => HEIGHT - 4 - ((value - low) / (high - low)) * (HEIGHT - 8);
  const known = runs[0].series[series.name].filter((value) => value !== null);
  const label = `${series.title} from ${number(known[0] ?? null)} to ${number(known.at(-1) ?? null)}`;
  const frame = {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", class: "wb-curve", "aria-label": label};
  const picture = svg("svg", frame);
  if (low < 0 && high > 0) picture.append(svg("line", {x1: 0, x2: WIDTH, y1: y(0), y2: y(0), class: "wb-zero"}));
  runs.forEach((run, index) => {
    let pen = false;
    const path = run.steps.map((at, place) => {
      const value = run.series[series.name][place];
      const piece = value === null ? "" : `${pen ? "L" : "M"}${x(at).toFixed(1)} ${y(value).toFixed(1)}`;
      pen = value !== null;
      return piece;
    }).join("");
    picture.append(svg("path", {d: path, class: `wb-line wb-line-${index}`}));
  });
  const marker = svg("line", {y1: 0, y2: HEIGHT, x1: x(step), x2: x(step), class: "wb-marker"});
  picture.append(marker);
  const now = h("b", {class: "wb-now"});
  const tell = (at) => {
    const place = runs[0].steps.indexOf(at);
    now.textContent = place < 0 ? "" : number(runs[0].series[series.name][place], 3);
    marker.setAttribute("x1", x(at));
    marker.setAttribute("x2", x(at));
  };
  const nearest = (event) => {
    const box = picture.getBoundingClientRect(), at = first + ((event.clientX - box.left) / box.width) * (last - first);
    return runs[0].steps.reduce((best, one) => (Math.abs(one - at) < Math.abs(best - at) ? one : best), runs[0].steps[0]);
  };
  picture.addEventListener("pointermove", (event) => tell(nearest(event)));
  picture.addEventListener("pointerleave", () => tell(step));
  picture.addEventListener("click", (event) => choose(nearest(event)));
  tell(step);
  return h("figure", {class: "wb-chart"}, h("figcaption", {}, span("", series.title), now),
    div("wb-plot", span("wb-high", number(high)), picture, span("wb-low", number(low))),
    div("wb-steps", span("", `step ${first}`), span("", String(last))));
}

function mountCurves(root, gradio) {
  root.classList.add("tv-colours");
  const choose = (step) => gradio.trigger("select", {step});
  onValue(gradio, (data) => {
    const runs = (data.runs || []).filter((run) => run.steps.length);
    const charts = runs.length ? data.series.map((series) => chart(series, runs, data.step, choose)).filter(Boolean) : [];
    const key = (run, index) => span("tv-key", span(`wb-key wb-key-${index}`), run.name);
    const drawn = charts.length ? div("wb-charts", charts) : data.note ? h("p", {class: "tv-small tv-none"}, data.note) : null;
    root.replaceChildren(div("tv", said({error: data.error}), runs.length > 1 ? div("tv-legend", runs.map(key)) : null, drawn));
  });
}
