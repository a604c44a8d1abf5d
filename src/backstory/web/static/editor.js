// The editor: a guard for unsaved changes, and a preview that leaves the text alone.

import { fetchPart } from "./part.js";

const form = document.getElementById("editor");
const text = form.elements.text;
const state = document.getElementById("state");
const begun = text.value;
let isSaving = false;

const isChanged = () => text.value !== begun || "changed" in form.dataset;

text.addEventListener("input", () => {
  state.textContent = isChanged() ? "Not saved yet" : "";
});

addEventListener("beforeunload", (event) => {
  if (isChanged() && !isSaving) event.preventDefault();
});

// Whether the server is there and lets this browser in. If not, sending the form would
// lose what was typed.
async function canSave() {
  try {
    return (await fetch("/memory", { method: "HEAD" })).ok;
  } catch {
    return false;
  }
}

const ENDED = "because 'backstory web' has ended. Start it again, open its link in another tab, and";

async function save(button) {
  isSaving = await canSave();
  if (isSaving) form.requestSubmit(button);
  else state.textContent = `Not saved, ${ENDED} save here.`;
}

async function showPreview(button) {
  const body = new URLSearchParams(new FormData(form, button));
  try {
    const preview = await fetchPart(form.action, "preview", { method: "POST", body });
    document.getElementById("preview").replaceWith(preview);
    preview.scrollIntoView({ block: "nearest" });
  } catch {
    state.textContent = `There is no preview, ${ENDED} try again here.`;
  }
}

form.addEventListener("submit", async (event) => {
  if (isSaving) return;
  event.preventDefault();
  if (event.submitter?.value !== "preview") {
    await save(event.submitter);
    return;
  }
  await showPreview(event.submitter);
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "s" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  form.requestSubmit(form.querySelector("[value=save]"));
});
