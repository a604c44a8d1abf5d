// How far the work is, as long as there is some.

import { fetchPart } from "./part.js";

const EVERY_MS = 400;

async function watch() {
  const old = document.getElementById("job");
  if (!("running" in old.dataset)) return;
  const now = await fetchPart("/status", "job");
  if ("running" in now.dataset) {
    // Only the bar is changed, so that the button keeps its focus.
    old.querySelector(".far").replaceWith(now.querySelector(".far"));
    setTimeout(watch, EVERY_MS);
  } else if (document.querySelector("#search input[type=search]")?.value) {
    // Whoever searches in the meantime is not disturbed.
    old.remove();
  } else {
    // What else the page says has changed as well.
    location.replace(location.pathname);
  }
}

setTimeout(watch, EVERY_MS);
