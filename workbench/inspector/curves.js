// Small line charts of runs over their steps, drawn as SVG: all name the step under the pointer and what each run has there.

const WIDTH = 260, HEIGHT = 96, COLOURS = 6;

function svg(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

const colourOf = (index) => `wb-ink-${index % COLOURS}${index < COLOURS ? "" : " wb-dashed"}`;
const known = (value) => value !== null && value !== undefined;

// An exponential mean, corrected for its beginning: `share` of what came before counts on. Gaps stay gaps.
function smoothed(values, share) {
  let sum = 0, weight = 0;
  return values.map((value) => {
    if (!known(value)) return null;
    [sum, weight] = [share * sum + (1 - share) * value, share * weight + (1 - share)];
    return sum / weight;
  });
}

// A line for each run, with what was recorded below it where it is smoothed.
const linesOf = (runs, series, {smooth}) =>
  runs.map((run) => ({name: run.name, steps: run.steps, values: smoothed(run.series[series.name], smooth), raw: smooth ? run.series[series.name] : null}));

function chart(series, runs, how, {choose, hover}) {
  const lines = linesOf(runs, series, how);
  const points = lines.flatMap((line) => [line.values, line.raw].filter(Boolean).flat().filter(known));
  if (!points.length) return null;
  const steps = lines.flatMap((line) => line.steps);
  const [first, last] = [Math.min(...steps), Math.max(...steps)];
  let [low, high] = series.share ? [0, Math.max(0.05, ...points)] : [Math.min(...points), Math.max(...points)];
  if (high - low < 1e-9) [low, high] = [low - 0.5, high + 0.5];
  const x = (at) => (last === first ? WIDTH / 2 : ((at - first) / (last - first)) * WIDTH);
  const y = (value) => HEIGHT - 4 - ((value - low) / (high - low)) * (HEIGHT - 8);
  const ends = lines[0].values.filter(known);
  const label = `${series.title} from ${number(ends[0] ?? null)} to ${number(ends.at(-1) ?? null)}`;
  const frame = {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", class: "wb-curve", "aria-label": label};
  const picture = svg("svg", frame);
  if (low < 0 && high > 0) picture.append(svg("line", {x1: 0, x2: WIDTH, y1: y(0), y2: y(0), class: "wb-zero"}));
  lines.forEach((line, index) => {
    if (line.raw) picture.append(svg("path", {d: pathOf(line.steps, line.raw, x, y), class: `wb-line wb-raw ${colourOf(index)}`}));
    picture.append(svg("path", {d: pathOf(line.steps, line.values, x, y), class: `wb-line wb-line-${index} ${colourOf(index)}`}));
  });
  const marker = svg("line", {y1: 0, y2: HEIGHT, class: "wb-marker"});
  picture.append(marker);
  const now = span("wb-values"), named = span("wb-at");
  const tell = (at) => {
    const value = (line) => line.values[line.steps.indexOf(at)];
    now.replaceChildren(...lines.map((line, index) => h("b", {class: `wb-now${lines.length > 1 ? ` ${colourOf(index)}` : ""}`, title: line.name}, number(value(line), 3))));
    named.textContent = known(at) ? `step ${at}` : "";
    marker.setAttribute("visibility", known(at) ? "visible" : "hidden");
    for (const end of ["x1", "x2"]) marker.setAttribute(end, x(known(at) ? at : first));
  };
  const all = [...new Set(steps)];
  const nearest = (event) => {
    const box = picture.getBoundingClientRect(), at = first + ((event.clientX - box.left) / box.width) * (last - first);
    return all.reduce((best, one) => (Math.abs(one - at) < Math.abs(best - at) ? one : best), all[0]);
  };
  picture.addEventListener("pointermove", (event) => hover(nearest(event)));
  picture.addEventListener("pointerleave", () => hover(null));
  picture.addEventListener("click", (event) => choose(nearest(event)));
  const figure = h("figure", {class: "wb-chart"}, h("figcaption", {}, span("", series.title), now),
    div("wb-plot", span("wb-high", number(high)), picture, span("wb-low", number(low))),
    div("wb-steps", span("", `step ${first}`), named, span("", String(last))));
  return {figure, tell, lines};
}

function pathOf(steps, values, x, y) {
  let pen = false;
  return steps.map((at, place) => {
    const value = values[place], piece = known(value) ? `${pen ? "L" : "M"}${x(at).toFixed(1)} ${y(value).toFixed(1)}` : "";
    pen = known(value);
    return piece;
  }).join("");
}

// The charts of the drawn runs. `draw` keeps the step that is chosen; what the pointer is at is told by all of them.
function curveBoard(choose) {
  const place = div("wb-charts"), legend = div("tv-legend");
  let charts = [], chosen = null;
  const hover = (at) => charts.forEach((one) => one.tell(at === null ? chosen : at));
  const draw = (data, how, step) => {
    const runs = data.runs.filter((run) => run.steps.length);
    chosen = step;
    charts = runs.length ? data.series.map((series) => chart(series, runs, how, {choose, hover})).filter(Boolean) : [];
    const key = (line, index) => span("tv-key", span(`wb-key ${colourOf(index)}`), h("bdi", {}, line.name));
    legend.replaceChildren(...(charts.length && charts[0].lines.length > 1 ? charts[0].lines.map(key) : []));
    place.replaceChildren(...charts.map((one) => one.figure));
    hover(null);
    return charts.length;
  };
  return {parts: [legend, place], draw, mark: (step) => ((chosen = step), hover(null))};
}
