// Makes the pages livelier; without it all of them work, with a button or a reload more.
"use strict";

document.documentElement.classList.add("scripted-page");
history.replaceState(null, ""); // going back to the answer of a form asks for the page, not to resend

// --- is anybody there? ---------------------------------------------------------------------------

const lost = document.getElementById("lost");

function answered(yes) {
  if (lost) lost.hidden = yes;
  for (const button of document.querySelectorAll("form[method=post] button")) {
    button.disabled = !yes || button.dataset.sent === "yes";
  }
}

async function ask(url) {
  try {
    const answer = await fetch(url, { redirect: "error" });
    answered(answer.status !== 403); // another run of the studio does not know this page
    return answer.ok ? answer : null;
  } catch {
    answered(false);
    return null;
  }
}

setInterval(() => ask("alive"), 1500);
for (const change of ["online", "offline", "focus"]) addEventListener(change, () => ask("alive"));

// --- parts that change by themselves -------------------------------------------------------------

const live = document.getElementById("live");
let asked = 0;

async function refresh(query) {
  const number = ++asked;
  const url = live.dataset.live + query;
  const answer = await ask(url);
  if (number !== asked) return; // a later question is on its way
  if (answer) show(await answer.text());
  again(answer ? live.firstElementChild.dataset.again : 1500, query);
}

function show(text) {
  const part = new DOMParser().parseFromString(text, "text/html").body.firstElementChild;
  const old = live.firstElementChild;
  const frame = old.querySelector("iframe");
  if (frame && part.querySelector("iframe")) return;
  const focused = document.activeElement && old.contains(document.activeElement)
    ? document.activeElement.id : "";
  const status = old.querySelector("[role=status]"), next = part.querySelector("[role=status]");
  if (status && next && status.innerHTML === next.innerHTML) next.replaceWith(status);
  old.replaceWith(part);
  if (focused) document.getElementById(focused)?.focus();
  fitFrame();
  if (part.dataset.go) location.assign(part.dataset.go);
}

// --- a model's page is as high as what it shows: nothing scrolls within the page -----------------

function fitFrame() {
  const frame = document.querySelector("iframe.model");
  const fit = () => {
    const page = frame.contentDocument?.documentElement;
    if (page?.offsetHeight > 100) frame.style.height = `${page.offsetHeight + 2}px`;
  };
  frame?.addEventListener("load", () => {
    fit();
    new ResizeObserver(fit).observe(frame.contentDocument.documentElement);
  });
  if (frame) fit();
}

fitFrame();

let timer = 0;

function again(milliseconds, query) {
  clearTimeout(timer);
  if (Number(milliseconds) > 0) timer = setTimeout(() => refresh(query), Number(milliseconds));
}

// --- the budget: one number in two places --------------------------------------------------------

const spend = document.getElementById("spend");

function epsilonQuery() {
  const typed = new URLSearchParams({
    epsilon: document.getElementById("epsilon").value,
    delta: document.getElementById("delta").value,
  });
  return `?${typed}`;
}

if (spend) {
  const field = document.getElementById("epsilon"), slider = document.getElementById("slider");
  const least = Math.log(Number(spend.dataset.least)), most = Math.log(Number(spend.dataset.most));
  const place = () => {
    const share = (Math.log(Number(field.value.replace(",", "."))) - least) / (most - least);
    if (Number.isFinite(share)) slider.value = Math.round(1000 * Math.min(1, Math.max(0, share)));
    slider.setAttribute("aria-valuetext", `epsilon ${field.value}`);
  };
  let wait = 0;
  const moved = () => {
    clearTimeout(wait);
    wait = setTimeout(() => refresh(epsilonQuery()), 60);
  };
  slider.addEventListener("input", () => {
    const epsilon = Math.exp(least + (most - least) * slider.value / 1000);
    field.value = String(Number(epsilon.toPrecision(2)));
    slider.setAttribute("aria-valuetext", `epsilon ${field.value}`);
    moved();
  });
  for (const one of [field, document.getElementById("delta")]) {
    one.addEventListener("input", () => { place(); moved(); });
  }
  place();
  again(live.dataset.again, epsilonQuery());
} else if (live) {
  again(live.dataset.again, "");
}

// --- columns: only what belongs to a kind is shown -----------------------------------------------

for (const select of document.querySelectorAll("tr select.kind")) {
  select.addEventListener("change", () => { select.closest("tr").dataset.kind = select.value; });
}

document.getElementById("columns")?.addEventListener("input", () => {
  document.querySelector(".still")?.remove(); // it was counted when the page was made
});

// --- the question: only what belongs to a model is shown -----------------------------------------

const question = document.getElementById("question");

if (question) {
  const models = [...question.elements.model], target = document.getElementById("target");
  const ofOutcomes = (one) => "outcomes" in one.dataset;
  const formula = async () => { // as the page would be shown after a button, but that it stays
    const form = new URLSearchParams(new FormData(question));
    form.set("term", "show");
    const answer = await fetch("question", { method: "POST", body: form }).catch(() => null);
    if (!answer?.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    document.getElementById("formula").replaceWith(page.getElementById("formula"));
  };
  question.addEventListener("change", (event) => {
    if (["feature", "target"].includes(event.target.name)) formula();
  });
  for (const button of question.querySelectorAll("[data-all]")) {
    button.addEventListener("click", () => {
      for (const one of question.querySelectorAll("[name=feature]")) one.checked = button.dataset.all;
      formula();
    });
  }
  target.addEventListener("change", () => { // as the command line does: two outcomes, binary
    const two = ofOutcomes(target.selectedOptions[0]);
    if (models.some((one) => one.checked && ofOutcomes(one) !== two)) {
      models.find((one) => ofOutcomes(one) === two).checked = true;
    }
  });
}

// --- nothing is sent twice by a double click ------------------------------------------------------

for (const form of document.querySelectorAll("form[method=post]")) {
  form.addEventListener("submit", (event) => {
    if (form.dataset.sent === "yes") event.preventDefault();
    form.dataset.sent = "yes";
  });
}
addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form")) delete form.dataset.sent;
});
