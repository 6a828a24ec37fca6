"use strict";
(() => {
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const state = { w: data.ws.indexOf(data.w), k: data.ks.indexOf(data.k) };

// Packed arrays

const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
const words = (text) => new Uint16Array(bytes(text).buffer);
const longs = (text) => new Uint32Array(bytes(text).buffer);
const ids = data.ids === null ? null : longs(data.ids);
const idOf = (row) => (ids === null ? row : ids[row]);
const codes = data.codes === null ? null : words(data.codes);
const points = { row: longs(data.points.row), x: words(data.points.x), y: words(data.points.y) };
const ratios = data.choices.map((row) => row.map((choice) => bytes(choice.ratio)));
const textOf = new Map();
if (data.texts) longs(data.texts.of).forEach((row, i) => textOf.set(row, data.texts.text[i]));
const imageOf = new Map();
if (data.images) longs(data.images.of).forEach((row, i) => imageOf.set(row, i));
const pixels = data.images ? bytes(data.images.pixels) : null;

const chosen = () => data.choices[state.w][state.k];
const uniform = () => data.uniform[state.k];

// How often an item is drawn, over uniform batches: bytes span the range of the logarithms.
function ratioOf(row) {
  const byte = ratios[state.w][state.k][row], [low, high] = chosen().range;
  return byte === 0 ? 0 : 2 ** (low + ((byte - 1) / 254) * (high - low));
}

// Numbers and elements. Text is inserted as text and never as markup.

const percent = (x) => (100 * x).toFixed(x < 0.0995 ? 1 : 0) + "\u00a0%";
const times = (x) => (x >= 9.95 ? x.toFixed(0) : x >= 0.095 ? x.toFixed(1) : x >= 0.0095 ? x.toFixed(2)
  : x === 0 ? "0" : x.toExponential(0)) + "\u00a0×";
const short = (x) => (x === 0 ? "0" : Math.abs(x) >= 1e4 || Math.abs(x) < 1e-3 ? x.toExponential(2)
  : x.toPrecision(3));
const count = (x) => x.toLocaleString("en");

function seconds(s) {
  const [unit, value] = s >= 0.995 ? ["s", s] : s >= 0.000995 ? ["ms", 1e3 * s] : ["µs", 1e6 * s];
  return `${value >= 99.5 ? value.toFixed(0) : Number(value.toPrecision(2))}\u00a0${unit}`;
}

function element(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in node) node[name] = value;
    else node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

function table(head, rows) {
  return [
    element("thead", {}, element("tr", {}, ...head.map((cell) => element("th", { scope: "col" }, cell)))),
    element("tbody", {}, ...rows.map((row) => element("tr", {},
      ...row.map((cell, i) => element(i ? "td" : "th", i ? {} : { scope: "row" }, String(cell)))))),
  ];
}

const variable = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const isDark = () => matchMedia("(prefers-color-scheme: dark)").matches
  && !document.documentElement.classList.contains("printing");
const FEW = ["#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#8F8A00", "#7A5195",
  "#A0522D", "#708090", "#E0457B", "#4FB6A8"];

function colour(code) {
  if (data.classes.length === 0) return variable("--accent");
  if (data.classes.length <= FEW.length) return FEW[code];
  return `hsl(${(137.5 * code) % 360} 65% ${(isDark() ? 60 : 42) + 10 * (code % 2)}%)`;
}

const nameOf = (row) => (codes === null ? null : data.classes[codes[row]].name);
// A name may be written from right to left within a sentence that is not.
const quoted = (name) => `“\u2068${name}\u2069”`;
const ofClass = (row) => (codes === null ? "" : ` of class ${quoted(nameOf(row))}`);
const swatch = (code) => element("span", { className: "swatch", style: `background:${colour(code)}` });

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

// In short

function showSummary() {
  const now = chosen(), plain = uniform(), k = data.ks[state.k], labelled = data.classes.length > 0;
  const first = labelled
    ? `With w = ${data.ws[state.w]} and k = ${k}, class evenness goes from ${plain.evenness.toFixed(2)} to `
      + `${now.evenness.toFixed(2)} (1 is even), and the rarest class, ${quoted(data.classes.at(-1).name)}, from `
      + `${percent(plain.shares.at(-1))} to ${percent(now.shares.at(-1))} of a batch.`
    : `With k = ${k}, the most favoured item is drawn ${times(now.most[0][1])} as often as in uniform batches, `
      + `the least favoured ${times(now.least[0][1])}.`;
  byId("summary").textContent = `${first} One epoch shows ${percent(now.seen)} of the items (uniform `
    + `${percent(plain.seen)}); a batch takes ${seconds(now.seconds)} to draw.`;
  const { value: removed, error } = now.repulsion;
  byId("effects").textContent = `Sampling frequency: batches rest on ${percent(now.items)} of the items. Repulsion: it `
    + `${removed < 0 ? "adds" : "removes"} ${percent(Math.abs(removed))} (±\u00a0${percent(2 * error)}) of the noise of batches `
    + "with the same sampling frequencies.";
  const head = ["batches", ...(labelled ? ["evenness", "rarest class"] : []), "effective items", "seen in one epoch",
    "effective size", "noise removed", "time per batch"];
  const row = (each, name = each.name) => [name, ...(labelled ? [each.evenness.toFixed(2), percent(each.shares.at(-1))] : []),
    percent(each.items), percent(each.seen), each.effective.toFixed(1),
    each.repulsion.error ? percent(Math.max(each.repulsion.value, 0)) : "", seconds(each.seconds)];
  const rows = [row(plain), ...(data.stratified.length ? [row(data.stratified[state.k])] : [])];
  const firstChoice = rows.length;
  const nameOfChoice = (i) => (data.target ? `target ${data.target}` : data.ws.length > 1 ? data.choices[i][0].name : "k-DPP");
  rows.push(...data.ws.map((_, i) => row(data.choices[i][state.k], nameOfChoice(i))));
  const requested = k === data.k;
  rows.push(...data.targets.filter((each) => requested && !each.reason).map((each) => row(each)));
  byId("choices").replaceChildren(...table(head, rows));
  byId("choices").tBodies[0].rows[firstChoice + state.w].classList.add("chosen");
  const part = data.targets.length && data.targets[0].of < data.sampled ? `, on ${count(data.targets[0].of)} of the items` : "";
  const refused = data.targets.filter((each) => each.reason).map((each) => ` There is no ${each.name}: ${each.reason}.`);
  byId("targets-note").textContent = requested
    ? `The other targets are computed for w = ${data.w} and k = ${data.k}${part}.${refused.join("")}`
    : `Targets are shown for k = ${data.k}.`;
}

function showAdvice() {
  const { name, reason, code, warnings } = data.advice;
  byId("advice").replaceChildren(element("strong", {}, `Recommended: ${name}. `), `Because ${reason}. `,
    element("code", {}, code));
  byId("warnings").replaceChildren(...warnings.map((sentence) => element("li", {}, sentence)));
}

function showVariance() {
  const found = data.variance;
  byId("part-variance").hidden = found === null;
  if (found === null) return;
  const sentences = found.rows.map((row) => `${row.name}, a diverse batch of ${found.k} has the variance of a uniform one of `
    + `${row.equivalent_batch_size.toFixed(0)} (sampling frequency takes the variance to ${percent(row.frequency_factor)}, `
    + `repulsion to ${percent(row.repulsion_factor)} of that)`);
  const exact = found.rows.every((row) => row.error === 0);
  byId("variance-text").textContent = `At w = ${data.w} and k = ${found.k}, with gradients in ${count(found.parameters)} `
    + `parameters: ${sentences.join("; ")}. ` + (exact ? "The figures are exact."
    : `The variances are estimated from ${count(found.draws)} batches.`);
  const names = { uniform: "plain SGD", reweighted: "uniform, same gradient", frequency_matched: "frequency-matched",
    variance: "diverse", ...(exact ? {} : { error: "± standard error" }), independent: "first term (independent)",
    correlation: "second term (correlation)", equivalent_batch_size: "uniform batch size" };
  byId("variance").replaceChildren(...table(["weights", ...Object.values(names)],
    found.rows.map((row) => [row.name, ...Object.keys(names).map((name) => short(row[name]))])));
}

// Classes

const CLASSES_SHOWN = 24;

// A table of the classes at these places of `data.listed`, which has the order of all shares.
function classRows(places) {
  const now = chosen().shares, before = uniform().shares;
  const longest = Math.max(...now, ...before);
  const bar = (kind, share, word) => element("div", { className: "bar" },
    element("i", { className: kind, style: `width:${(72 * share) / longest}%` }),
    element("span", { "aria-label": `${word} ${percent(share)}` }, percent(share)));
  return element("table", { className: "bars" }, element("tbody", {}, ...places.map((place) => {
    const c = data.listed[place];
    return element("tr", {},
      element("th", { scope: "row" }, swatch(c), " ", element("bdi", {}, data.classes[c].name), " ",
        element("small", { className: "soft" }, `(${count(data.classes[c].items)})`)),
      element("td", {}, bar("before", before[place], "uniform"), bar("after", now[place], "diverse")));
  })));
}

function inTwo(parent, places) {
  const half = places.length > 6 ? Math.ceil(places.length / 2) : places.length;
  const parts = [places.slice(0, half), places.slice(half)].filter((part) => part.length);
  parent.replaceChildren(...parts.map(classRows));
}

function showClasses() {
  byId("part-classes").hidden = data.classes.length === 0;
  if (data.classes.length === 0) return;
  const listed = data.listed.map((_, place) => place);
  const many = listed.length > CLASSES_SHOWN;
  byId("more-classes").hidden = !many;
  byId("which-classes").textContent = listed.length === data.classes.length ? "All classes"
    : `The ${listed.length / 2} commonest and the ${listed.length / 2} rarest of ${count(data.classes.length)} classes`;
  inTwo(byId("classes"), many ? [...listed.slice(0, 12), ...listed.slice(-12)] : listed);
  if (many && byId("more-classes").open) inTwo(byId("all-classes"), listed);
}

// The map

const canvas = byId("map"), tip = byId("tip");
let placed = { x: new Float32Array(0), y: new Float32Array(0) };

const dotSize = Math.min(4, Math.max(1.1, 90 / Math.sqrt(points.row.length)));
const radius = (ratio) => Math.min(14, Math.max(0.5, dotSize * Math.sqrt(ratio)));

function showMap() {
  const scale = window.devicePixelRatio || 1, { clientWidth: width, clientHeight: height } = canvas;
  canvas.width = width * scale;
  canvas.height = height * scale;
  const context = canvas.getContext("2d"), edge = 14, total = points.row.length;
  context.scale(scale, scale);
  context.globalAlpha = 0.75;
  placed = { x: new Float32Array(total), y: new Float32Array(total) };
  const drawn = ratios[state.w][state.k];
  const order = Array.from(points.row.keys()).sort((a, b) => drawn[points.row[a]] - drawn[points.row[b]]);
  const colours = (data.classes.length ? data.classes : [0]).map((_, c) => colour(c));
  for (const i of order) {
    const x = placed.x[i] = edge + (points.x[i] / 65535) * (width - 2 * edge);
    const y = placed.y[i] = height - edge - (points.y[i] / 65535) * (height - 2 * edge);
    context.fillStyle = colours[codes === null ? 0 : codes[points.row[i]]];
    context.beginPath();
    context.arc(x, y, radius(ratioOf(points.row[i])), 0, 7);
    context.fill();
  }
  byId("map-key").replaceChildren(...[0.25, 1, 4].map((ratio) => element("span", {}, element("i", { className: "dot",
    style: `width:${2 * radius(ratio)}px;height:${2 * radius(ratio)}px` }), `${ratio === 0.25 ? "¼" : ratio}\u00a0× uniform`)));
  canvas.setAttribute("aria-label", `Map of ${count(total)} items by the first two principal components`);
  byId("map-note").textContent = total < data.sampled ? ` Shown are ${count(total)} of ${count(data.sampled)} items, `
    + "the listed ones and a random choice of the others." : "";
  const [[most, often], [least, seldom]] = [chosen().most[0], chosen().least[0]];
  byId("map-text").textContent = `The most favoured item, ${idOf(most)}${ofClass(most)}, is drawn ${times(often)} as often as `
    + `in uniform batches; the least favoured, ${idOf(least)}${ofClass(least)}, ${times(seldom)}.`;
}

const hideTip = () => { tip.style.display = "none"; };

function showTip(row, x, y) {
  tip.replaceChildren(element("b", {}, `item ${idOf(row)}`),
    ...(codes === null ? [] : [element("div", {}, "class ", element("bdi", {}, nameOf(row)))]),
    element("div", {}, `drawn ${times(ratioOf(row))} as often as in uniform batches`),
    ...(textOf.has(row) ? [element("div", { className: "soft", dir: "auto" }, textOf.get(row))] : []),
    ...[thumbnail(row)].filter(Boolean));
  tip.style.display = "block";
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - box.width - 4))}px`;
  tip.style.top = `${y + 14 + box.height > innerHeight ? Math.max(4, y - 10 - box.height) : y + 14}px`;
}

function pointed(event) {
  const box = canvas.getBoundingClientRect();
  const x = event.clientX - box.left, y = event.clientY - box.top;
  let best = -1, nearest = 15 ** 2;
  for (let i = 0; i < points.row.length; i++) {
    const distance = (placed.x[i] - x) ** 2 + (placed.y[i] - y) ** 2;
    if (distance < nearest) { nearest = distance; best = i; }
  }
  if (best < 0) hideTip();
  else showTip(points.row[best], event.clientX, event.clientY);
}

canvas.addEventListener("pointermove", pointed);
canvas.addEventListener("pointerdown", pointed);
canvas.addEventListener("pointerleave", hideTip);

// Items and batches

function entry(row, what, value, ...more) {
  return element("li", {}, thumbnail(row), codes === null ? null : swatch(codes[row]),
    element("span", { className: "what" }, what, ...more,
      textOf.has(row) ? element("div", { className: "soft", dir: "auto" }, textOf.get(row)) : null),
    element("span", { className: "times" }, value));
}

function showItems(id, listed, write = times) {
  byId(id).replaceChildren(...listed.map(([row, value]) => entry(row, `item ${idOf(row)}`, write(value),
    ...(codes === null ? [] : [", ", element("bdi", {}, nameOf(row))]))));
}

function showCuration() {
  const found = data.curation;
  const part = found.searched < data.sampled ? ` Among ${count(found.searched)} of the items, evenly spaced.` : "";
  byId("duplicates-text").textContent = (found.groups === 0 ? "No item is a near-duplicate of another."
    : `${count(found.duplicates)} items are near-duplicates of another, in ${count(found.groups)} groups.`) + part;
  byId("duplicates").replaceChildren(...found.listed.map((group) => entry(group.rows[0],
    `items ${group.rows.map(idOf).join(", ")}${group.rows.length < group.size ? ", …" : ""}`, `${count(group.size)} items`,
    ...(group.classes > 1 ? [element("strong", { className: "warm" }, ` in ${group.classes} classes`)] : []))));
  byId("outliers-text").textContent = "Root mean square cosine with all other items; that of the middle item is "
    + `${found.middle.toFixed(3)}.`;
  showItems("outliers", found.outliers, (value) => value.toFixed(3));
}

const TEXTS_SHOWN = 6;

function showBatches(id, batches) {
  byId(id).replaceChildren(...batches.flatMap((batch, number) => {
    const label = `Batch ${number + 1}` + (codes === null ? ""
      : `: ${new Set(batch.map((row) => codes[row])).size} of ${data.classes.length} classes`);
    const chips = batch.map((row) => {
      const picture = thumbnail(row);
      const about = `item ${idOf(row)}` + (codes === null ? "" : `, ${nameOf(row)}`)
        + (textOf.has(row) ? `: ${textOf.get(row)}` : "");
      const style = codes === null ? "" : `border-color:${colour(codes[row])}`;
      return element("li", { title: about, className: picture ? "picture" : "", style }, picture || String(idOf(row)));
    });
    const texts = textOf.size === 0 ? [] : [element("ul", { className: "texts" },
      ...batch.slice(0, TEXTS_SHOWN).map((row) => element("li", { dir: "auto" }, textOf.get(row) || "")),
      batch.length > TEXTS_SHOWN ? element("li", { className: "soft" }, `and ${batch.length - TEXTS_SHOWN} more`) : null)];
    return [element("div", { className: "note" }, label),
      element("ul", { className: "batch", "aria-label": label }, ...chips), ...texts];
  }));
}

// Curves

const plots = new Map();
// Items that are never drawn have no logarithm.
const LEAST = 1e-6;

// A logarithmic axis shows powers of ten, and 1, 2, 5 where there are few of them.
function logarithmic() {
  const kept = (_, splits) => {
    const allowed = Math.log10(splits[splits.length - 1] / splits[0]) > 3 ? [1] : [1, 2, 5];
    return splits.map((v) => (allowed.includes(Math.round(v / 10 ** Math.floor(Math.log10(v) + 1e-9))) ? v : null));
  };
  const label = (v) => (v === null ? "" : v >= 1e-3 && v < 1e5 ? String(Number(v.toPrecision(1))) : v.toExponential(0));
  return { filter: kept, grid: { stroke: variable("--line"), width: 1, filter: kept },
    ticks: { stroke: variable("--line"), filter: kept }, values: (_, splits) => splits.map(label) };
}

function curve(id, caption, x, y, columns, log, range) {
  const box = byId(id), figure = box.parentElement, lines = ["diverse", "uniform"];
  plots.get(id)?.destroy();
  const axis = (label, more) => ({
    label, labelSize: 22, size: 44, stroke: variable("--soft"), font: "12px system-ui", labelFont: "12px system-ui",
    grid: { stroke: variable("--line"), width: 1 }, ticks: { stroke: variable("--line") }, ...more,
  });
  plots.set(id, new uPlot({
    width: box.clientWidth || 320, height: 260, cursor: { drag: { x: false, y: false } },
    axes: [axis(x), axis(y, { size: 58, ...(log ? logarithmic() : {}) })],
    scales: { x: { time: false }, y: { distr: log ? 3 : 1, range } },
    series: [{ label: x }, ...lines.map((label, i) => ({
      label, stroke: variable(i ? "--plain" : "--accent"), width: 2, dash: i ? [6, 4] : undefined, points: { show: false },
      value: (_, value) => (value === null || value === undefined ? "–" : short(value)),
    }))],
  }, columns, box));
  figure.querySelector("figcaption").textContent = caption;
  box.setAttribute("aria-label", caption);
  const every = Math.max(1, Math.ceil(columns[0].length / 12)), end = columns[0].length - 1;
  const rows = columns[0].map((_, i) => columns.map((column) => short(column[i])))
    .filter((_, i) => i % every === 0 || i === end);
  figure.querySelector("details div").replaceChildren(element("table", { className: "figures" }, ...table([x, ...lines], rows)));
}

function showCurves() {
  const now = chosen(), plain = uniform(), { quantiles, steps } = now;
  const last = quantiles.length - 1, end = steps.length - 1, fifth = Math.round(end / 5);
  curve("inclusion", `A tenth of the items is drawn less than ${times(quantiles[last / 10])} as often as in uniform batches, `
    + `a tenth more than ${times(quantiles[last - last / 10])}.`, "% of items, least favoured first", "times uniform",
    [quantiles.map((_, i) => (100 * i) / last), quantiles.map((q) => Math.max(q, LEAST)), quantiles.map(() => 1)], true);
  curve("coverage", `After ${count(steps[fifth])} steps, about one epoch, ${percent(now.coverage[fifth])} of the items have been `
    + `seen (uniform ${percent(plain.coverage[fifth])}); after ${count(steps[end])}, ${percent(now.coverage[end])} (uniform `
    + `${percent(plain.coverage[end])}).`, "steps", "share of items seen", [steps, now.coverage, plain.coverage], false, [0, 1]);
}

// Sliders

function show() {
  hideTip();
  for (const name of ["w", "k"]) {
    const value = String(data[`${name}s`][state[name]]);
    byId(name).value = state[name];
    byId(`${name}-value`).textContent = value;
    byId(name).setAttribute("aria-valuetext", `${name} = ${value}`);
  }
  showSummary();
  showClasses();
  showMap();
  showItems("most", chosen().most);
  showItems("least", chosen().least);
  showCuration();
  showBatches("diverse", chosen().batches);
  showBatches("plain", uniform().batches);
  showCurves();
}

for (const name of ["w", "k"]) {
  const input = byId(name), values = data[`${name}s`];
  input.max = values.length - 1;
  byId(`choose-${name}`).hidden = values.length < 2;
  byId(`${name}-stops`).replaceChildren(...values.map((value, i) => element("span", {
    style: `left:${values.length < 2 ? 0 : (100 * i) / (values.length - 1)}%` }, String(value))));
  input.addEventListener("input", () => { state[name] = Number(input.value); show(); });
}
let waiting = 0;
addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(show, 120); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
addEventListener("beforeprint", () => { document.documentElement.classList.add("printing"); show(); });
addEventListener("afterprint", () => { document.documentElement.classList.remove("printing"); show(); });
byId("more-classes").addEventListener("toggle", showClasses);
showVariance();
showAdvice();
show();
})();
