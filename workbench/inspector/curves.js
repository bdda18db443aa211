// Small SVG line charts of runs over their steps. All charts show the step under the pointer and the values there.

const WIDTH = 260, HEIGHT = 96, COLOURS = 6;

function svg(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

const colourOf = (index) => `wb-ink-${index % COLOURS}${index < COLOURS ? "" : " wb-dashed"}`;
const known = (value) => value !== null && value !== undefined;

// Exponential moving average with bias correction and the weight `share` of earlier values. Gaps stay gaps.
function smoothed(values, share) {
  let sum = 0, weight = 0;
  return values.map((value) => {
    if (!known(value)) return null;
    [sum, weight] = [share * sum + (1 - share) * value, share * weight + (1 - share)];
    return sum / weight;
  });
}

// The lines: each run, or the mean of runs that differ only in their seed, with their minimum and maximum.
function linesOf(runs, series, {smooth, bands}) {
  const single = (run) => ({name: run.label, steps: run.steps, values: smoothed(run.series[series.name], smooth), raw: smooth ? run.series[series.name] : null});
  if (!bands) return runs.map(single);
  const families = new Map();
  for (const run of runs) families.set(run.family, [...(families.get(run.family) || []), run]);
  return [...families.values()].map((family) => (family.length < 2 ? single(family[0]) : bandOf(family, series, smooth)));
}

function bandOf(family, series, smooth) {
  const steps = [...new Set(family.flatMap((run) => run.steps))].sort((a, b) => a - b);
  const curves = family.map((run) => new Map(smoothed(run.series[series.name], smooth).map((value, place) => [run.steps[place], value])));
  const at = steps.map((step) => curves.map((run) => run.get(step)).filter(known));
  const each = (pick) => at.map((values) => (values.length ? pick(values) : null));
  const mean = each((values) => values.reduce((sum, value) => sum + value, 0) / values.length);
  return {name: bandName(family), steps, values: mean, low: each((values) => Math.min(...values)), high: each((values) => Math.max(...values))};
}

const bandName = (family) => `${family[0].label} and ${family.length - 1} other ${family.length > 2 ? "seeds" : "seed"}`;

function chart(series, runs, how, {choose, hover}) {
  const lines = linesOf(runs, series, how);
  const points = lines.flatMap((line) => [line.values, line.raw, line.low, line.high].filter(Boolean).flat().filter(known));
  if (!points.length) return null;
  const steps = lines.flatMap((line) => line.steps);
  const [first, last] = [Math.min(...steps), Math.max(...steps)];
  let [low, high] = series.share ? [0, Math.max(0.05, ...points)] : [Math.min(...points), Math.max(...points)];
  if (high - low < 1e-9) [low, high] = [low - 0.5, high + 0.5];
  const x = (at) => (last === first ? WIDTH / 2 : ((at - first) / (last - first)) * WIDTH);
  const y = (value) => HEIGHT - 4 - ((value - low) / (high - low)) * (HEIGHT - 8);
  const text = series.share ? percent : number, ends = lines[0].values.filter(known);
  const label = `${series.title} from ${text(ends[0] ?? null)} to ${text(ends.at(-1) ?? null)}`;
  const frame = {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", class: "wb-curve", "aria-label": label};
  const picture = svg("svg", frame);
  if (low < 0 && high > 0) picture.append(svg("line", {x1: 0, x2: WIDTH, y1: y(0), y2: y(0), class: "wb-zero"}));
  lines.forEach((line, index) => {
    if (line.low) picture.append(svg("path", {d: areaOf(line, x, y), class: `wb-band ${colourOf(index)}`}));
    if (line.raw) picture.append(svg("path", {d: pathOf(line.steps, line.raw, x, y), class: `wb-line wb-raw ${colourOf(index)}`}));
    picture.append(svg("path", {d: pathOf(line.steps, line.values, x, y), class: `wb-line wb-line-${index} ${colourOf(index)}`}));
  });
  const marker = svg("line", {y1: 0, y2: HEIGHT, class: "wb-marker"});
  picture.append(marker);
  const now = span("wb-values"), named = span("wb-at");
  const show = (at) => {
    const value = (line) => line.values[line.steps.indexOf(at)];
    now.replaceChildren(...lines.map((line, index) => h("b", {class: `wb-now${lines.length > 1 ? ` ${colourOf(index)}` : ""}`, title: line.name}, series.share ? percent(value(line)) : number(value(line), 3))));
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
    div("wb-plot", span("wb-high", text(high)), picture, span("wb-low", text(low))),
    div("wb-steps", span("", `step ${first}`), named, span("", String(last))));
  return {figure, show, lines};
}

function pathOf(steps, values, x, y) {
  let pen = false;
  return steps.map((at, place) => {
    const value = values[place], piece = known(value) ? `${pen ? "L" : "M"}${x(at).toFixed(1)} ${y(value).toFixed(1)}` : "";
    pen = known(value);
    return piece;
  }).join("");
}

function areaOf({steps, low, high}, x, y) {
  const corner = (values) => (place) => `${x(steps[place]).toFixed(1)} ${y(values[place]).toFixed(1)}`;
  const there = steps.map((_, place) => place).filter((place) => known(low[place]));
  return there.length ? `M${[...there.map(corner(high)), ...there.reverse().map(corner(low))].join("L")}Z` : "";
}

// The charts of the selected runs. `draw` keeps the selected step; all charts show the values under the pointer.
function curveBoard(choose) {
  const place = div("wb-charts"), legend = div("tv-legend");
  let charts = [], chosen = null;
  const hover = (at) => charts.forEach((one) => one.show(at === null ? chosen : at));
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
