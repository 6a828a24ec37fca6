// The map

const canvas = byId("map");
let placed = { x: new Float32Array(0), y: new Float32Array(0) };
let order = [];

const ratioAt = (i) => ratioOf(points.row[i]);
const dotSize = () => Math.min(4, Math.max(1.1, 90 / Math.sqrt(points.row.length)));
const radius = (ratio) => Math.min(14, Math.max(0.5, dotSize() * Math.sqrt(ratio)));

function showMap() {
  const scale = window.devicePixelRatio || 1, { clientWidth: width, clientHeight: height } = canvas;
  canvas.width = width * scale;
  canvas.height = height * scale;
  const context = canvas.getContext("2d"), edge = 14, total = points.row.length;
  context.scale(scale, scale);
  placed = { x: new Float32Array(total), y: new Float32Array(total) };
  const bytesNow = ratios[state.w][state.k];
  order = Array.from({ length: total }, (_, i) => i).sort((a, b) => bytesNow[points.row[a]] - bytesNow[points.row[b]]);
  const colours = (data.classes.length ? data.classes : [0]).map((_, c) => colour(c));
  for (const i of order) {
    const code = codes === null ? 0 : codes[points.row[i]];
    const x = placed.x[i] = edge + (points.x[i] / 65535) * (width - 2 * edge);
    const y = placed.y[i] = height - edge - (points.y[i] / 65535) * (height - 2 * edge);
    const faded = state.only !== null && code !== state.only;
    context.globalAlpha = faded ? 0.06 : 0.75;
    context.fillStyle = colours[code];
    context.beginPath();
    context.arc(x, y, radius(ratioAt(i)), 0, 7);
    context.fill();
  }
  byId("map-key").replaceChildren(...[0.25, 1, 4].map((ratio) => element("span", {}, element("i", { className: "dot",
    style: `width:${2 * radius(ratio)}px;height:${2 * radius(ratio)}px` }), `${ratio === 0.25 ? "¼" : ratio}\u00a0× uniform`)));
  canvas.setAttribute("aria-label", `Map of ${count(total)} items by the first two principal components`);
  const now = chosen();
  byId("map-note").textContent = total < data.sampled ? ` Shown are ${count(total)} of ${count(data.sampled)} items, `
    + "the listed ones and a random choice of the others." : "";
  byId("map-text").textContent = `The most favoured item, ${idOf(now.most[0][0])}`
    + (codes === null ? "" : ` of class ${quoted(nameOf(now.most[0][0]))}`)
    + `, is drawn ${times(now.most[0][1])} as often as in uniform batches; the least favoured, `
    + `${idOf(now.least[0][0])}`
    + (codes === null ? "" : ` of class ${quoted(nameOf(now.least[0][0]))}`) + `, ${times(now.least[0][1])}.`;
}

function showTip(i, x, y) {
  const tip = byId("tip"), row = points.row[i];
  tip.replaceChildren(element("b", {}, `item ${idOf(row)}`),
    ...(codes === null ? [] : [element("div", {}, "class ", element("bdi", {}, nameOf(row)))]),
    element("div", {}, `drawn ${times(ratioAt(i))} as often as in uniform batches`),
    ...(textOf.has(row) ? [element("div", { className: "soft", dir: "auto" }, textOf.get(row))] : []),
    ...[thumbnail(row)].filter(Boolean));
  placeTip(x + 14, y - 10, y + 14);
}

function pointed(event) {
  const box = canvas.getBoundingClientRect();
  const x = event.clientX - box.left, y = event.clientY - box.top;
  let best = -1, nearest = 15 ** 2;
  for (let i = 0; i < points.row.length; i++) {
    if (state.only !== null && codes[points.row[i]] !== state.only) continue;
    const distance = (placed.x[i] - x) ** 2 + (placed.y[i] - y) ** 2;
    if (distance < nearest) { nearest = distance; best = i; }
  }
  if (best < 0) hideTip();
  else showTip(best, event.clientX, event.clientY);
}

let visited = 0;
function stepped(event) {
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  if (!step) return;
  event.preventDefault();
  const total = order.length, box = canvas.getBoundingClientRect();
  visited = (visited + step + total) % total;
  const i = order[(total - visited) % total];
  showTip(i, box.left + placed.x[i], box.top + placed.y[i]);
  canvas.setAttribute("aria-label", byId("tip").textContent);
}

canvas.addEventListener("pointermove", pointed);
canvas.addEventListener("pointerdown", pointed);
canvas.addEventListener("pointerleave", hideTip);
canvas.addEventListener("blur", hideTip);
canvas.addEventListener("keydown", stepped);
