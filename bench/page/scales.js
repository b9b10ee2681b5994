"use strict";
// The axes of the figures: log-log, lengths and bytes in powers of two, labels that a reader knows.

// What all panels share, so that they can be compared: domains, ticks, and the room that marks need above.
function scalesOf(shown, figure) {
  const points = shown.filter((row) => hasPoint(row, figure));
  if (!points.length) return null;
  const values = points.map((row) => row[figure.y]).concat(figure.level ?? [], figure.x ? peaks(points) : []);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const marked = Math.max(0, ...panelsOf(shown).map((panel) => markedVariants(panel.rows).length));
  const room = Math.min(0.05 * marked, 0.45);
  const octaves = Math.log2(high / low);
  const margin = Math.max((figure.x ? 0.12 : 0.06) * octaves, 0.15); // a roof's name stands on it
  const y = [low * 2 ** -margin, low * 2 ** ((octaves + margin) / (1 - room))];
  const round = (figure.binary ? powersOfTwo : decades)(y[0], high * 2 ** margin); // none among the marks
  const yTicks = round.length ? round : [...new Set([low, high])]; // between two round numbers
  const lengths = shown.map(xOf).filter((value) => value > 0);
  const reach = figure.x ? lengths.concat(points.map(ridge).filter((value) => value > 0)) : lengths;
  const x = [Math.min(...reach) / 1.3, Math.max(...reach) * 1.3];
  return { x, y, marked, room, xTicks: xTicks(lengths, x), yTicks };
}

function xTicks(lengths, domain) {
  if (FIGURES[state.figure].x) return decades(...domain);
  const powers = powersOfTwo(Math.min(...lengths), Math.max(...lengths));
  const distinct = [...new Set(lengths)].sort((a, b) => a - b);
  return distinct.some((length) => powers.includes(length)) ? powers : thinned(distinct);
}

function powersOfTwo(low, high) {
  const [first, last] = [Math.ceil(Math.log2(low)), Math.floor(Math.log2(high))];
  return thinned(Array.from({ length: Math.max(0, last - first + 1) }, (_, at) => 2 ** (first + at)));
}

// Every second, third, ... where they are many; the last one always.
function thinned(ticks) {
  const step = Math.max(1, Math.ceil(ticks.length / 7));
  return ticks.filter((_, at) => (ticks.length - 1 - at) % step === 0);
}

function decades(low, high) {
  const octaves = Math.log2(high / low);
  const steps = octaves < 6 ? [1, 2, 5] : octaves < 12 ? [1, 3] : [1];
  const [first, last] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
  const all = Array.from({ length: last - first + 1 }, (_, at) =>
    steps.map((step) => Number(`${step}e${first + at}`)),
  ).flat();
  return all.filter((tick) => tick >= low && tick <= high);
}

// How Vega is told what to write at which tick; it has no say in the words.
function labelled(values, write) {
  return { values, labelExpr: `${JSON.stringify(values.map(write))}[indexof(${JSON.stringify(values)}, datum.value)]` };
}

const plainNumber = (value) => value.toLocaleString("en", { maximumSignificantDigits: 10 });

function roundSize(bytes) {
  const [number, unit] = size(bytes).split(" ");
  return `${plainNumber(Number(number.replace(",", "")))} ${unit}`;
}
