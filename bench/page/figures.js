"use strict";
// The figures: a panel a problem, log-log but for growth, each drawn by Vega-Lite. A gap is a gap: where a variant has
// no number at a length that its panel has, its line breaks, and a mark above says whether it failed or was not tried.

// What most figures are made of and by; GROWTH is the other way.
const CURVES = {
  rows: cases,
  scales: scalesOf,
  spec: specOf,
  notes: notesOf,
  legend: marksLegend,
  numbers: "the table of cases below holds the numbers",
  none: (figure) => `No case here has a number for: ${figure.label}.`,
};
const FIGURES = {
  latency: { title: "Latency", label: "latency (ms)", y: "latency_ms", low: "low_ms", high: "high_ms" },
  memory: { title: "Peak memory", label: "peak memory above inputs", y: "peak_bytes", binary: true },
  speedup: {
    title: "Speed-up",
    label: `times as fast as ${given.baseline}`,
    y: "speedup",
    low: "least_speedup",
    high: "most_speedup",
    level: 1,
  },
  growth: {
    title: "Growth",
    label: "exponent of the length, with its 95 % interval",
    x: "exponent",
    y: "exponent",
    how: GROWTH,
  },
  roofline: { title: "Roofline", label: "TFLOP/s", y: "tflops", x: "intensity" },
  error: { title: "Error", label: "error as a share of its budget", y: "error_share", level: 1 },
};
const X_LABELS = { length: "sequence length", intensity: "operations per byte that must be moved (FLOP/B)" };
const HEIGHT = 260;
const MOST_PANELS = 9; // at first: more are drawn when asked for
const howOf = (figure) => figure.how ?? CURVES;
const xOf = (row) => row[FIGURES[state.figure].x ?? state.x];
const hasPoint = (row, figure) => row[figure.y] > 0 && xOf(row) > 0; // the axes are logarithmic, and exponents so

// The axes whose values a panel has in common: all that vary, but for the one along which its lines run.
function panelAxes() {
  const varying = AXES.filter((axis) => axis !== "variant" && axis !== "size");
  if (state.x === "length" || FIGURES[state.figure].x) return [...varying, "fixed"];
  const lengths = { seq_q: ["seq_kv"], seq_kv: ["seq_q"] }[state.x] ?? ["size"];
  return [...varying, ...lengths].filter((axis) => axis !== state.x);
}

// [title, its cases], in the order of the cases.
function panelsOf(shown) {
  const axes = panelAxes();
  const panels = new Map();
  for (const row of shown) {
    const key = JSON.stringify(axes.map((axis) => row[axis]));
    if (!panels.has(key)) panels.set(key, { title: titleOf(row, axes), rows: [] });
    panels.get(key).rows.push(row);
  }
  return [...panels.values()];
}

function titleOf(row, axes) {
  const bare = ["mask", "direction", "dtype", "device", "device_name", "fixed"];
  const rest = axes.filter((axis) => row[axis] !== "" && axis !== "mask");
  return [
    row.mask,
    ...rest.map((axis) => (bare.includes(axis) ? row[axis] : `${label(axis)} ${words(row[axis])}`)),
  ].join(" · ");
}

// The cases or growths that the filters leave of what the chosen figure shows.
const shownRows = () => howOf(FIGURES[state.figure]).rows.filter(isShown);

let drawing = 0; // which draw is the latest: an older one, still under way, gives up

async function drawFigures(shown, most) {
  const mine = ++drawing;
  const figure = FIGURES[state.figure];
  const how = howOf(figure);
  const panels = panelsOf(shown);
  const scales = how.scales(shown, figure);
  const holder = document.getElementById("panels");
  const made = panels.slice(0, most).map((panel) => ({ ...panel, node: panelElement(panel, figure) }));
  holder.querySelectorAll(".chart").forEach((chart) => chart.finish?.());
  holder.replaceChildren(...made.map((panel) => panel.node));
  holder.classList.toggle("single", made.length === 1);
  offer("more-panels", panels.length - made.length, "panel");
  for (const panel of made) {
    if (mine !== drawing) return;
    const chart = panel.node.querySelector(".chart");
    if (chart && scales) chart.finish = await draw(chart, how.spec(panel.rows, figure, scales), panel.title);
  }
  if (mine === drawing) holder.dataset.drawn = String(mine);
}

function panelElement(panel, figure) {
  const how = howOf(figure);
  const any = panel.rows.some((row) => hasPoint(row, figure));
  const about = `${figure.title}, ${panel.title}; ${how.numbers}`;
  return element(
    "figure",
    {},
    element("figcaption", {}, panel.title),
    any
      ? element("div", { className: "chart", role: "img", "aria-label": about })
      : element("p", { className: "empty" }, how.none(figure)),
    ...how.notes(panel.rows, figure),
  );
}

// What a panel's cases have no point for, and why, folded up: nothing is left out in silence.
function notesOf(rows, figure) {
  const without = rows.filter((row) => !hasPoint(row, figure));
  const reasons = new Map();
  for (const row of without) {
    const why = row.status !== "ok" ? `${row.status} (${row.reason})` : missing(row, figure);
    const key = `${row.exact ? "" : "≈ "}${row.variant}: ${why}`;
    reasons.set(key, [...(reasons.get(key) ?? []), row.size]);
  }
  const notes = [...reasons].map(([key, at]) => `${key} at ${[...new Set(at)].join(", ")}`);
  return folded(`${without.length} of ${rows.length} cases have no point here`, notes);
}

function folded(summary, notes) {
  if (!notes.length) return [];
  const items = notes.map((note) => element("li", {}, note));
  return [element("details", {}, element("summary", {}, summary), element("ul", {}, ...items))];
}

function missing(row, figure) {
  if (row[figure.y] === 0) return "0, which a logarithmic axis cannot show";
  if (figure.y === "speedup") return `${given.baseline} has no latency on this problem`;
  if (figure.y === "tflops" && !row.exact) return "an approximation has no rate, for it need not do all the work";
  return "not measured";
}

const LOOK = {
  background: null,
  font: "system-ui, sans-serif",
  view: { stroke: null },
  axis: {
    labelColor: "var(--soft)",
    titleColor: "var(--soft)",
    gridColor: "var(--line)",
    domainColor: "var(--line)",
    tickColor: "var(--line)",
    labelFontSize: 11,
    titleFontSize: 11,
    titleFontWeight: "normal",
    titlePadding: 8,
  },
};

function specOf(rows, figure, scales) {
  const variants = [...LOOKS.keys()].filter((name) => rows.some((row) => row.variant === name));
  const curves = variants.map((name) => curveOf(name, rows, figure));
  const points = curves.flatMap((curve) => curve.points);
  const x = { field: "x", type: "quantitative", scale: { type: "log", base: 2, domain: scales.x, nice: false } };
  const y = { field: "y", type: "quantitative", scale: { type: "log", base: 2, domain: scales.y, nice: false } };
  x.axis = { ...labelled(scales.xTicks, figure.x ? plainNumber : tokens), grid: false, labelOverlap: true };
  y.axis = { ...labelled(scales.yTicks, figure.binary ? roundSize : plainNumber), domain: false, ticks: false };
  x.title = X_LABELS[figure.x ?? state.x] ?? label(state.x);
  y.title = figure.label;
  const layer = [
    ...(figure.level ? [levelLayer(figure.level)] : []),
    ...(figure.x ? roofLayers(rows, scales) : []),
    ...curves.map(lineLayer),
    ...(figure.low ? [intervalLayer(points), cutLayer(points, scales.y)] : []),
    pointLayer(points, "points"),
    pointLayer(marksOf(rows, scales), "marks"),
  ];
  return { width: "container", height: HEIGHT, config: LOOK, encoding: { x, y }, layer };
}

// A variant's points, and at each place of the panel either one of them or a gap.
function curveOf(variant, rows, figure) {
  const look = LOOKS.get(variant);
  const own = rows.filter((row) => row.variant === variant).toSorted((a, b) => xOf(a) - xOf(b));
  const points = own
    .filter((row) => hasPoint(row, figure))
    .map((row) => ({
      case: row.at,
      x: xOf(row),
      y: row[figure.y],
      low: row[figure.low],
      high: row[figure.high],
      colour: look.colour,
      shape: MARKERS[look.marker],
    }));
  const at = new Map(points.map((point) => [point.x, point.y]));
  const places = figure.x ? own.map(xOf) : [...new Set(rows.map(xOf))].sort((a, b) => a - b);
  return { look, points, line: places.map((place) => ({ x: place, y: at.get(place) ?? null })) };
}

function lineLayer({ look, line }) {
  const dash = look.line.map((length) => 1.6 * length);
  const mark = {
    type: "line",
    stroke: look.colour,
    strokeWidth: 1.6,
    strokeDash: dash,
    invalid: "break-paths-show-domains",
  };
  return { data: { values: line }, mark: { ...mark, aria: false } };
}

function intervalLayer(points) {
  return {
    data: { values: points.filter((point) => point.low !== null) },
    mark: { type: "rule", opacity: 0.7, strokeWidth: 1.3, clip: true, aria: false },
    encoding: { y: { field: "low" }, y2: { field: "high" }, stroke: { field: "colour", type: "nominal", scale: null } },
  };
}

// A caret, its tip on the frame, where that cuts an interval: one from two visits may span decades.
function cutLayer(points, [bottom, top]) {
  const below = points.filter((point) => point.low !== null && point.low < bottom);
  const above = points.filter((point) => point.high !== null && point.high > top);
  const cuts = [
    ...below.map(({ x, colour }) => ({ x, y: bottom, colour, shape: "M-1,-1.6L1,-1.6L0,0Z" })),
    ...above.map(({ x, colour }) => ({ x, y: top, colour, shape: "M-1,1.6L1,1.6L0,0Z" })),
  ];
  return {
    name: "cuts",
    data: { values: cuts },
    mark: { type: "point", size: 40, opacity: 1, strokeWidth: 0, aria: false },
    encoding: {
      fill: { field: "colour", type: "nominal", scale: null },
      shape: { field: "shape", type: "nominal", scale: null },
    },
  };
}

function pointLayer(points, name) {
  const look =
    name === "marks"
      ? { stroke: { field: "colour", type: "nominal", scale: null } }
      : { fill: { field: "colour", type: "nominal", scale: null } };
  const edge =
    name === "marks" ? { strokeWidth: 1.8, fill: "transparent" } : { stroke: "var(--page)", strokeWidth: 0.5 };
  return {
    name,
    data: { values: points },
    mark: { type: "point", size: 70, opacity: 1, cursor: "pointer", aria: false, ...edge },
    encoding: {
      ...look,
      shape: { field: "shape", type: "nominal", scale: null },
      tooltip: { value: "of the case" },
    },
  };
}

function levelLayer(level) {
  return {
    data: { values: [{ y: level }] },
    mark: { type: "rule", stroke: "var(--soft)", strokeDash: [4, 3], aria: false },
    encoding: { x: null },
  };
}

// What has no number though it was asked for; what is unsupported was never to have one.
function isMarked(row) {
  return row.status !== "ok" && row.status !== "unsupported" && !hasPoint(row, FIGURES[state.figure]);
}

const markedVariants = (rows) =>
  [...LOOKS.keys()].filter((name) => rows.some((row) => row.variant === name && isMarked(row)));

// What the marks mean that the figure has.
function marksLegend(shown) {
  const marks = [...new Set(shown.filter(isMarked).map((row) => row.status))];
  return marks.map((status) => element("span", { className: "mark" }, markSwatch(status), ` ${status}`));
}

// Above the lines, a row of marks for each variant that failed or was skipped somewhere.
function marksOf(rows, scales) {
  const [low, high] = scales.y.map(Math.log2);
  const each = scales.room / Math.max(scales.marked, 1);
  return markedVariants(rows).flatMap((variant, line) =>
    rows
      .filter((row) => row.variant === variant && isMarked(row) && xOf(row) > 0)
      .map((row) => ({
        case: row.at,
        x: xOf(row),
        y: 2 ** (high - (high - low) * each * (line + 0.6)),
        colour: LOOKS.get(variant).colour,
        shape: MARKS[row.status] ?? FAILED,
      })),
  );
}

const bound = (row, intensity) => Math.min(row.ceiling_tflops, (row.copy_gb_s * intensity) / 1000);

// The intensity from which on arithmetic is what bounds, not memory; NaN where the run did not measure both.
const ridge = (row) => (row.copy_gb_s > 0 ? (1000 * row.ceiling_tflops) / row.copy_gb_s : NaN);

const peaks = (rows) => rows.map((row) => row.ceiling_tflops).filter((peak) => peak > 0);

// What the machine reached at most, as this run measured it: its fastest product, and copying, at each intensity.
function roofLayers(rows, scales) {
  const known = rows.filter((row) => row.ceiling_tflops > 0 && row.copy_gb_s > 0);
  const roofs = [...new Map(known.map((row) => [`${row.ceiling_tflops} ${row.copy_gb_s}`, row])).values()];
  const corners = roofs.flatMap((row, roof) =>
    [scales.x[0], ridge(row), scales.x[1]].map((x) => ({ roof, x, y: bound(row, x) })),
  );
  const names = roofs.map((row) => ({
    x: scales.x[1],
    y: row.ceiling_tflops,
    text: `${significant(row.ceiling_tflops)} TFLOP/s, copying ${significant(row.copy_gb_s)} GB/s`,
  }));
  return [
    {
      data: { values: corners },
      mark: { type: "line", stroke: "var(--soft)", strokeWidth: 1.2, clip: true, aria: false },
      encoding: { detail: { field: "roof", type: "nominal" } },
    },
    {
      data: { values: names },
      mark: { type: "text", align: "right", dy: -7, fontSize: 10, fill: "var(--soft)", aria: false },
      encoding: { text: { field: "text" } },
    },
  ];
}

// Vega's interpreter needs no eval; its own tips and menu are left out. Returns what undoes the drawing.
async function draw(node, spec) {
  const full = { $schema: "https://vega.github.io/schema/vega-lite/v6.json", ...spec };
  const options = { ast: true, actions: false, renderer: "svg", defaultStyle: false, tooltip: showTip };
  const { view, finalize } = await vegaEmbed(node, full, options);
  view.addEventListener("click", (_, item) => {
    if (item?.datum?.case !== undefined) openCase(item.datum.case);
  });
  return finalize;
}

// Vega says what the pointer left with the item that it left, and no value.
function showTip(_, event, item, value) {
  const tip = document.getElementById("tip");
  tip.hidden = value == null;
  if (tip.hidden) return;
  const { row, title, lines } = tipOf(item.datum);
  tip.replaceChildren(
    element("strong", {}, swatch(row.variant), ` ${row.exact ? "" : "≈ "}${row.variant}${title}`),
    ...lines.map((line) => element("div", {}, line)),
  );
  const { clientX: x, clientY: y } = event;
  const { width, height } = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - width - 8))}px`;
  tip.style.top = `${y + height + 24 > innerHeight ? y - height - 12 : y + 16}px`;
}

// What is told of the case or the growth that this point is of.
function tipOf(datum) {
  if (datum.growth !== undefined) return growthTip(growths[datum.growth]);
  const row = cases[datum.case];
  return { row, title: ` at ${row.size}`, lines: tipLines(row) };
}

function tipLines(row) {
  if (row.status !== "ok")
    return [
      `${row.status}: ${row.reason}`,
      ...(row.error_share === null ? [] : [`error ${times(row.error_share)} its budget`]),
    ];
  const all = [
    `${significant(row.latency_ms)} ms` + (row.low_ms === null ? "" : ` (95 % ${interval(row)})`),
    row.speedup === null ? "" : `${times(row.speedup)} vs ${given.baseline}`,
    row.peak_bytes === null ? "" : `peak memory ${size(row.peak_bytes)}`,
    row.tflops === null
      ? ""
      : `${significant(row.tflops)} TFLOP/s` +
        (row.ceiling_share === null ? "" : `, ${percent(row.ceiling_share)} of ceiling`),
    row.error_share === null ? "" : `error ${times(row.error_share)} its budget`,
    row.kernel && `kernel ${row.kernel}`,
  ];
  return all.filter(Boolean);
}
