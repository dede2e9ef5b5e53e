"use strict";
// Keeps parts of a page current, and fits a report's frame to its content. Without it the page refreshes itself or is reloaded.

const clock = () => `${new Date().toISOString().slice(11, 19)} UTC`;

function note(text) {
  for (const place of document.querySelectorAll("[data-live-note]")) place.textContent = text;
}

function stateOf(element) {
  const part = element.querySelector("[data-state]");
  return part === null ? null : part.dataset.state;
}

async function refresh(part) {
  const answer = await fetch(part.dataset.live, { credentials: "same-origin", redirect: "error" });
  if (!answer.ok) throw new Error(String(answer.status));
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").body;
  // Other actions are possible in another state: the whole page is needed.
  if (stateOf(fresh) !== stateOf(part)) {
    location.reload();
    return false;
  }
  // What somebody is at with the keyboard stays where it is, and the time beside it.
  if (!part.contains(document.activeElement)) {
    part.replaceChildren(...fresh.childNodes);
    note(`Live, ${clock()}`);
  }
  return true;
}

function keepCurrent(part) {
  const every = Number(part.dataset.every);
  let failures = 0;
  let since = clock();
  const again = async () => {
    let wait = every;
    if (!document.hidden) {
      try {
        if (!(await refresh(part))) return;
        failures = 0;
        since = clock();
      } catch {
        failures += 1;
        wait = Math.min(30000, every * 2 ** failures);
        note(`Not current since ${since}; reload if this stays`);
      }
    }
    setTimeout(again, wait);
  };
  setTimeout(again, every);
}

async function takeIn(place) {
  try {
    const answer = await fetch(place.dataset.part, { credentials: "same-origin", redirect: "error" });
    if (!answer.ok) throw new Error(String(answer.status));
    const part = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("part");
    place.replaceChildren(...part.childNodes);
  } catch {
    place.textContent = "This part could not be loaded; reload the page to try again.";
  }
}

function fit(frame) {
  const measure = () => {
    const page = frame.contentDocument;
    if (page === null || page.body === null) return;
    frame.style.height = `${Math.ceil(page.documentElement.getBoundingClientRect().height) + 2}px`;
  };
  const begin = () => {
    measure();
    const page = frame.contentDocument;
    if (page !== null && page.body !== null) new ResizeObserver(measure).observe(page.body);
  };
  if (frame.contentDocument !== null && frame.contentDocument.readyState === "complete") begin();
  frame.addEventListener("load", begin);
}

document.querySelectorAll("[data-live]").forEach(keepCurrent);
document.querySelectorAll("[data-part]").forEach(takeIn);
document.querySelectorAll("iframe[data-fit]").forEach(fit);
