// The view: sliders, the class, and the address that restores them

function choose(change) {
  Object.assign(state, change);
  hideTip();
  const parts = [...(data.ws.length > 1 ? [`w=${data.ws[state.w]}`] : []), `k=${data.ks[state.k]}`,
    ...(state.only === null ? [] : [`class=${state.only}`])];
  history.replaceState(null, "", `#${parts.join("&")}`);
  show();
}

// What the address says; anything else is as the page begins.
function restore() {
  const said = new URLSearchParams(location.hash.slice(1));
  const place = (values, name, otherwise) => {
    const found = values.indexOf(parseFloat(said.get(name)));
    return found < 0 ? otherwise : found;
  };
  state.w = place(data.ws, "w", data.ws.indexOf(data.w));
  state.k = place(data.ks, "k", data.ks.indexOf(data.k));
  state.only = data.listed[place(data.listed, "class", -1)] ?? null;
}

function show() {
  dark = isDark();
  for (const name of ["w", "k"]) {
    byId(name).value = state[name];
    byId(`${name}-value`).textContent = String(data[`${name}s`][state[name]]);
    byId(name).setAttribute("aria-valuetext", `${name} = ${data[`${name}s`][state[name]]}`);
  }
  showSummary();
  showHalves();
  showClasses();
  showMap();
  showFavoured();
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
  input.addEventListener("input", () => choose({ [name]: Number(input.value) }));
}
let waiting = 0;
addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(show, 120); });
addEventListener("hashchange", () => { restore(); show(); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
addEventListener("beforeprint", () => { document.documentElement.classList.add("printing"); show(); });
addEventListener("afterprint", () => { document.documentElement.classList.remove("printing"); show(); });
showVariance();
showAdvice();
showCuration();
restore();
show();
