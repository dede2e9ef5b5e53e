"use strict";
// Keys of the review queue; each does what a link or a control of the page does. None acts while somebody types, and
// none decides: that takes a reason, and Enter or the button.

const decisions = [...document.querySelectorAll("details.decision")];
const switched = document.getElementById("keys");

function typing(target) {
  return target.closest("input:not([type=radio], [type=checkbox]), select, textarea, [contenteditable]") !== null;
}

function choose(decision, number) {
  const ready = decision.querySelectorAll("input[name=ready]");
  const own = decision.querySelector("input[name=reason]");
  if (number < 1 || number > ready.length + 1) return false;
  if (number <= ready.length) ready[number - 1].click();
  (number <= ready.length ? ready[number - 1] : own).focus();
  return true;
}

function act(event) {
  const open = decisions.find((decision) => decision.open);
  if (event.key === "Escape" && open !== undefined) {
    open.open = false;
    open.querySelector("summary").focus();
    return true;
  }
  if (typing(event.target)) return false;
  const key = event.key.toLowerCase();
  const called = decisions.find((decision) => decision.dataset.key === key);
  if (called !== undefined) {
    for (const decision of decisions) decision.open = decision === called;
    called.querySelector("input[name=ready]").focus();
    return true;
  }
  if (open !== undefined) return /^[1-9]$/.test(key) && choose(open, Number(key));
  const sideways = event.target.closest(".scroll") === null ? { arrowright: "next", arrowleft: "prev" }[key] : undefined;
  const way = { j: "next", k: "prev" }[key] ?? sideways;
  const link = way === undefined ? null : document.querySelector(`a[rel=${way}]`);
  link?.click();
  return link !== null;
}

document.addEventListener("keydown", (event) => {
  const other = event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.isComposing;
  if (!other && switched?.checked && act(event)) event.preventDefault();
});

for (const decision of decisions) {
  const own = decision.querySelector("input[name=reason]");
  const form = decision.querySelector("form");
  const reasoned = () => {
    const given = form.querySelector("input[name=ready]:checked") !== null || own.value.trim().length >= 3;
    own.setCustomValidity(given ? "" : "Choose a reason, or write one of 3 characters or more.");
  };
  form.addEventListener("input", reasoned);
  reasoned();
  let sent = false;
  form.addEventListener("submit", (event) => {
    if (sent) event.preventDefault(); // Enter twice
    sent = true;
    setTimeout(() => { sent = false; }, 3000);
  });
}

if (switched !== null) {
  // Browsers that forbid storage throw; then the keys act until they are switched off on each page.
  const remembered = (act) => { try { return act(); } catch { return null; } };
  switched.checked = remembered(() => localStorage.getItem("review-keys")) !== "off";
  switched.addEventListener("change", () => remembered(() => localStorage.setItem("review-keys", switched.checked ? "on" : "off")));
  switched.closest(".keys").hidden = false;
}
