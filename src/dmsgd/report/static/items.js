// Items and batches

const swatch = (row) => (codes === null ? null
  : element("span", { className: "swatch", style: `background:${colour(codes[row])}` }));

function what(row, ...more) {
  return element("span", { className: "what" }, `item ${idOf(row)}`,
    ...(codes === null ? [] : [", ", element("bdi", {}, nameOf(row))]), ...more,
    textOf.has(row) ? element("div", { className: "soft", dir: "auto" }, textOf.get(row)) : "");
}

function showItems(id, listed, word = times) {
  byId(id).replaceChildren(...listed.map(([row, value]) => element("li", {}, thumbnail(row), swatch(row), what(row),
    element("span", { className: "times" }, word(value)))));
}

const LISTED = 12;

// The most and least favoured of the chosen class, or of all.
function favoured() {
  if (state.only === null) return chosen();
  const drawn = ratios[state.w][state.k];
  const rows = Array.from(codes.keys()).filter((row) => codes[row] === state.only).sort((a, b) => drawn[b] - drawn[a]);
  const listed = Math.min(LISTED, Math.ceil(rows.length / 2)), pairs = rows.map((row) => [row, ratioOf(row)]);
  return { most: pairs.slice(0, listed), least: pairs.slice(-listed).reverse() };
}

function showFavoured() {
  const { most, least } = favoured();
  showItems("most", most);
  showItems("least", least);
  byId("choose-only").hidden = codes === null;
  byId("only").value = state.only === null ? "" : String(state.only);
  const total = state.only === null ? data.sampled : data.classes[state.only].items;
  byId("save").textContent = `Save ${state.only === null ? "all" : "these"} ${count(total)} items as CSV`;
}

function showCuration() {
  const found = data.curation;
  const looked = found.searched < data.sampled ? ` Among ${count(found.searched)} of the items, a random choice.` : "";
  byId("copies-text").textContent = found.groups === 0 ? `No item is a near-copy of another.${looked}`
    : `${count(found.copies)} items are near-copies of another, in ${count(found.groups)} groups; a batch hardly ever holds two `
      + `of a group.${looked}`;
  byId("copies").replaceChildren(...found.listed.map((group) => element("li", {}, thumbnail(group.rows[0]), swatch(group.rows[0]),
    element("span", { className: "what" }, `items ${group.rows.map(idOf).join(", ")}${group.rows.length < group.size ? ", …" : ""}`,
      group.classes > 1 ? element("strong", { className: "warm" }, ` in ${group.classes} classes`) : "",
      textOf.has(group.rows[0]) ? element("div", { className: "soft", dir: "auto" }, textOf.get(group.rows[0])) : ""),
    element("span", { className: "times" }, `${count(group.size)} items`))));
  byId("outliers-text").textContent = "Root mean square cosine with all other items; that of the middle item is "
    + `${found.middle.toFixed(3)}.`;
  showItems("outliers", found.outliers, (value) => value.toFixed(3));
}

// The table of items as a file, made here: nothing is sent.

function asCsv() {
  const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const classOf = (row) => quoted(data.classes[codes[row]].cell ?? nameOf(row));
  const lines = [["item", ...(codes === null ? [] : ["class"]), "times_uniform", "near_copy_of"].join(",")];
  for (let row = 0; row < data.sampled; row++) {
    if (state.only !== null && codes[row] !== state.only) continue;
    lines.push([idOf(row), ...(codes === null ? [] : [classOf(row)]), Number(ratioOf(row).toPrecision(3)),
      copyOf.has(row) ? idOf(copyOf.get(row)) : ""].join(","));
  }
  return lines.join("\n") + "\n";
}

byId("save").addEventListener("click", () => {
  const link = element("a", { href: URL.createObjectURL(new Blob([asCsv()], { type: "text/csv" })),
    download: `items-w${data.ws[state.w]}-k${data.ks[state.k]}.csv` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
});

byId("only").append(element("option", { value: "" }, "all classes"),
  ...data.listed.map((c) => element("option", { value: String(c) }, data.classes[c].name)));
byId("only").addEventListener("input", () => choose({ only: byId("only").value === "" ? null : Number(byId("only").value) }));

const TEXTS_SHOWN = 6;

function showBatches(id, batches) {
  const parts = batches.flatMap((batch, number) => {
    const kinds = codes === null ? "" : `: ${new Set(batch.map((row) => codes[row])).size} of `
      + `${data.classes.length} classes`;
    const label = `Batch ${number + 1}${kinds}`;
    const chips = batch.map((row) => {
      const picture = thumbnail(row);
      const about = `item ${idOf(row)}` + (codes === null ? "" : `, ${nameOf(row)}`)
        + (textOf.has(row) ? `: ${textOf.get(row)}` : "");
      const style = codes === null ? "" : `border-color:${colour(codes[row])}`;
      return element("li", { title: about, className: picture ? "picture" : "", style },
        picture || String(idOf(row)));
    });
    const texts = textOf.size === 0 ? [] : [element("ul", { className: "texts" },
      ...batch.slice(0, TEXTS_SHOWN).map((row) => element("li", { dir: "auto" }, textOf.get(row) || "")),
      batch.length > TEXTS_SHOWN ? element("li", { className: "soft" }, `and ${batch.length - TEXTS_SHOWN} more`) : null)];
    return [element("div", { className: "note" }, label),
      element("ul", { className: "batch", "aria-label": label }, ...chips), ...texts];
  });
  byId(id).replaceChildren(...parts);
}
