// Inline SVG charts. Each is a figure with a caption, a description, and its numbers as a table.

const MARKERS = [
  (x, y) => s("circle", { cx: x, cy: y, r: 5 }),
  (x, y) => s("rect", { x: x - 4.5, y: y - 4.5, width: 9, height: 9 }),
  (x, y) => s("path", { d: `M${x},${y - 6} l6,10.5 h-12 z` }),
  (x, y) => s("path", { d: `M${x},${y - 6.5} l6.5,6.5 l-6.5,6.5 l-6.5,-6.5 z` }),
  (x, y) => s("path", { d: `M${x - 5},${y - 5} l10,10 m0,-10 l-10,10`, class: "cross" }),
];

/** The mark of a series: after five, shapes and colours are paired anew, so that no two look the same. */
const marker = (i) => MARKERS[(i + Math.floor(i / MARKERS.length)) % MARKERS.length];
/** Values of x that still have room in a chart; the table has all. */
const MOST_X = 16;

function figure(title, note, svg, table) {
  return h("figure", {},
    h("figcaption", {}, h("h3", {}, title), note ? h("p", { class: "note" }, note) : null),
    svg,
    h("details", {}, h("summary", {}, "Numbers"), table));
}

function canvas(width, height, label, ...children) {
  return s("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label, class: "chart" }, ...children);
}

/** Gridlines and labels of a 0-100 % axis. */
function percentAxis(left, right, y) {
  return [0, 0.25, 0.5, 0.75, 1].map((v) => s("g", {},
    s("line", { x1: left, x2: right, y1: y(v), y2: y(v), class: v ? "grid" : "axis" }),
    s("text", { x: left - 8, y: y(v) + 4, class: "tick end" }, `${100 * v} %`)));
}

/** Estimates with intervals and, where trials are missing, bounds. series: [{name, points: [{x, value, low, high, worst, best}]}]. */
function intervalChart(title, note, xLabel, series, table) {
  const [width, height, left, right, top, bottom] = [640, 300, 52, 630, 14, 250];
  const xs = [...new Set(series.flatMap((line) => line.points.map((p) => p.x)))].sort((a, b) => a - b).slice(0, MOST_X);
  const step = (right - left) / xs.length;
  const y = (v) => bottom - v * (bottom - top);
  const shift = (i) => (i - (series.length - 1) / 2) * Math.min(22, (step * 0.7) / series.length);
  const x = (v, i) => left + step * (xs.indexOf(v) + 0.5) + shift(i);
  const marks = series.map((line, i) => s("g", { class: `series s${i % 5}` },
    line.points.filter((p) => xs.includes(p.x)).map((p) => s("g", {},
      s("title", {}, `${line.name}, k = ${p.x}: ${percent(p.value)}, 95 % interval ${percent(p.low)} to ${percent(p.high)}, worst to best case ${percent(p.worst)} to ${percent(p.best)}`),
      p.best > p.worst ? s("line", { x1: x(p.x, i), x2: x(p.x, i), y1: y(p.worst), y2: y(p.best), class: "bounds" }) : null,
      p.value === null ? null : [
        s("line", { x1: x(p.x, i), x2: x(p.x, i), y1: y(p.low), y2: y(p.high), class: "whisker" }),
        marker(i)(x(p.x, i), y(p.value))]))));
  const ticks = xs.map((v) => s("text", { x: left + step * (xs.indexOf(v) + 0.5), y: bottom + 18, class: "tick middle" }, String(v)));
  const legend = h("ul", { class: "legend" }, series.map((line, i) => h("li", {},
    s("svg", { viewBox: "0 0 16 16", class: `swatch series s${i % 5}`, "aria-hidden": "true" }, marker(i)(8, 8)), line.name)));
  const svg = canvas(width, height, `${title}; the numbers are in the table below`,
    percentAxis(left, right, y), ticks,
    s("text", { x: (left + right) / 2, y: height - 10, class: "tick middle" }, xLabel), marks);
  return figure(title, note, h("div", {}, legend, svg), table);
}

/** Columns of shares with a count under each. points: [{x, share, count}]. */
function columnChart(title, note, xLabel, points, table) {
  const [width, height, left, right, top, bottom] = [640, 300, 52, 630, 24, 234];
  const step = (right - left) / Math.max(points.length, 1);
  const wide = Math.min(step * 0.7, 48);
  const y = (v) => bottom - v * (bottom - top);
  const columns = points.map((p, i) => {
    const middle = left + step * (i + 0.5);
    return s("g", {},
      s("title", {}, `${p.x}: ${percent(p.share)} of ${p.count}`),
      s("rect", { x: middle - wide / 2, y: y(p.share), width: wide, height: bottom - y(p.share), class: "bar" }),
      s("text", { x: middle, y: y(p.share) - 5, class: "tick middle strong" }, String(Math.round(100 * p.share))),
      s("text", { x: middle, y: bottom + 17, class: "tick middle" }, String(p.x)),
      points.length <= 20 ? s("text", { x: middle, y: bottom + 33, class: "tick middle faint" }, `n=${p.count}`) : null);
  });
  const svg = canvas(width, height, `${title}; the numbers are in the table below`,
    percentAxis(left, right, y), columns,
    s("text", { x: (left + right) / 2, y: height - 10, class: "tick middle" }, xLabel));
  return figure(title, note, svg, table);
}

/** Horizontal bars of counts, each a link. bars: [{name, count, href}]. */
function barChart(title, note, bars, total, unit) {
  const [width, left, right, line] = [640, 190, 150, 26];
  const most = Math.max(1, ...bars.map((bar) => bar.count));
  const rows = bars.map((bar, i) => {
    const text = total ? `${bar.count} (${percent(bar.count / total)})` : String(bar.count);
    const mark = [
      s("text", { x: left - 10, y: line * i + 18, class: "tick end" }, words(bar.name)),
      s("rect", { x: left, y: line * i + 5, width: Math.max(2, (bar.count / most) * (width - left - right)), height: line - 9, class: "bar" }),
      s("text", { x: left + (bar.count / most) * (width - left - right) + 8, y: line * i + 18, class: "tick strong" }, text)];
    return bar.href ? s("a", { href: bar.href, "aria-label": `${words(bar.name)}: ${text} ${unit}; show them` }, mark) : s("g", {}, mark);
  });
  const table = dataTable(title, ["", unit, total ? "share" : null].filter((v) => v !== null),
    bars.map((bar) => [words(bar.name), String(bar.count), ...(total ? [percent(bar.count / total)] : [])]));
  // Links inside: a group, since the children of an image are hidden from assistive technology.
  const svg = bars.length
    ? s("svg", { viewBox: `0 0 ${width} ${line * bars.length + 6}`, role: "group", "aria-label": title, class: "chart" }, rows)
    : h("p", {}, "None.");
  return figure(title, note, svg, table);
}
