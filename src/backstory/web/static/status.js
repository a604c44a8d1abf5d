// How far the work is, as long as there is some.

import { fetchPart } from "./part.js";

const EVERY_MS = 400;

async function watch() {
  const old = document.getElementById("job");
  if (!("running" in old.dataset)) return;
  const now = await fetchPart("/status", "job");
  if ("running" in now.dataset) {
    // Only the bar is changed, so that the button keeps its focus.
    old.querySelector("progress").replaceWith(now.querySelector("progress"));
    setTimeout(watch, EVERY_MS);
  } else {
    // The numbers above have changed as well.
    location.replace("/status");
  }
}

setTimeout(watch, EVERY_MS);
