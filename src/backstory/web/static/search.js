// Results as one types. The address always says what is shown, so that it can be shared
// and that going back shows what was there.

import { fetchPart } from "./part.js";
import { showCopyButtons } from "./keys.js";

const WAIT_MS = 90;
const form = document.getElementById("search");
const box = document.getElementById("q");
let waiting = 0;
let fetching = null;
// Whether the entry in the browser's history is one that typing goes on with.
let isTyping = false;

function currentUrl() {
  const pairs = [...new FormData(form)].filter(([, value]) => value.trim());
  const query = new URLSearchParams(pairs).toString();
  return query ? `/?${query}` : "/";
}

async function show(url) {
  fetching?.abort();
  fetching = new AbortController();
  const signal = fetching.signal;
  const old = document.getElementById("results");
  old.classList.add("busy");
  try {
    const results = await fetchPart(url, "results", { signal });
    showCopyButtons(results);
    document.getElementById("results").replaceWith(results);
    document.title = `${box.value.trim() || "Search"} · Backstory`;
  } catch (error) {
    if (signal.aborted) return;
    // The page itself says what is wrong, also that the server has ended.
    location.assign(url);
  }
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
  clearTimeout(waiting);
  waiting = setTimeout(() => search({ typing: true }), WAIT_MS);
});

form.addEventListener("change", (event) => {
  if (event.target === box) isTyping = false;
  else search({ typing: false });
});

form.addEventListener("submit", (event) => {
  event.preventDefault();
  clearTimeout(waiting);
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

// What was typed before this script was loaded.
const asked = new URLSearchParams(location.search).get("q") ?? "";
if (box.value.trim() !== asked.trim()) search({ typing: true });
