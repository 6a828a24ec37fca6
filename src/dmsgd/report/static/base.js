const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const state = { w: data.ws.indexOf(data.w), k: data.ks.indexOf(data.k), only: null };

// Packed arrays

const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
const words = (text) => new Uint16Array(bytes(text).buffer);
const longs = (text) => new Uint32Array(bytes(text).buffer);
const ids = data.ids === null ? null : longs(data.ids);
const idOf = (row) => (ids === null ? row : ids[row]);
const codes = data.codes === null ? null : words(data.codes);
const points = { row: longs(data.points.row), x: words(data.points.x), y: words(data.points.y) };
const ratios = data.choices.map((row) => row.map((choice) => bytes(choice.ratio)));
const copyOf = new Map();
const firsts = longs(data.copies.first);
longs(data.copies.of).forEach((row, i) => copyOf.set(row, firsts[i]));
const textOf = new Map();
if (data.texts) longs(data.texts.of).forEach((row, i) => textOf.set(row, data.texts.text[i]));
const imageOf = new Map();
if (data.images) data.images.of.forEach((row, i) => imageOf.set(row, i));
const pixels = data.images ? bytes(data.images.pixels) : null;

// Words, numbers, elements. Text goes in as text and never as markup.

const percent = (x) => (100 * x).toFixed(x < 0.0995 ? 1 : 0) + "\u00a0%";
const times = (x) => (x >= 9.95 ? x.toFixed(0) : x >= 0.095 ? x.toFixed(1) : x >= 0.0095 ? x.toFixed(2)
  : x === 0 ? "0" : x.toExponential(0)) + "\u00a0×";
const seconds = (s) => (s >= 9.95 ? `${s.toFixed(0)}\u00a0s` : s >= 0.995 ? `${s.toPrecision(2)}\u00a0s`
  : s >= 0.0995 ? `${(1e3 * s).toFixed(0)}\u00a0ms` : s >= 0.000995 ? `${(1e3 * s).toPrecision(2)}\u00a0ms`
  : s >= 0.0000995 ? `${(1e6 * s).toFixed(0)}\u00a0µs` : `${(1e6 * s).toPrecision(2)}\u00a0µs`);
const short = (x) => (x === 0 ? "0" : Math.abs(x) >= 1e4 || Math.abs(x) < 1e-3 ? x.toExponential(2)
  : x.toPrecision(3));
const count = (x) => x.toLocaleString("en");

function element(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in node) node[name] = value;
    else node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

const variable = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const isDark = () => matchMedia("(prefers-color-scheme: dark)").matches
  && !document.documentElement.classList.contains("printing");
let dark = isDark();
const FEW = ["#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#8F8A00", "#7A5195",
  "#A0522D", "#708090", "#E0457B", "#4FB6A8"];

function colour(code) {
  if (data.classes.length === 0) return variable("--accent");
  if (data.classes.length <= FEW.length) return FEW[code];
  const light = (dark ? 60 : 42) + 10 * (code % 2);
  return `hsl(${(137.5 * code) % 360} 65% ${light}%)`;
}

const nameOf = (row) => (codes === null ? null : data.classes[codes[row]].name);
// Within a sentence a name may be written from right to left, and the sentence not.
const quoted = (name) => `“\u2068${name}\u2069”`;

function thumbnail(row) {
  if (!imageOf.has(row)) return null;
  const { height, width, channels } = data.images;
  const canvas = element("canvas", { className: "thumb", width, height, role: "img" });
  canvas.setAttribute("aria-label", `picture of item ${idOf(row)}`);
  const context = canvas.getContext("2d");
  const image = context.createImageData(width, height);
  const start = imageOf.get(row) * height * width * channels;
  for (let i = 0; i < height * width; i++) {
    for (let c = 0; c < 3; c++) {
      image.data[4 * i + c] = pixels[start + channels * i + (channels === 3 ? c : 0)];
    }
    image.data[4 * i + 3] = 255;
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

function table(head, rows, caption) {
  const body = rows.map((row) => element("tr", {},
    ...row.map((cell, i) => element(i ? "td" : "th", i ? {} : { scope: "row" }, String(cell)))));
  return [
    caption ? element("caption", { className: "note" }, caption) : null,
    element("thead", {}, element("tr", {}, ...head.map((cell) => element("th", { scope: "col" }, term(cell))))),
    element("tbody", {}, ...body),
  ].filter(Boolean);
}

const chosen = () => data.choices[state.w][state.k];
const uniform = () => data.uniform[state.k];
const spectrum = () => data.spectra[state.w];

// How often an item is drawn against uniform batches: bytes span the range of the logarithms.
function ratioOf(row) {
  const byte = ratios[state.w][state.k][row], [low, high] = chosen().range;
  return byte === 0 ? 0 : 2 ** (low + ((byte - 1) / 254) * (high - low));
}

const ofClasses = (each) => (data.classes.length ? [each.evenness.toFixed(2), percent(each.shares.at(-1))] : []);
