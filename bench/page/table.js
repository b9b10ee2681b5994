"use strict";
// The table of all cases that the filters leave, in the order that the reader chose.

const plainColumns = AXES.filter((axis) => axis !== "variant" && axis !== "size").map((axis) => ({
  name: axis,
  text: (row) => words(row[axis]),
}));
const COLUMNS = [
  { name: "variant", text: (row) => (row.exact ? "" : "≈ ") + row.variant },
  { name: "size", sort: (row) => row.seq_q * row.seq_kv, number: true },
  ...plainColumns,
  { name: "status" },
  { name: "latency_ms", title: "latency ms", text: (row) => significant(row.latency_ms), number: true },
  { name: "low_ms", title: "95 % interval", text: interval, number: true },
  { name: "speedup", title: `vs ${given.baseline}`, text: (row) => times(row.speedup), number: true },
  { name: "spread", text: (row) => percent(row.spread), number: true },
  { name: "tflops", title: "TFLOP/s", text: (row) => significant(row.tflops), number: true },
  {
    name: "ceiling_share",
    title: "of ceiling",
    text: (row) => (row.ceiling_share > 1 ? "> 100 %" : percent(row.ceiling_share)),
    number: true,
  },
  { name: "peak_bytes", title: "peak memory", text: (row) => size(row.peak_bytes), number: true },
  { name: "error", text: (row) => scientific(row.error), number: true },
  { name: "error_share", title: "of its budget", text: (row) => percent(row.error_share), number: true },
  { name: "kernel" },
  { name: "quiet", title: "quiet visits", text: (row) => `${row.quiet} of ${row.visits}`, number: true },
  { name: "reason" },
];

const MOST_ROWS = 300; // at first: thousands take a browser a second to lay out
const tableRows = new Map(); // made when first shown; from then on filters and sorting only choose and order them

function buildTable(changed) {
  const heads = COLUMNS.map((column) => {
    const button = element(
      "button",
      { type: "button", title: given.meanings[column.name] ?? "" },
      column.title ?? label(column.name),
    );
    button.addEventListener("click", () => {
      state.descending = state.sort === column.name && !state.descending;
      state.sort = column.name;
      changed();
    });
    return element(
      "th",
      { scope: "col", className: column.number ? "number" : "", "data-column": column.name },
      button,
    );
  });
  const body = element("tbody");
  body.addEventListener("click", (event) => {
    const row = event.target.closest("tr");
    if (row && getSelection().isCollapsed) openCase(Number(row.dataset.case));
  });
  document
    .querySelector("#cases .scroll")
    .replaceChildren(element("table", {}, element("thead", {}, element("tr", {}, ...heads)), body));
}

function tableRow(row) {
  const made = element("tr", {
    className: given.failures.includes(row.status) ? "bad" : row.status === "ok" ? "" : "absent",
    "data-case": row.at,
  });
  for (const column of COLUMNS) {
    const text = column.text ? column.text(row) : words(row[column.name] === "" ? " " : row[column.name]);
    const cell = element("td", { className: column.number ? "number" : column.name });
    if (column.name === "variant") cell.append(element("button", { type: "button" }, swatch(row.variant), text));
    else cell.textContent = text;
    made.append(cell);
  }
  return made;
}

function showTable(shown, most) {
  const first = sorted(shown).slice(0, most);
  for (const row of first) if (!tableRows.has(row)) tableRows.set(row, tableRow(row));
  document.querySelector("#cases tbody").replaceChildren(...first.map((row) => tableRows.get(row)));
  offer("more-rows", shown.length - first.length, "row");
  for (const head of document.querySelectorAll("#cases th")) {
    const here = head.dataset.column === state.sort;
    head.setAttribute("aria-sort", here ? (state.descending ? "descending" : "ascending") : "none");
  }
}

// Numbers as numbers, words as words; what has no value comes last, whichever way.
function sorted(rows) {
  const column = COLUMNS.find(({ name }) => name === state.sort);
  if (!column) return rows;
  const key = column.sort ?? ((row) => row[column.name]);
  const blank = (value) => value === null || value === "";
  const order = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
  return rows.toSorted((one, other) => {
    const [a, b] = [key(one), key(other)];
    if (blank(a) || blank(b)) return blank(a) - blank(b);
    return state.descending ? order(b, a) : order(a, b);
  });
}
