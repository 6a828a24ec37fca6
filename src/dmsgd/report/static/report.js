"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const state = { w: data.ws.indexOf(data.w), k: data.ks.indexOf(data.k), only: null };

  // Packed arrays

  const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const words = (text) => new Uint16Array(bytes(text).buffer);
  const longs = (text) => new Uint32Array(bytes(text).buffer);
  const ids = longs(data.ids);
  const codes = data.codes === null ? null : words(data.codes);
  const points = { row: longs(data.points.row), x: words(data.points.x), y: words(data.points.y) };
  const ratios = data.choices.map((row) => row.map((choice) => bytes(choice.ratio)));
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
    canvas.setAttribute("aria-label", `picture of item ${ids[row]}`);
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
      element("thead", {}, element("tr", {}, ...head.map((cell) => element("th", { scope: "col" }, cell)))),
      element("tbody", {}, ...body),
    ].filter(Boolean);
  }

  const chosen = () => data.choices[state.w][state.k];
  const uniform = () => data.uniform[state.k];
  const spectrum = () => data.spectra[state.w];

  const ofClasses = (each) => (data.classes.length ? [each.evenness.toFixed(2), percent(each.shares.at(-1))] : []);

  // In short

  function showSummary() {
    const now = chosen(), plain = uniform(), k = data.ks[state.k];
    const parts = [];
    if (data.classes.length) {
      const rarest = data.classes.at(-1).name;
      parts.push(`With w = ${data.ws[state.w]} and k = ${k}, class evenness goes from `
        + `${plain.evenness.toFixed(2)} to ${now.evenness.toFixed(2)} (1 is even), and the rarest class, `
        + `${quoted(rarest)}, from ${percent(plain.shares.at(-1))} to ${percent(now.shares.at(-1))} of a batch.`);
    } else {
      parts.push(`With k = ${k}, the most favoured item is drawn ${times(now.most[0][1])} as often as in `
        + `uniform batches, the least favoured ${times(now.least[0][1])}.`);
    }
    parts.push(`One epoch shows ${percent(now.seen)} of the items (uniform ${percent(plain.seen)}); `
      + `a batch takes ${seconds(now.seconds)} to draw.`);
    byId("summary").textContent = parts.join(" ");
    const head = ["w", ...(data.classes.length ? ["evenness", "rarest class"] : []), "effective items",
      "seen in one epoch", "effective size", "noise repelled", "draw"];
    const row = (name, each, size, repelled) => [name, ...ofClasses(each), percent(each.items), percent(each.seen),
      size.toFixed(1), repelled, seconds(each.seconds)];
    const rows = data.ws.map((w, i) => {
      const each = data.choices[i][state.k];
      return row(w, each, each.effective, percent(Math.max(each.repulsion.value, 0)));
    });
    rows.unshift(row("uniform", plain, k, ""));
    byId("choices").replaceChildren(...table(head, rows));
    byId("choices").tBodies[0].rows[state.w + 1].classList.add("chosen");
  }

  // Who is seen, who meets, the price of each

  function showHalves() {
    const now = chosen(), plain = uniform(), removed = now.repulsion.value, error = 2 * now.repulsion.error;
    const seen = data.classes.length ? `takes class evenness from ${plain.evenness.toFixed(2)} to ${now.evenness.toFixed(2)}`
      : "draws unusual items more often";
    const sign = removed < 0 ? "adds" : "removes";
    byId("halves-text").textContent = `Who is seen: b ${seen} and lets batches rest on ${percent(now.items)} of the items. `
      + `Who meets: repulsion then ${sign} ${percent(Math.abs(removed))} (±\u00a0${percent(error)}) of the noise. `
      + `The same b without repulsion takes ${seconds(now.same_b.seconds)} a batch, with it ${seconds(now.seconds)}.`;
    const head = ["batches", ...(data.classes.length ? ["evenness", "rarest class"] : []), "effective items",
      "noise", "similarity", "set-up", "draw"];
    const like = (value) => (value === undefined ? "" : value.toFixed(3));
    const row = (name, each, noise, similarity, price) => [name, ...ofClasses(each), percent(each.items), noise,
      like(similarity), price.setup < 0.001 ? "" : seconds(price.setup), seconds(price.seconds)];
    const rows = [row("uniform", plain, "", now.similarity.uniform, plain),
      row("same b, no repulsion", now, "100\u00a0%", now.similarity.same_b, now.same_b),
      row("diverse (k-DPP)", now, percent(1 - removed), now.similarity.diverse, now)];
    if (data.strata.length) rows.splice(1, 0, row("stratified", data.strata[state.k], "", undefined, data.strata[state.k]));
    byId("halves").replaceChildren(...table(head, rows));
    byId("halves").tBodies[0].rows[rows.length - 1].classList.add("chosen");
  }

  // Classes

  const CLASSES_SHOWN = 24;

  // The classes at these places of `data.listed`, which has the order of all shares.
  function classRows(places) {
    const now = chosen().shares, before = uniform().shares;
    const longest = Math.max(...now, ...before);
    const bar = (kind, share, word) => element("div", { className: "bar" },
      element("i", { className: kind, style: `width:${(72 * share) / longest}%` }),
      element("span", { "aria-label": `${word} ${percent(share)}` }, percent(share)));
    const rows = places.map((place) => {
      const c = data.listed[place];
      return element("tr", {},
        element("th", { scope: "row" }, element("button", {
          type: "button", onclick: () => { state.only = state.only === c ? null : c; show(); },
          "aria-pressed": String(state.only === c),
        }, element("span", { className: "swatch", style: `background:${colour(c)}` }),
        element("span", {}, element("bdi", {}, data.classes[c].name), " ",
          element("small", { className: "soft" }, `(${count(data.classes[c].items)})`)))),
        element("td", {}, bar("before", before[place], "uniform"), bar("after", now[place], "diverse")));
    });
    return element("table", { className: "bars" }, element("tbody", {}, ...rows));
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

  byId("more-classes").addEventListener("toggle", showClasses);

  // The map

  const canvas = byId("map");
  let placed = { x: new Float32Array(0), y: new Float32Array(0) };
  let order = [];

  const ratioAt = (i) => 2 ** ((ratios[state.w][state.k][i] / 127.5 - 1) * data.extent);

  function showMap() {
    const scale = window.devicePixelRatio || 1, { clientWidth: width, clientHeight: height } = canvas;
    canvas.width = width * scale;
    canvas.height = height * scale;
    const context = canvas.getContext("2d"), edge = 14, total = points.row.length;
    context.scale(scale, scale);
    const size = Math.min(4, Math.max(1.1, 90 / Math.sqrt(total)));
    placed = { x: new Float32Array(total), y: new Float32Array(total) };
    const bytesNow = ratios[state.w][state.k];
    order = Array.from({ length: total }, (_, i) => i).sort((a, b) => bytesNow[a] - bytesNow[b]);
    const colours = (data.classes.length ? data.classes : [0]).map((_, c) => colour(c));
    for (const i of order) {
      const code = codes === null ? 0 : codes[points.row[i]];
      const x = placed.x[i] = edge + (points.x[i] / 65535) * (width - 2 * edge);
      const y = placed.y[i] = height - edge - (points.y[i] / 65535) * (height - 2 * edge);
      const faded = state.only !== null && code !== state.only;
      context.globalAlpha = faded ? 0.06 : 0.75;
      context.fillStyle = colours[code];
      context.beginPath();
      context.arc(x, y, Math.min(14, Math.max(0.5, size * Math.sqrt(ratioAt(i)))), 0, 7);
      context.fill();
    }
    canvas.setAttribute("aria-label", `Map of ${count(total)} items by the first two principal components`);
    const now = chosen();
    byId("map-note").textContent = total < data.sampled ? ` Shown are ${count(total)} of ${count(data.sampled)} items, `
      + "the listed ones and a random choice of the others." : "";
    byId("map-text").textContent = `The most favoured item, ${ids[now.most[0][0]]}`
      + (codes === null ? "" : ` of class ${quoted(nameOf(now.most[0][0]))}`)
      + `, is drawn ${times(now.most[0][1])} as often as in uniform batches; the least favoured, `
      + `${ids[now.least[0][0]]}`
      + (codes === null ? "" : ` of class ${quoted(nameOf(now.least[0][0]))}`) + `, ${times(now.least[0][1])}.`;
  }

  function showTip(i, x, y) {
    const tip = byId("tip"), row = points.row[i];
    tip.replaceChildren(element("b", {}, `item ${ids[row]}`),
      ...(codes === null ? [] : [element("div", {}, "class ", element("bdi", {}, nameOf(row)))]),
      element("div", {}, `drawn ${times(ratioAt(i))} as often as in uniform batches`),
      ...(textOf.has(row) ? [element("div", { className: "soft", dir: "auto" }, textOf.get(row))] : []),
      ...[thumbnail(row)].filter(Boolean));
    tip.style.display = "block";
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - box.width - 4))}px`;
    tip.style.top = `${y + 14 + box.height > innerHeight ? Math.max(4, y - box.height - 10) : y + 14}px`;
  }

  const hideTip = () => { byId("tip").style.display = "none"; };

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
    if (event.key === "Escape") hideTip();
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

  // Items and batches

  function showItems(id, listed) {
    byId(id).replaceChildren(...listed.map(([row, ratio]) => element("li", {},
      thumbnail(row),
      codes === null ? null : element("span", { className: "swatch", style: `background:${colour(codes[row])}` }),
      element("span", { className: "what" }, `item ${ids[row]}`,
        ...(codes === null ? [] : [", ", element("bdi", {}, nameOf(row))]),
        textOf.has(row) ? element("div", { className: "soft", dir: "auto" }, textOf.get(row)) : ""),
      element("span", { className: "times" }, times(ratio)))));
  }

  const TEXTS_SHOWN = 6;

  function showBatches(id, batches) {
    const parts = batches.flatMap((batch, number) => {
      const kinds = codes === null ? "" : `: ${new Set(batch.map((row) => codes[row])).size} of `
        + `${data.classes.length} classes`;
      const label = `Batch ${number + 1}${kinds}`;
      const chips = batch.map((row) => {
        const picture = thumbnail(row);
        const about = `item ${ids[row]}` + (codes === null ? "" : `, ${nameOf(row)}`)
          + (textOf.has(row) ? `: ${textOf.get(row)}` : "");
        const style = codes === null ? "" : `border-color:${colour(codes[row])}`;
        return element("li", { title: about, className: picture ? "picture" : "", style },
          picture || String(ids[row]));
      });
      const texts = textOf.size === 0 ? [] : [element("ul", { className: "texts" },
        ...batch.slice(0, TEXTS_SHOWN).map((row) => element("li", { dir: "auto" }, textOf.get(row) || "")),
        batch.length > TEXTS_SHOWN ? element("li", { className: "soft" }, `and ${batch.length - TEXTS_SHOWN} more`) : null)];
      return [element("div", { className: "note" }, label),
        element("ul", { className: "batch", "aria-label": label }, ...chips), ...texts];
    });
    byId(id).replaceChildren(...parts);
  }

  // Curves

  const drawn = new Map();

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
    const positive = quantiles.map((q) => Math.max(q, 2 ** -data.extent));
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

  function showAdvice() {
    const advice = data.advice;
    if (advice === null) return;
    byId("advice").replaceChildren(element("strong", {}, `Recommended: ${advice.kind}. `),
      `Because ${advice.reason}. `, element("code", {}, advice.code));
    byId("concerns").replaceChildren(...advice.concerns.map((sentence) => element("li", {}, sentence)));
  }

  function showVariance() {
    const found = data.variance;
    byId("part-variance").hidden = found === null;
    if (found === null) return;
    const sentences = found.rows.map((row) => `${row.name}, a diverse batch of ${found.k} is worth a uniform one of `
      + `${row.worth.toFixed(0)} (who is seen takes the variance to ${percent(row.by_inclusion)}, who meets to `
      + `${percent(row.by_repulsion)} of that)`);
    byId("variance-text").textContent = `At w = ${data.w} and k = ${found.k}, with gradients in ${count(found.parameters)} `
      + `parameters: ${sentences.join("; ")}. ` + (found.exact ? "The figures are exact."
      : `The variances are estimated from ${count(found.draws)} batches.`);
    const names = { uniform: "plain SGD", reweighted: "uniform, same gradient", same_b: "same b, no repulsion",
      variance: "diverse", error: "± standard error", independent: "first term (independent)",
      correlation: "second term (correlation)", worth: "worth" };
    const shown = Object.keys(names).filter((name) => name in found.rows[0]);
    byId("variance").replaceChildren(...table(["weights", ...shown.map((name) => names[name])],
      found.rows.map((row) => [row.name, ...shown.map((name) => (name === "worth" ? row[name].toFixed(1) : short(row[name])))])));
  }

  // All of it

  function show() {
    dark = isDark();
    byId("w-value").textContent = String(data.ws[state.w]);
    byId("k-value").textContent = String(data.ks[state.k]);
    byId("w").setAttribute("aria-valuetext", `w = ${data.ws[state.w]}`);
    byId("k").setAttribute("aria-valuetext", `k = ${data.ks[state.k]}`);
    showSummary();
    showHalves();
    showClasses();
    showMap();
    showItems("most", chosen().most);
    showItems("least", chosen().least);
    showBatches("diverse", chosen().batches);
    showBatches("plain", uniform().batches);
    showCurves();
    showVariance();
    showAdvice();
  }

  for (const name of ["w", "k"]) {
    const input = byId(name), values = data[`${name}s`];
    input.max = values.length - 1;
    input.value = state[name];
    byId(`choose-${name}`).hidden = values.length < 2;
    input.addEventListener("input", () => { state[name] = Number(input.value); hideTip(); show(); });
  }
  let waiting = 0;
  addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(show, 120); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
  addEventListener("beforeprint", () => { document.documentElement.classList.add("printing"); show(); });
  addEventListener("afterprint", () => { document.documentElement.classList.remove("printing"); show(); });
  show();
})();
