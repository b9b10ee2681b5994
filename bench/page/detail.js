"use strict";
// All that is known of one case: its numbers, its visits sample by sample, where it ran, and how to run it again.

async function showDetail() {
  const dialog = document.getElementById("detail");
  if (state.case === null) {
    dialog.close();
    return;
  }
  const row = cases[state.case];
  const close = element("button", { type: "button", className: "close", "aria-label": "Close" }, "✕");
  close.addEventListener("click", () => dialog.close());
  const chart = element("div", { className: "chart", role: "img", "aria-label": "Samples of each visit, in order" });
  const sampled = row.visited.some((visit) => visit.samples.length);
  dialog.replaceChildren(
    close,
    element("h2", { id: "detail-title" }, swatch(row.variant), ` ${row.exact ? "" : "≈ "}${row.variant}`),
    element("p", { className: "problem" }, problemOf(row)),
    outcomeOf(row),
    facts("Numbers", numbersOf(row)),
    section("Samples", ...(sampled ? [chart] : [element("p", {}, whyNoSamples(row))])),
    section("Visits", visitsTable(row.visited)),
    facts("Memory", memoryOf(row)),
    ...again(row),
    facts(
      "Environment",
      given.environment.map((axis) => [label(axis), row[axis]]),
    ),
  );
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
  if (sampled) await draw(chart, samplesSpec(row));
  dialog.dataset.drawn = row.at;
}

function problemOf(row) {
  const heads = row.kv_heads === row.heads ? row.heads : `${row.heads} (${row.kv_heads} kv)`;
  const sizes = [`length ${row.size}`, `batch ${row.batch}`, `heads ${heads} × ${row.head_dim}`];
  return [row.mask, row.direction, row.dtype, ...sizes, row.device, `${row.cache} cache`].join(" · ");
}

function outcomeOf(row) {
  const bad = given.failures.includes(row.status);
  const held = row.exact
    ? "ok: measured, and checked against exact attention"
    : "ok: measured; an approximation, so not held to exact attention";
  const text = row.status === "ok" ? held : `${row.status}: ${row.reason}`;
  return element("p", { className: `outcome ${bad ? "bad" : ""}` }, text);
}

function numbersOf(row) {
  return [
    ["latency", row.latency_ms === null ? "" : `${significant(row.latency_ms)} ms`],
    ["95 % interval", row.low_ms === null ? "" : `${interval(row)} ms`],
    [`vs ${given.baseline}`, times(row.speedup)],
    ["spread within a visit", percent(row.spread)],
    ["rate", row.tflops === null ? "" : `${significant(row.tflops)} TFLOP/s`],
    ["of ceiling", percent(row.ceiling_share)],
    ["plan", row.plan_ms === null ? "" : `${significant(row.plan_ms)} ms`],
    ["first call", row.first_call_ms === null ? "" : `${significant(row.first_call_ms)} ms`],
    ["kernel", row.kernel],
    ["error", scientific(row.error)],
    ["error budget", scientific(row.error_budget)],
    ["of its budget", percent(row.error_share)],
  ];
}

function memoryOf(row) {
  return [
    ["peak above inputs", size(row.peak_bytes)],
    ["of it plan", size(row.plan_bytes)],
    ["of it result", size(row.result_bytes)],
    ["of it workspace", size(row.workspace_bytes)],
    ["saved for backward", size(row.saved_bytes)],
    ["reserved by the allocator", size(row.reserved_bytes)],
    ["resident peak", size(row.peak_rss_bytes)],
    ["read from", row.memory_source],
  ];
}

function section(title, ...children) {
  return element("section", {}, element("h3", {}, title), ...children);
}

// Pairs of a name and a value; those without a value are left out, and where none has one, that is said.
function facts(title, pairs) {
  const known = pairs.filter(([, value]) => value !== "" && value !== null);
  if (!known.length) return section(title, element("p", {}, "Nothing was measured."));
  return section(
    title,
    element(
      "dl",
      {},
      ...known.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, String(value)))),
    ),
  );
}

function again(row) {
  if (!row.command)
    return [section("Measure it again", element("p", {}, "No command line can ask for a variant of this name alone."))];
  const copy = element("button", { type: "button" }, "Copy");
  copy.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(row.command);
      copy.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(document.getElementById("command"));
    }
  });
  const note = "A variant that is registered in a file of your own needs --import besides.";
  return [
    section("Measure it again", element("pre", { id: "command" }, row.command), copy, " ", element("small", {}, note)),
  ];
}

function visitsTable(visited) {
  const names = ["visit", "latency ms", "spread", "counts", "canary ms", "crowding", "status", "started", "run"];
  const cells = (visit) => [
    visit.visit,
    significant(visit.latency_ms),
    percent(visit.spread),
    visit.counts ? "yes" : "no",
    significant(visit.canary_ms),
    percent(visit.crowding),
    visit.reason ? `${visit.status}: ${visit.reason}` : visit.status,
    visit.started,
    visit.run,
  ];
  const rows = visited.map((visit) =>
    element("tr", {}, ...cells(visit).map((cell) => element("td", {}, String(cell)))),
  );
  const head = element("tr", {}, ...names.map((name) => element("th", { scope: "col" }, name)));
  return element(
    "div",
    { className: "scroll", tabIndex: 0, role: "region", "aria-label": "Visits" },
    element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows)),
  );
}

function whyNoSamples(row) {
  if (given.samples) return "There are none.";
  const many = visits.length.toLocaleString("en");
  return `This page holds ${many} visits, too many to bring their samples along: the CSV has them.`;
}

// A strip a visit, its samples in order from left to right, and a line at its median.
function samplesSpec(row) {
  const strips = row.visited.map((visit, strip) => ({ visit, strip }));
  const samples = strips.flatMap(({ visit, strip }) =>
    visit.samples.map((ms, at) => ({
      x: strip + 0.1 + (0.8 * (at + 0.5)) / visit.samples.length,
      ms,
      counts: visit.counts,
    })),
  );
  const medians = strips
    .filter(({ visit }) => visit.latency_ms !== null)
    .map(({ visit, strip }) => ({ x: strip + 0.06, end: strip + 0.94, ms: visit.latency_ms }));
  const names = strips.map(({ visit }) => `visit ${visit.visit}${visit.counts ? "" : ", not counted"}`);
  const x = { field: "x", type: "quantitative", title: null, scale: { domain: [0, strips.length], nice: false } };
  x.axis = {
    values: strips.map(({ strip }) => strip + 0.5),
    labelExpr: `${JSON.stringify(names)}[floor(datum.value)]`,
    grid: false,
    ticks: false,
  };
  const colour = LOOKS.get(row.variant).colour;
  return {
    width: "container",
    height: 190,
    config: LOOK,
    encoding: {
      x,
      y: {
        field: "ms",
        type: "quantitative",
        title: "one call (ms)",
        scale: { zero: false },
        axis: { domain: false, ticks: false, tickCount: 5 },
      },
    },
    layer: [
      {
        name: "samples",
        data: { values: samples },
        mark: { type: "point", filled: true, size: 14, fill: colour, aria: false },
        encoding: { opacity: { condition: { test: "datum.counts", value: 0.75 }, value: 0.25 } },
      },
      {
        data: { values: medians },
        mark: { type: "rule", stroke: "var(--ink)", strokeWidth: 1.4, aria: false },
        encoding: { x2: { field: "end" } },
      },
    ],
  };
}
