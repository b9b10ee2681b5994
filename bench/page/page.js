"use strict";
// The page put together: what is fixed is written once, what the reader chooses is shown again on each change.

const MOST_ANSWERS = 6;

// A paragraph a problem; where they are many, all but the first are folded up.
function answers() {
  const articles = given.answer.map(({ title, lines: said }) =>
    element("article", {}, element("h2", {}, title), ...lines(said)),
  );
  const rest = articles.splice(MOST_ANSWERS);
  if (!rest.length) return articles;
  return [
    ...articles,
    element("details", {}, element("summary", {}, `${rest.length} more problems`), element("div", {}, ...rest)),
  ];
}

function staticTable(table) {
  const words = (at) => (given.words.includes(table.header[at]) ? "" : "number");
  const head = element(
    "tr",
    {},
    ...table.header.map((name, at) => element("th", { scope: "col", className: words(at) }, name)),
  );
  const bodies = table.sections.map((rows) =>
    element(
      "tbody",
      {},
      ...rows.map((row) =>
        element(
          "tr",
          {},
          ...row.map((cell, at) => element("td", { className: `${cell.style} ${words(at)}` }, cell.text)),
        ),
      ),
    ),
  );
  const whole = element(
    "div",
    { className: "scroll", tabIndex: 0, role: "region", "aria-label": table.title },
    element("table", {}, element("thead", {}, head), ...bodies),
  );
  return element(
    "section",
    {},
    element("h2", {}, table.title),
    ...(bodies.length ? [whole] : []),
    ...lines(table.notes),
  );
}

function choice(name, title, options, changed) {
  const radios = options.map(([value, text]) => {
    const radio = element("input", { type: "radio", name, value });
    radio.addEventListener("change", () => {
      state[name] = value;
      changed();
    });
    return element("label", {}, radio, element("span", {}, text));
  });
  return element("fieldset", { className: "choice", "data-choice": name }, element("legend", {}, title), ...radios);
}

function footer() {
  const values = (axis) => [...new Set(cases.map((row) => row[axis]))].filter((value) => value !== "");
  const known = given.environment.filter((axis) => values(axis).length);
  const where = known.map((axis) =>
    element("div", {}, element("dt", {}, label(axis)), element("dd", {}, values(axis).join("; "))),
  );
  return [
    element(
      "p",
      {},
      "A latency is the median over visits of each visit's median, its interval is Student's over visits, and where " +
        "a case has quiet visits they alone count; peak memory is the most above the inputs, in a pass of its own.",
    ),
    element(
      "p",
      {},
      "An error is the worst against exact attention in float64 under the same mask, relative to what is compared, " +
        "and a case beyond its budget has no latency; a rate counts only the pairs that the mask shows.",
    ),
    element("dl", {}, ...where),
  ];
}

function writeOnce() {
  defineColours();
  document.getElementById("heading").replaceChildren(...lines(given.heading));
  document.getElementById("answer").replaceChildren(...answers());
  document.getElementById("tables").replaceChildren(...given.tables.map(staticTable));
  document.querySelector("footer").replaceChildren(...footer());
  const figures = Object.entries(FIGURES).map(([name, figure]) => [name, figure.title]);
  const axes = X_AXES.map((axis) => [axis, X_LABELS[axis] ?? label(axis)]);
  const choices = [
    choice("figure", "figure", figures, changed),
    ...(axes.length > 1 ? [choice("x", "along", axes, changed)] : []),
  ];
  document.getElementById("choices").replaceChildren(...choices);
  buildFilters(changed);
  buildTable(sortChanged);
}

function changed() {
  remember();
  show();
}

// Another order is no reason to draw the figures again.
function sortChanged() {
  remember();
  showTable(cases.filter(isShown), MOST_ROWS);
}

// In the address, without a step in the browser's history for each tick.
function remember() {
  history.replaceState(null, "", `#${toHash()}`);
}

async function show() {
  const shown = cases.filter(isShown);
  showFilters();
  for (const radio of document.querySelectorAll("#choices input")) radio.checked = state[radio.name] === radio.value;
  showAlong();
  const drawnOf = shownRows();
  const legend = howOf(FIGURES[state.figure]).legend(drawnOf);
  document.getElementById("count").replaceChildren(countOf(shown), ...legend);
  showTable(shown, MOST_ROWS);
  await drawFigures(drawnOf, MOST_PANELS);
}

// A figure that has an axis of its own leaves no choice of one.
function showAlong() {
  const along = document.querySelector('#choices fieldset[data-choice="x"]');
  if (along) along.disabled = Boolean(FIGURES[state.figure].x);
}

function countOf(shown) {
  if (!shown.length) return "The filters leave no case: tick at least one value of each.";
  const failed = shown.filter((row) => row.status !== "ok").length;
  return (
    `${shown.length.toLocaleString("en")} of ${cases.length.toLocaleString("en")} cases` +
    (failed ? `, ${failed} of them without a number` : "")
  );
}

function openCase(at) {
  state.case = at;
  remember();
  showDetail();
}

function listen() {
  const dialog = document.getElementById("detail");
  dialog.addEventListener("close", () => {
    state.case = null;
    remember();
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close(); // beside it
  });
  addEventListener("hashchange", () => {
    fromHash();
    show();
    showDetail();
  });
  document.getElementById("more-panels").addEventListener("click", () => drawFigures(shownRows(), Infinity));
  document.getElementById("more-rows").addEventListener("click", () => showTable(cases.filter(isShown), Infinity));
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault(); // the address holds the filters
    document.getElementById("figures").focus();
  });
  listenToTheme();
}

function listenToTheme() {
  const button = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (document.documentElement.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
  const name = () => (button.textContent = isDark() ? "Light" : "Dark");
  button.addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    name();
  });
  system.addEventListener("change", name);
  name();
}

writeOnce();
fromHash();
listen();
show();
if (state.case !== null) showDetail();
