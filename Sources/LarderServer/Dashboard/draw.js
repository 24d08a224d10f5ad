// Drawings in SVG: a series over time, a strip of ranges, a curve over capacity.
import { draw, make, replace, setText } from "./dom.js";
import { clock } from "./format.js";

const [LEFT, TOP, BOTTOM] = [64, 6, 18];
const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500];

// The distance of about three grid lines; `base` is 1024 for bytes.
function gridStep(most, base) {
  if (!(most > 0)) return 1;
  const power = base ** Math.floor(Math.log(most / 3) / Math.log(base) + 1e-9);
  return power * (STEPS.find((step) => step * power >= most / 3) ?? base);
}

// An SVG that follows the width of its place.
function canvas(label, height, signal, render) {
  const svg = draw("svg", { height, role: "img", "aria-label": label });
  const observer = new ResizeObserver(([{ contentRect: { width } }]) => {
    if (!width) return;
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    render(width);
  });
  observer.observe(svg);
  signal.addEventListener("abort", () => observer.disconnect());
  return svg;
}

const level = (y, right, text, kind) => [draw("line", { x1: LEFT, x2: right, y1: y, y2: y, class: kind }), draw("text.end", { x: LEFT - 6, y: y + 4 }, text)];
const sample = (css, isLine) => draw("svg.sample", { width: 16, height: 9, "aria-hidden": "true" }, isLine ? draw(`path.${css}.line`, { d: "M0 5H16" }) : draw(`rect.${css}`, { width: 16, height: 9 }));
const legendEntry = (name, css, value, isLine) => make("span", sample(css, isLine), name, value);

const steps = (low, high, step) => Array.from({ length: Math.floor((high - low) / step + 1.001) }, (_, index) => low + index * step);

// The ends of a logarithmic axis, and its lines: powers of ten, at most five of them.
function decades(values) {
  const [least, most] = [Math.min(...values), Math.max(...values)].map((value) => Math.log10(value));
  const low = values.length ? Math.floor(least) : -3;
  const high = values.length ? Math.max(Math.ceil(most), low + 1) : 0;
  const every = Math.ceil((high - low) / 4);
  return { low, high, levels: steps(low, high, every) };
}

// Series over time. Each of `series` is [name, class, kind]: `area` (stacked upwards), `below` (zero) or `line`.
// `isLogarithmic`: of lines; `timeText` labels the axis.
export function seriesChart({ label, height, series, format, base = 1000, seconds = 900, step = 1, isLogarithmic, timeText = clock, signal }) {
  const [grid, cursor, time] = [draw("g.lines"), draw("line.cursor", { y1: TOP, y2: height - BOTTOM }), make("span.time")];
  const values = series.map(() => make("b", "–"));
  const paths = series.map(([, css, kind]) => draw(`path.${css}.${kind}`));
  let [width, points, picked, end, x, y] = [0, [], null];
  const svg = canvas(label, height, signal, (newWidth) => { width = newWidth; render(); });
  svg.append(grid, ...paths, cursor);
  svg.addEventListener("pointermove", ({ offsetX }) => pick(end - ((width - offsetX) / (width - LEFT)) * seconds * 1000));
  svg.addEventListener("pointerleave", () => pick(null));

  const kind = (index) => series[index][2];
  const stack = (point, last) => point.values.reduce((sum, value, index) => sum + (index <= last && kind(index) === "area" ? value : 0), 0);
  const top = (point, index) => ({ area: stack(point, index), below: -point.values[index], line: point.values[index] })[kind(index)];
  const bottom = (point, index) => (kind(index) === "area" ? stack(point, index - 1) : 0);

  // The vertical axis; returns its lines as pairs of a value and a place.
  function scale() {
    const place = (low, high) => (value) => TOP + ((high - value) / (high - low)) * (height - TOP - BOTTOM);
    if (isLogarithmic) {
      const { low, high, levels } = decades(points.flatMap((point) => point.values.filter((value) => value > 0)));
      const at = place(low, high);
      y = (value) => at(Math.max(low, Math.log10(value)));
      return levels.map((power) => [10 ** power, at(power)]);
    }
    let [above, below] = [0, 0];
    for (const point of points) for (const index of series.keys()) [above, below] = [Math.max(above, top(point, index)), Math.min(below, top(point, index))];
    const distance = gridStep(Math.max(above, -below), base);
    const [high, low] = [Math.max(1, Math.ceil(above / distance)) * distance, Math.floor(below / distance) * distance];
    y = place(low, high);
    return steps(low, high, distance).map((value) => [value, y(value)]);
  }

  function render() {
    const lines = scale().map(([value, at]) => level(Math.round(at) + 0.5, width, format(Math.abs(value)), value === 0 && "zero"));
    end = points.at(-1)?.time ?? Date.now();
    x = (at) => width - ((end - at) / 1000 / seconds) * (width - LEFT);
    const times = ["end", "middle", "start"].map((anchor, index) => {
      const at = end - seconds * 500 * index;
      return draw(`text.${anchor}`, { x: x(at), y: height - 4 }, timeText(at));
    });
    replace(grid, lines, times);
    paths.forEach((path, index) => path.setAttribute("d", shape(index)));
    showPicked();
  }

  // A gap in time is a gap in the drawing.
  function shape(index) {
    const runs = [];
    let last = -Infinity;
    for (const point of points.filter(({ values: all }) => all[index] !== null)) {
      if (point.time - last > step * 2500) runs.push([]);
      runs.at(-1).push(point);
      last = point.time;
    }
    const place = (value) => (point) => `${x(point.time).toFixed(1)} ${y(value(point, index)).toFixed(1)}`;
    return runs.map((run) => `M${run.map(place(top)).join("L")}${kind(index) === "line" ? "" : `L${run.reverse().map(place(bottom)).join("L")}Z`}`).join("");
  }

  // Shows the values below the pointer, or the last ones.
  function showPicked() {
    const distance = (point) => Math.abs(point.time - picked);
    const point = picked ? points.reduce((best, other) => (distance(other) < distance(best) ? other : best), points[0]) : points.at(-1);
    values.forEach((value, index) => setText(value, format(point?.values[index])));
    setText(time, picked && point ? timeText(point.time) : "");
    cursor.setAttribute("visibility", picked && point ? "visible" : "hidden");
    if (point) cursor.setAttribute("transform", `translate(${x(point.time)})`);
  }

  const pick = (at) => showPicked((picked = at));
  return {
    element: make("figure", make("div.legend", series.map(([name, css, form], index) => legendEntry(name, css, values[index], form === "line")), time), svg),
    update(newPoints) {
      points = newPoints;
      if (width) render();
    },
  };
}

// Rows of ranges over one axis. Each row is [name, class, spans {from, to, strength, hint}]; strength is 0 to 1.
export function strip(label) {
  const element = make("figure.strip");
  function update({ length, rows, format }) {
    const scale = (value) => (value / Math.max(length, 1e-9)) * 1000;
    const bar = (css, { from, to, strength, hint }) => draw(`rect.${css}`, {
      x: scale(from), width: Math.max(0.8, scale(to - from)), height: 20, "fill-opacity": 0.12 + 0.88 * strength,
    }, draw("title", hint ?? `${format(from)} to ${format(to)}`));
    const lines = rows.map(([name, css, spans]) => make("div.row", name,
      draw("svg", { viewBox: "0 0 1000 20", height: 20, preserveAspectRatio: "none", role: "img", "aria-label": `${label}: ${name}` },
        draw("rect.ground", { width: 1000, height: 20 }), spans.filter(({ strength }) => strength > 0).map((span) => bar(css, span)))));
    replace(element, lines, make("div.row.axis", make("span"), make("div", [0, 0.5, 1].map((share) => make("span", format(length * share))))));
  }
  return { element, update };
}

// Curves of shares (0 to 1) over a logarithmic capacity. Each of `curves` is [name, class, points {x, y}]; `mark` is a capacity.
export function curveChart({ label, height, format, signal }) {
  const legend = make("div.legend");
  let [width, curves, mark] = [0, []];
  const svg = canvas(label, height, signal, (newWidth) => { width = newWidth; render(); });

  function render() {
    const points = curves.flatMap(([, , own]) => own);
    if (!points.length || !width) return;
    const [least, most] = [Math.min(...points.map((point) => point.x)), Math.max(...points.map((point) => point.x))];
    const highest = Math.max(0.1, Math.ceil(Math.max(...points.map((point) => point.y)) * 10) / 10);
    const x = (value) => LEFT + (Math.log(value / least) / Math.log(Math.max(2, most / least))) * (width - LEFT - 30);
    const y = (value) => TOP + (1 - value / highest) * (height - TOP - BOTTOM);
    const lines = [0, 0.5, 1].map((share) => level(Math.round(y(share * highest)) + 0.5, width, `${Math.round(share * highest * 100)} %`));
    const sizes = [least, Math.sqrt(least * most), most].map((value) => draw("text.middle", { x: x(value), y: height - 4 }, format(value)));
    const drawn = curves.map(([name, css, own]) => [
      draw(`path.${css}.line`, { d: `M${own.map((point) => `${x(point.x)} ${y(point.y)}`).join("L")}` }),
      own.map((point) => draw(`circle.${css}`, { cx: x(point.x), cy: y(point.y), r: 3 }, draw("title", `${name}, ${format(point.x)}: ${(point.y * 100).toFixed(1)} %`))),
    ]);
    replace(svg, draw("g.lines", lines, sizes, draw("line.cursor", { transform: `translate(${x(mark)})`, y1: TOP, y2: height - BOTTOM })), drawn);
    replace(legend, curves.map(([name, css]) => legendEntry(name, css, null, true)));
  }
  function update(newCurves, newMark) {
    [curves, mark] = [newCurves, newMark];
    render();
  }
  return { element: make("figure", legend, svg), update };
}
