"use strict";
// A variant's looks: the colour, marker and dashes of the other figures, as CSS and SVG have them.

// What a case that has no number is marked with: an asterisk for what failed, a cross, an upright, a dash.
const FAILED = "M-1,0L1,0M-.5,-.87L.5,.87M-.5,.87L.5,-.87";
const MARKS = { oom: "M-.8,-.8L.8,.8M-.8,.8L.8,-.8", timeout: "M0,-1L0,1", skipped: "M-1,0L1,0" };
// Matplotlib's markers as paths around the origin.
const MARKERS = {
  o: "M1,0A1,1 0 1,1 -1,0A1,1 0 1,1 1,0Z",
  s: "M-.85,-.85L.85,-.85L.85,.85L-.85,.85Z",
  D: "M0,-1.1L1.1,0L0,1.1L-1.1,0Z",
  "^": "M0,-1L1,.8L-1,.8Z",
  v: "M0,1L1,-.8L-1,-.8Z",
  "<": "M-1,0L.8,-1L.8,1Z",
  ">": "M1,0L-.8,-1L-.8,1Z",
  P: "M-.4,-1L.4,-1L.4,-.4L1,-.4L1,.4L.4,.4L.4,1L-.4,1L-.4,.4L-1,.4L-1,-.4L-.4,-.4Z",
  X: "M0,-.5L.5,-1L1,-.5L.5,0L1,.5L.5,1L0,.5L-.5,1L-1,.5L-.5,0L-1,-.5L-.5,-1Z",
  "*": polygon(5, 0.45, 1.25),
  p: polygon(5),
  h: polygon(6),
};
const LOOKS = new Map(given.looks.map((look, at) => [look.variant, { ...look, colour: `var(--variant-${at})` }]));

// A regular polygon with a corner at the top, or a star where the corners between lie further in.
function polygon(corners, inner = null, outer = 1.05) {
  const count = inner === null ? corners : 2 * corners;
  const points = Array.from({ length: count }, (_, at) => {
    const radius = inner !== null && at % 2 ? inner : outer;
    const turn = (2 * Math.PI * at) / count;
    return `${(radius * Math.sin(turn)).toFixed(2)},${(-radius * Math.cos(turn)).toFixed(2)}`;
  });
  return `M${points.join("L")}Z`;
}

// Each variant has its colour in both themes: on a dark ground, one that would not be seen is mixed with white.
function defineColours() {
  given.looks.forEach(({ colour }, at) => {
    document.documentElement.style.setProperty(`--variant-${at}`, `light-dark(${colour}, ${lightened(colour)})`);
  });
}

function lightened(colour) {
  const channels = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  const mixed = (share) => channels.map((channel) => channel + share * (255 - channel));
  const shares = Array.from({ length: 21 }, (_, step) => step / 20);
  return `rgb(${mixed(shares.find((share) => luminance(mixed(share)) > 0.25)).map(Math.round)})`;
}

// Relative luminance, https://www.w3.org/TR/WCAG22/#dfn-relative-luminance
function luminance(channels) {
  const [r, g, b] = channels.map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

// A line and a marker, as in the figures.
function swatch(variant) {
  const look = LOOKS.get(variant);
  const dash = look.line.map((length) => 1.6 * length).join(" ");
  return drawn(
    { d: "M-14,0L14,0", stroke: look.colour, "stroke-width": 1.6, "stroke-dasharray": dash },
    { d: MARKERS[look.marker], fill: look.colour, transform: "scale(4.2)" },
  );
}

const markSwatch = (status) =>
  drawn({ d: MARKS[status] ?? FAILED, stroke: "currentColor", "stroke-width": 0.45, transform: "scale(4)" });

function drawn(...paths) {
  const make = (name, attributes) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };
  const width = paths.length > 1 ? 28 : 12; // a marker alone, or on its line
  const drawing = make("svg", { viewBox: `${-width / 2} -6 ${width} 12`, width, height: 12, "aria-hidden": "true" });
  drawing.append(...paths.map((path) => make("path", path)));
  return drawing;
}
