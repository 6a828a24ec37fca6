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
        type: "button", onclick: () => choose({ only: state.only === c ? null : c }),
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
