// Show the progress of a job while it runs.

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
    // Do not disturb somebody who searches in the meantime.
    old.remove();
  } else {
    // The rest of the page has changed as well.
    location.replace(location.pathname);
  }
}

setTimeout(watch, EVERY_MS);
