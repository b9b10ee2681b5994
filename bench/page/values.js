"use strict";
// What the page was given, as rows; how numbers are written; and elements made of text, never of markup.

const given = JSON.parse(document.getElementById("data").textContent);

function rowsOf(columns) {
  const names = Object.keys(columns);
  const read = names.map((name) => {
    const column = columns[name];
    return Array.isArray(column) ? (row) => column[row] : (row) => column.words[column.at[row]];
  });
  const first = columns[names[0]];
  const count = (Array.isArray(first) ? first : first.at).length;
  return Array.from({ length: count }, (_, row) => Object.fromEntries(names.map((name, at) => [name, read[at](row)])));
}

const cases = rowsOf(given.cases);
const visits = rowsOf(given.visits);
const growths = rowsOf(given.growths);
cases.forEach((row, at) => Object.assign(row, { at, size: lengthOf(row), visited: [] }));
growths.forEach((row, at) => Object.assign(row, { at }));
visits.forEach((visit, at) => {
  visit.samples = given.samples ? given.samples[at] : [];
  cases[visit.case].visited.push(visit);
});

function lengthOf(row) {
  return row.seq_q === row.seq_kv ? String(row.seq_q) : `${row.seq_q} × ${row.seq_kv}`;
}

const threeDigits = new Intl.NumberFormat("en", { minimumSignificantDigits: 3, maximumSignificantDigits: 3 });

// Three significant digits, never in powers of ten; nothing for what is missing.
function significant(value) {
  return value == null ? "" : value === 0 ? "0" : threeDigits.format(value);
}

function size(bytes) {
  if (bytes == null) return "";
  const power = bytes < 1 ? 0 : Math.min(Math.floor(Math.log2(bytes) / 10), 4);
  return power ? `${significant(bytes / 1024 ** power)} ${["B", "KiB", "MiB", "GiB", "TiB"][power]}` : `${bytes} B`;
}

const times = (ratio) => (ratio == null ? "" : `${significant(ratio)}x`);
const scientific = (value) => (value == null ? "" : value.toExponential(1));

function percent(share) {
  if (share == null) return "";
  const value = 100 * share;
  return `${value >= 9.95 ? value.toFixed(0) : value >= 0.95 ? value.toFixed(1) : Number(value.toPrecision(1))} %`;
}

const interval = (row) => (row.low_ms == null ? "" : `${significant(row.low_ms)}–${significant(row.high_ms)}`);
const words = (value) => (value === "" || value == null ? "none" : String(value));
const label = (axis) => (axis === "size" ? "length" : axis.replaceAll("_", " "));

// A length in short where it is round: 512, 1000, 1.5k, 16k, 1M.
function tokens(count) {
  if (count >= 2 ** 20 && count % 2 ** 20 === 0) return `${count / 2 ** 20}M`;
  return count >= 1024 && count % 512 === 0 ? `${count / 1024}k` : String(count);
}

// An element with these properties and children; a string becomes a text node, whatever it holds.
function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key in made) made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

// A button that shows what was left out, while anything was.
function offer(id, left, what) {
  const button = document.getElementById(id);
  button.hidden = left < 1;
  button.textContent = `Show ${left.toLocaleString("en")} more ${what}${left === 1 ? "" : "s"}`;
}

function lines(cells) {
  return cells.map((cell) => element("p", { className: cell.style }, cell.text));
}
