// Curves

const drawn = new Map();
// What is never drawn has no logarithm.
const LEAST = 1e-6;

// Lines and labels of a logarithmic axis: powers of ten, and 1, 2, 5 where there are few of them.
function logarithmic(on) {
  if (!on) return {};
  const kept = (_, splits) => {
    const decades = Math.log10(splits[splits.length - 1] / splits[0]);
    const allowed = decades > 3 ? [1] : [1, 2, 5];
    return splits.map((v) => (allowed.includes(Math.round(v / 10 ** Math.floor(Math.log10(v) + 1e-9))) ? v : null));
  };
  const label = (v) => (v === null ? "" : v >= 1e-3 && v < 1e5 ? String(Number(v.toPrecision(1))) : v.toExponential(0));
  return { filter: kept, grid: { stroke: variable("--line"), width: 1, filter: kept },
    ticks: { stroke: variable("--line"), filter: kept }, values: (_, splits) => splits.map(label) };
}

function curve(id, caption, options) {
  const box = byId(id), figure = box.parentElement;
  if (drawn.has(id)) drawn.get(id).destroy();
  const axis = (label, more) => ({
    label, labelSize: 22, size: 44, stroke: variable("--soft"), font: "12px system-ui", labelFont: "12px system-ui",
    grid: { stroke: variable("--line"), width: 1 }, ticks: { stroke: variable("--line") }, ...more,
  });
  const axes = [axis(options.x, logarithmic(options.logX)), axis(options.y, { size: 58, ...logarithmic(options.logY) })];
  if (options.right) axes.push(axis(options.right, { side: 1, scale: "right", grid: { show: false } }));
  const plot = new uPlot({
    width: box.clientWidth || 320, height: 260, axes,
    cursor: { drag: { x: false, y: false } },
    scales: {
      x: { time: false, distr: options.logX ? 3 : 1 },
      y: { distr: options.logY ? 3 : 1, range: options.range },
      right: { range: [0, 1] },
    },
    series: [{ label: options.x }, ...options.lines.map((line) => ({
      label: line.label, stroke: variable(line.colour), width: 2, dash: line.dash, scale: line.scale || "y",
      points: { show: false }, value: (_, value) => (value === null || value === undefined ? "–" : short(value)),
    }))],
  }, options.data, box);
  drawn.set(id, plot);
  figure.querySelector("figcaption").textContent = caption;
  box.setAttribute("aria-label", caption);
  const every = Math.max(1, Math.ceil(options.data[0].length / 12));
  const rows = options.data[0].map((x, i) => [short(x), ...options.data.slice(1).map((line) => short(line[i]))])
    .filter((_, i) => i % every === 0 || i === options.data[0].length - 1);
  figure.querySelector("details div").replaceChildren(
    element("table", { className: "figures" }, ...table([options.x, ...options.lines.map((line) => line.label)], rows)));
}

function showCurves() {
  const now = chosen(), plain = uniform(), k = data.ks[state.k], shape = spectrum();
  const quantiles = now.quantiles, last = quantiles.length - 1;
  const positive = quantiles.map((q) => Math.max(q, LEAST));
  curve("inclusion", `A tenth of the items is drawn less than ${times(quantiles[last / 10])} as often as in `
    + `uniform batches, a tenth more than ${times(quantiles[last - last / 10])}.`, {
    x: "% of items, least favoured first", y: "times uniform", logY: true,
    lines: [{ label: "diverse", colour: "--accent" }, { label: "uniform", colour: "--plain", dash: [6, 4] }],
    data: [quantiles.map((_, i) => (100 * i) / last), positive, quantiles.map(() => 1)],
  });
  const end = now.steps.length - 1, fifth = Math.round(end / 5);
  curve("coverage", `After ${count(now.steps[fifth])} steps, about one epoch, ${percent(now.coverage[fifth])} of the items `
    + `have been seen (uniform ${percent(plain.coverage[fifth])}); after ${count(now.steps[end])}, `
    + `${percent(now.coverage[end])} (uniform ${percent(plain.coverage[end])}).`, {
    x: "steps", y: "share of items seen", range: [0, 1],
    lines: [{ label: "diverse", colour: "--accent" }, { label: "uniform", colour: "--plain", dash: [6, 4] }],
    data: [now.steps, now.coverage, plain.coverage],
  });
  const fit = k / shape.effective;
  curve("spectrum", `Rank ${count(shape.rank)}, effective rank ${shape.effective.toFixed(1)}: k = ${k} is `
    + `${fit < 1 ? `${percent(fit)} of it` : `${fit.toFixed(1)} times that`}.`
    + (shape.trace_error ? ` The kernel is approximated; ${percent(shape.trace_error)} of its trace is left out.` : ""), {
    x: "direction", y: "share of the kernel", right: "chance to be used", logX: true, logY: true,
    lines: [{ label: "share of the kernel", colour: "--accent" },
      { label: "chance to be used", colour: "--warm", dash: [3, 3], scale: "right" }],
    data: [shape.index, shape.share, shape.used[state.k]],
  });
}
