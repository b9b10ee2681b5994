"use strict";
// What the reader has chosen: figure, axis, order and filters. It stands in the address, so that it can be linked.

const varies = (axis) => new Set(cases.map((row) => row[axis])).size > 1;
const TIED = cases.every((row) => row.heads === row.kv_heads) ? ["kv_heads"] : []; // then heads tells all
const AXES = ["variant", ...given.axes, "size"].filter((axis) => varies(axis) && !TIED.includes(axis));
const VALUES = Object.fromEntries(AXES.map((axis) => [axis, valuesOf(axis)]));
const CROSSED = cases.some((row) => row.seq_q !== row.seq_kv) ? ["seq_q", "seq_kv"] : [];
const SWEPT = [...CROSSED, "batch", "heads", "kv_heads", "head_dim", "threads"];
const X_AXES = ["length", ...SWEPT.filter((axis) => varies(axis) && !TIED.includes(axis))];

const state = { figure: "latency", x: "length", sort: "", descending: false, case: null, hidden: {} };

// As the cases have them, which is simple masks first; numbers by size, and variants as in the legend.
function valuesOf(axis) {
  const values = [...new Set(cases.map((row) => row[axis]))];
  if (axis === "variant") return given.looks.map((look) => look.variant);
  if (axis === "size")
    return [...new Set(cases.toSorted((a, b) => a.seq_q - b.seq_q || a.seq_kv - b.seq_kv).map((r) => r.size))];
  return typeof values[0] === "number" ? values.sort((a, b) => a - b) : values;
}

// Of a case or a growth. A growth has no length of its own, so that the filter on length passes it.
function isShown(row) {
  return AXES.every((axis) => !state.hidden[axis].has(String(row[axis])));
}

function toHash() {
  const hash = new URLSearchParams();
  for (const key of ["figure", "x", "sort"]) if (state[key] !== defaults[key]) hash.set(key, state[key]);
  if (state.descending) hash.set("descending", "1");
  if (state.case !== null) hash.set("case", state.case);
  for (const axis of AXES) {
    if (!state.hidden[axis].size) continue;
    const kept = VALUES[axis].map(String).filter((value) => !state.hidden[axis].has(value));
    for (const value of kept.length ? kept : [""]) hash.append(`show.${axis}`, value);
  }
  return hash.toString();
}

// Whatever the address does not say, or says of things that are not here, is as at first.
function fromHash() {
  const hash = new URLSearchParams(location.hash.slice(1));
  const known = (key, accepted) => (accepted.includes(hash.get(key)) ? hash.get(key) : defaults[key]);
  state.figure = known("figure", Object.keys(FIGURES));
  state.x = known("x", X_AXES);
  state.sort = known(
    "sort",
    COLUMNS.map((column) => column.name),
  );
  state.descending = hash.has("descending");
  const at = hash.has("case") ? Number(hash.get("case")) : NaN;
  state.case = cases[at] ? at : null;
  for (const axis of AXES) {
    const wanted = new Set(hash.getAll(`show.${axis}`));
    const all = VALUES[axis].map(String);
    state.hidden[axis] = new Set(wanted.size ? all.filter((value) => !wanted.has(value)) : []);
  }
}

const defaults = { figure: state.figure, x: state.x, sort: state.sort };

// A checkbox for each value of each axis that has more than one. Those of the variants are the legend, too.
function buildFilters(changed) {
  const sets = AXES.map((axis) => {
    const boxes = VALUES[axis].map((value) => checkbox(axis, String(value), changed));
    const every = element("button", { type: "button", className: "every" }, "all / none");
    every.addEventListener("click", () => {
      const hidden = state.hidden[axis];
      state.hidden[axis] = new Set(hidden.size ? [] : VALUES[axis].map(String));
      changed();
    });
    return element("fieldset", { "data-axis": axis }, element("legend", {}, label(axis), " ", every), ...boxes);
  });
  document.getElementById("filters").replaceChildren(...sets);
}

function checkbox(axis, value, changed) {
  const box = element("input", { type: "checkbox", "data-axis": axis, value });
  box.addEventListener("change", () => {
    state.hidden[axis][box.checked ? "delete" : "add"](value);
    changed();
  });
  const text = (axis === "variant" && isApproximate(value) ? "≈ " : "") + words(value);
  return element("label", {}, box, ...(axis === "variant" ? [swatch(value)] : []), text);
}

function isApproximate(variant) {
  return cases.some((row) => row.variant === variant && !row.exact);
}

function showFilters() {
  for (const box of document.querySelectorAll("#filters input")) {
    box.checked = !state.hidden[box.dataset.axis].has(box.value);
  }
}
