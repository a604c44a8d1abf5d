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

form.addEventListener("submit", async (event) => {
  if (event.submitter?.value !== "preview") {
    isSaving = true;
    return;
  }
  event.preventDefault();
  const body = new URLSearchParams(new FormData(form, event.submitter));
  const preview = await fetchPart(form.action, "preview", { method: "POST", body });
  document.getElementById("preview").replaceWith(preview);
  preview.scrollIntoView({ block: "nearest" });
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "s" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  form.requestSubmit(form.querySelector("[value=save]"));
});
