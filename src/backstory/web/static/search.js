// Results while typing. The address always matches what is shown, so that it can be
// shared, and going back shows what was there before.

import { fetchPart } from "./part.js";
import { showCopyButtons } from "./keys.js";

const SLOW_MS = 250;
const form = document.getElementById("search");
const box = document.getElementById("q");
// The address to request next.
let wanted = null;
let asking = null;
// Whether typing may replace the current entry in the browser's history.
let isTyping = false;

function currentUrl() {
  const pairs = [...new FormData(form)].filter(([, value]) => value.trim());
  const query = new URLSearchParams(pairs).toString();
  return query ? `/?${query}` : "/";
}

// Keep the focus on the result that had it, or on the one that takes its place.
function replaceResults(results) {
  const old = document.getElementById("results");
  const place = [...old.querySelectorAll("[data-item]")].indexOf(document.activeElement);
  const href = document.activeElement?.getAttribute("href");
  old.replaceWith(results);
  if (place < 0) return;
  const items = [...results.querySelectorAll("[data-item]")];
  const same = items.find((each) => each.getAttribute("href") === href);
  (same ?? items[place] ?? box).focus();
}

function tellThatNobodyAnswers() {
  const notice = document.createElement("p");
  notice.className = "notice";
  notice.textContent = "There is no answer, because 'backstory web' has ended. Start it again and open its link.";
  const results = document.getElementById("results");
  results.classList.remove("busy");
  results.replaceChildren(notice);
}

// One search at a time: when it has ended, only the latest text that was typed in the
// meantime is searched for. So results come as fast as possible, however fast somebody
// types. A search that takes long is not waited for.
async function show(url) {
  wanted = url;
  if (asking) {
    if (performance.now() - asking.since > SLOW_MS) asking.abort();
    return;
  }
  document.getElementById("results").classList.add("busy");
  while (wanted !== null) {
    const asked = wanted;
    wanted = null;
    asking = new AbortController();
    asking.since = performance.now();
    const signal = asking.signal;
    try {
      const results = await fetchPart(asked, "results", { signal });
      showCopyButtons(results);
      if (wanted !== null) results.classList.add("busy");
      replaceResults(results);
    } catch (error) {
      if (signal.aborted) continue;
      asking = null;
      // The page itself says what is wrong, unless the server does not answer.
      if (error instanceof TypeError) tellThatNobodyAnswers();
      else location.assign(asked);
      return;
    }
  }
  asking = null;
  document.title = `${box.value.trim() || "Search"} · Backstory`;
}

function search({ typing }) {
  const url = currentUrl();
  if (url === location.pathname + location.search) return;
  if (typing && isTyping) history.replaceState(null, "", url);
  else history.pushState(null, "", url);
  isTyping = typing;
  show(url);
}

function fillIn(url) {
  const asked = new URL(url, location.href).searchParams;
  for (const field of form.elements) {
    if (!field.name) continue;
    const value = asked.get(field.name) ?? "";
    if (field.type === "checkbox") field.checked = value === field.value;
    else field.value = value;
  }
}

box.addEventListener("input", () => {
  search({ typing: true });
});

form.addEventListener("change", (event) => {
  if (event.target === box) isTyping = false;
  else search({ typing: false });
});

form.addEventListener("submit", (event) => {
  event.preventDefault();
  search({ typing: true });
  isTyping = false;
});

document.addEventListener("click", (event) => {
  const more = event.target.closest("[data-more]");
  if (!more || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  history.pushState(null, "", more.href);
  show(more.href);
});

addEventListener("popstate", () => {
  isTyping = false;
  fillIn(location.href);
  show(location.href);
});

// Search for what was typed before this script was loaded.
const asked = new URLSearchParams(location.search).get("q") ?? "";
if (box.value.trim() !== asked.trim()) search({ typing: true });
