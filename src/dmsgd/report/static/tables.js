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
  const head = ["batches", ...(data.classes.length ? ["evenness", "rarest class"] : []), "effective items",
    "seen in one epoch", "effective size", "noise repelled", "draw"];
  const row = (name, each) => [name, ...ofClasses(each), percent(each.items), percent(each.seen), each.effective.toFixed(1),
    each.repulsion ? percent(Math.max(each.repulsion.value, 0)) : "", seconds(each.seconds)];
  const rows = [row("uniform", plain)];
  if (data.strata.length) rows.push(row("stratified", data.strata[state.k]));
  const first = rows.length, asked = k === data.k, named = data.targets.filter((each) => asked && !each.reason);
  rows.push(...data.ws.map((w, i) => row(data.target ? `target ${data.target}` : data.ws.length > 1 ? `w = ${w}` : "k-DPP",
    data.choices[i][state.k])));
  rows.push(...named.map((each) => row(each.name, each)));
  byId("choices").replaceChildren(...table(head, rows));
  byId("choices").tBodies[0].rows[first + state.w].classList.add("chosen");
  const part = data.targets.length && data.targets[0].of < data.sampled ? `, on ${count(data.targets[0].of)} of the items` : "";
  const refused = data.targets.filter((each) => each.reason).map((each) => ` There is no ${each.name}: ${each.reason}.`);
  byId("targets-note").textContent = (asked ? `The other targets are computed for w = ${data.w} and k = ${data.k}${part}.`
    : `Targets are shown for k = ${data.k}.`) + (asked ? refused.join("") : "");
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
