"use strict";
// The growth figure: the exponents with which latency and peak memory grow with the length; a panel a problem, a row
// a variant.

const QUANTITIES = [
  { name: "latency_ms", title: "latency", offset: -6, text: (ms) => `${significant(ms)} ms` },
  { name: "peak_bytes", title: "peak memory", offset: 6, text: (bytes) => size(Math.round(bytes)), hollow: true },
];
const POWERS = [
  [1, "linear"],
  [2, "quadratic"],
];
const ROW_HEIGHT = 28;
const GROWTH = {
  rows: growths,
  scales: growthScales,
  spec: growthSpec,
  notes: growthNotes,
  legend: growthLegend,
  numbers: "the tables of how it scales, below, hold the numbers",
  none: () => "No growth could be fitted here: the reasons stand below.",
};

// What all panels share, so that they can be compared: how far the exponents reach, and which variant has which row.
function growthScales(shown) {
  const fitted = shown.filter((row) => row.exponent !== null);
  if (!fitted.length) return null;
  const furthest = Math.max(2.2, ...fitted.map((row) => row.high)) + 0.1;
  return {
    x: [0, furthest],
    xTicks: Array.from({ length: Math.floor(2 * furthest) + 1 }, (_, at) => at / 2),
    variants: [...LOOKS.keys()].filter((name) => fitted.some((row) => row.variant === name)),
  };
}

function growthSpec(rows, figure, scales) {
  const x = { field: "x", type: "quantitative", scale: { domain: scales.x, nice: false }, title: figure.label };
  const y = { field: "y", type: "nominal", scale: { domain: [...scales.variants.keys()] }, title: null };
  x.axis = { ...labelled(scales.xTicks, powerLabel), grid: false, labelOverlap: true };
  y.axis = { labelExpr: "names[datum.value]", grid: true, domain: false, ticks: false, labelLimit: 140 };
  return {
    width: "container",
    height: ROW_HEIGHT * scales.variants.length,
    config: LOOK,
    params: [{ name: "names", value: scales.variants.map(named) }], // as values: in an expression they could break it
    encoding: { x, y },
    layer: [powersLayer(), ...QUANTITIES.flatMap((quantity) => growthLayers(rows, quantity, scales.variants))],
  };
}

const powerLabel = (power) => [String(power), new Map(POWERS).get(power) ?? ""];

const named = (variant) => (isApproximate(variant) ? "≈ " : "") + variant;

function powersLayer() {
  return {
    name: "powers",
    data: { values: POWERS.map(([x]) => ({ x })) },
    mark: { type: "rule", stroke: "var(--soft)", strokeDash: [4, 3], aria: false },
    encoding: { y: null },
  };
}

// A point at each exponent on its interval; memory is hollow, and a little below latency.
function growthLayers(rows, quantity, variants) {
  const points = rows
    .filter((row) => row.quantity === quantity.name && row.exponent !== null)
    .map((row) => growthPoint(row, variants.indexOf(row.variant)));
  const colour = { field: "colour", type: "nominal", scale: null };
  const same = { yOffset: quantity.offset, aria: false };
  return [
    {
      data: { values: points },
      mark: { type: "rule", opacity: 0.7, strokeWidth: 1.3, ...same },
      encoding: { x: { field: "low" }, x2: { field: "high" }, stroke: colour },
    },
    {
      name: quantity.name,
      data: { values: points },
      mark: { type: "point", size: 56, opacity: 1, strokeWidth: 1.3, ...same },
      encoding: {
        stroke: colour,
        fill: quantity.hollow ? { value: "var(--page)" } : colour,
        shape: { field: "shape", type: "nominal", scale: null },
        tooltip: { value: "of the growth" },
      },
    },
  ];
}

function growthPoint(row, y) {
  const look = LOOKS.get(row.variant);
  const { at: growth, exponent: x, low, high } = row;
  return { growth, x, y, low, high, colour: look.colour, shape: MARKERS[look.marker] };
}

// What has no exponent, and why; of both quantities at once where the reason is the same.
function growthNotes(rows) {
  const without = rows.filter((row) => row.exponent === null);
  const reasons = new Map();
  for (const row of without) {
    const why = row.lengths ? row.reason : "no length has a number";
    const key = JSON.stringify([row.variant, why]);
    reasons.set(key, [...(reasons.get(key) ?? []), row.quantity]);
  }
  const notes = [...reasons].map(([key, quantities]) => {
    const [variant, why] = JSON.parse(key);
    const of = quantities.length < QUANTITIES.length ? `, ${quantityOf(quantities[0]).title}` : "";
    return `${named(variant)}${of}: ${why}`;
  });
  return folded(`${without.length} of ${rows.length} growths have no point here`, notes);
}

const quantityOf = (name) => QUANTITIES.find((quantity) => quantity.name === name);

// Filled and hollow in words; and that a fit is over all lengths, whichever of them are ticked.
function growthLegend(shown) {
  const fitted = QUANTITIES.filter(({ name }) => shown.some((row) => row.quantity === name && row.exponent !== null));
  const faces = fitted.map(({ title, hollow }) => element("span", { className: "mark" }, face(hollow), ` ${title}`));
  const note = "A growth is over all lengths: the filter on length leaves it as it is.";
  return [...faces, ...(state.hidden.size?.size ? [element("span", { className: "aside" }, note)] : [])];
}

function face(hollow) {
  const fill = hollow ? "none" : "currentColor";
  return drawn({ d: MARKERS.o, fill, stroke: "currentColor", "stroke-width": 0.35, transform: "scale(4)" });
}

function growthTip(row) {
  const { title, text } = quantityOf(row.quantity);
  const interval = `${row.low.toFixed(2)}–${row.high.toFixed(2)}`;
  const strays = `${row.strays} of them far off this law, and hardly counted`;
  return {
    row,
    title: `, ${title}`,
    lines: [
      `n^${row.exponent.toFixed(2)} (${interval}), of ${row.lengths} lengths`,
      row.fixed_cost > 0 ? `fixed cost ${text(row.fixed_cost)}` : "no fixed cost",
      ...(row.strays ? [strays] : []),
    ],
  };
}
