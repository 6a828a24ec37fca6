// Words that are explained where they stand: to who points at them, reaches them by key or touches them.

const TERMS = {
  "evenness": "How evenly classes share a batch: exp(entropy of their shares) / number of classes. 1 if all have the same share, 1 / number of classes if there is only one.",
  "effective items": "(Σb)² / Σb² as a share of all items: on how many equally likely items training would look as uneven. 100 % if every item is as likely.",
  "effective size": "What a batch counts when weights 1 / (N b) keep the plain mean loss as the objective: at most k, and far less if some items are hardly ever drawn.",
  "seen in one epoch": "Share of the items that are expected in at least one of the N / k batches of an epoch.",
  "noise repelled": "Share of the variance of a batch's features that is removed because similar items avoid each other; estimated from draws.",
  "noise": "Variance of a batch's features; that of the same b without repulsion is 100 %. Estimated from draws.",
  "similarity": "Mean cosine over the pairs of a batch, by the kernel: 1 if all are copies of each other, 0 if they have nothing in common. Estimated from draws.",
  "rarest class": "Share of a batch that belongs to the class with the fewest items.",
  "near-copies": "Items with a cosine above 0.995: they share a batch at most a hundredth as often as if they had nothing in common.",
};

let explained = null;

function placeTip(left, top, bottom) {
  const tip = byId("tip");
  tip.style.display = "block";
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(left, innerWidth - box.width - 4))}px`;
  tip.style.top = `${bottom + box.height > innerHeight ? Math.max(4, top - box.height) : bottom}px`;
}

function hideTip() {
  byId("tip").style.display = "none";
  explained?.removeAttribute("aria-describedby");
  explained = null;
}

function placeBy(button) {
  const box = button.getBoundingClientRect();
  placeTip(box.left, box.top - 6, box.bottom + 6);
}

function explain(button) {
  hideTip();
  byId("tip").replaceChildren(element("b", {}, button.textContent), TERMS[button.dataset.term]);
  button.setAttribute("aria-describedby", "tip");
  explained = button;
  placeBy(button);
}

function explaining(button) {
  button.addEventListener("pointerenter", (event) => { if (event.pointerType === "mouse") explain(button); });
  button.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") hideTip(); });
  button.addEventListener("focus", () => explain(button));
  button.addEventListener("blur", hideTip);
  button.addEventListener("click", () => explain(button));
  return button;
}

// The word itself, or a button that explains it.
function term(name) {
  if (!(name in TERMS)) return name;
  const button = element("button", { type: "button", className: "term" }, name);
  button.dataset.term = name;
  return explaining(button);
}

document.querySelectorAll("button[data-term]").forEach(explaining);
addEventListener("keydown", (event) => { if (event.key === "Escape") hideTip(); });
addEventListener("click", (event) => { if (explained && !event.target.closest(".term")) hideTip(); });
addEventListener("scroll", () => { if (explained) placeBy(explained); }, { passive: true });
