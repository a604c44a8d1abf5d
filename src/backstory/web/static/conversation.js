// Load more messages on scrolling, and mark the words that were looked for.

import { fetchPart } from "./part.js";

// Messages that are farther away than this are removed from the page again, so that a
// conversation of any length scrolls smoothly.
const MOST = 400;
const list = document.getElementById("messages");
const words = (list.dataset.find ?? "").toLowerCase();
const ranges = words && window.Highlight ? new Highlight() : null;
if (ranges) CSS.highlights.set("found", ranges);

function markWords(within) {
  if (!ranges) return;
  const texts = document.createTreeWalker(within, NodeFilter.SHOW_TEXT);
  for (let node = texts.nextNode(); node; node = texts.nextNode()) {
    const text = node.data.toLowerCase();
    if (text.length !== node.data.length) continue; // positions would be off
    for (let at = text.indexOf(words); at >= 0; at = text.indexOf(words, at + words.length)) {
      const range = new Range();
      range.setStart(node, at);
      range.setEnd(node, at + words.length);
      ranges.add(range);
    }
  }
}

// Change the list, and keep what is being read where it is on the screen.
function keepingPlace(anchor, change) {
  const before = anchor.getBoundingClientRect().top;
  change();
  scrollBy(0, anchor.getBoundingClientRect().top - before);
}

function makeLink(kind, message) {
  const link = document.createElement("a");
  const url = new URL(location.pathname, location.origin);
  url.searchParams.set(kind === "earlier" ? "before" : "after", message.dataset.message);
  if (list.dataset.find) url.searchParams.set("find", list.dataset.find);
  link.className = `button ${kind}`;
  link.href = url;
  link.textContent = kind === "earlier" ? "Earlier messages" : "Later messages";
  return link;
}

function trim(kind) {
  const messages = [...list.querySelectorAll(":scope > article")];
  const extra = messages.length - MOST;
  if (extra <= 0) return;
  const [gone, edge] =
    kind === "earlier"
      ? [messages.slice(0, extra), messages[extra]]
      : [messages.slice(-extra), messages[messages.length - extra - 1]];
  const isGone = new Set(gone);
  // From the end on, so that a day is removed after its messages.
  for (const node of [...list.children].reverse()) {
    if (node.matches(`.${kind}`) || isGone.has(node)) node.remove();
    else if (node.matches("h2") && (!node.nextElementSibling?.matches("article"))) node.remove();
  }
  const link = makeLink(kind, edge);
  if (kind === "earlier") list.prepend(link);
  else list.append(link);
  watcher.observe(link);
}

// Every part that is loaded begins with its day; show each day only once.
function dropRepeatedDays() {
  let day = null;
  for (const node of [...list.querySelectorAll(":scope > h2")]) {
    if (node.textContent === day) node.remove();
    day = node.textContent;
  }
}

// -- where in the conversation this is ---

const place = document.getElementById("nr");
const shown = document.getElementById("shown");
const stays = document.querySelector(".stays");

function sayPlace(nr) {
  const text = `${Number(nr).toLocaleString("en")} of ${shown.dataset.total}`;
  shown.textContent = text;
  place.setAttribute("aria-valuetext", text);
}

// The first message that is not hidden behind the bar.
function findTopMessage() {
  const messages = list.querySelectorAll(":scope > article");
  const edge = stays.getBoundingClientRect().bottom + 8;
  let [first, last] = [0, messages.length - 1];
  while (first < last) {
    const middle = (first + last) >> 1;
    if (messages[middle].getBoundingClientRect().bottom > edge) last = middle;
    else first = middle + 1;
  }
  return messages[first];
}

let isWaiting = false;
function followScroll() {
  if (isWaiting || place.dataset.moving) return;
  isWaiting = true;
  requestAnimationFrame(() => {
    isWaiting = false;
    const isAtEnd = !list.querySelector(":scope > .later") && innerHeight + scrollY >= document.body.scrollHeight - 2;
    const top = isAtEnd ? list.querySelector(":scope > article:last-of-type") : findTopMessage();
    if (!top || place.dataset.moving) return;
    place.value = top.dataset.nr;
    sayPlace(top.dataset.nr);
  });
}

// The first message right below the bar.
function scrollToFirst() {
  const first = list.querySelector(":scope > article");
  if (first) scrollBy(0, first.getBoundingClientRect().top - stays.offsetHeight - 8);
}

async function goTo(nr) {
  const url = new URL(location.pathname, location.origin);
  url.searchParams.set("nr", nr);
  if (list.dataset.find) url.searchParams.set("find", list.dataset.find);
  const part = await fetchPart(url, "messages");
  if (place.value !== nr) return; // moved on in the meantime
  history.replaceState(history.state, "", url);
  const nodes = [...part.children];
  list.replaceChildren(...nodes);
  scrollToFirst();
  for (const node of nodes) prepare(node);
  delete place.dataset.moving;
}

if (place) {
  // Scrolls there when the slider is released.
  place.form.querySelector("button").hidden = true;
  place.addEventListener("input", () => {
    place.dataset.moving = "yes";
    sayPlace(place.value);
  });
  place.addEventListener("change", () => {
    goTo(place.value).catch(() => place.form.submit());
  });
  addEventListener("scroll", followScroll, { passive: true });
}

// -- more messages ---

function prepare(node) {
  markWords(node);
  showNestedButtons(node);
  if (node.matches(".earlier, .later")) watcher.observe(node);
}

async function load(link) {
  watcher.unobserve(link);
  const part = await fetchPart(link.href, "messages");
  const isEarlier = link.matches(".earlier");
  const nodes = [...part.children].filter((node) => !node.matches(isEarlier ? ".later" : ".earlier"));
  // Not a day, which may be removed.
  const messages = list.querySelectorAll(":scope > article");
  const anchor = messages[isEarlier ? 0 : messages.length - 1] ?? list;
  keepingPlace(anchor, () => {
    link.replaceWith(...nodes);
    dropRepeatedDays();
    trim(isEarlier ? "later" : "earlier");
  });
  for (const node of nodes) prepare(node);
}

const watcher = new IntersectionObserver(
  (seen) => {
    for (const each of seen) {
      // If it fails, the link is still there to click on.
      if (each.isIntersecting) load(each.target).catch(() => {});
    }
  },
  { rootMargin: "1200px 0px" },
);

// Unfold a folded message that the address names.
function unfoldTarget() {
  const target = location.hash && document.getElementById(location.hash.slice(1));
  if (!target) return;
  const folded = target.closest("details") ?? target.querySelector("details");
  if (folded) folded.open = true;
  target.scrollIntoView({ block: "start" });
}

// -- what a subagent said, within the call that started it ---

function showNestedButtons(within) {
  for (const each of within.querySelectorAll("[data-nested]")) each.hidden = false;
}

async function loadNested(link) {
  const part = await fetchPart(link.href, "messages");
  part.removeAttribute("id"); // the page has such a list already
  part.className = "nested";
  showNestedButtons(part);
  markWords(part);
  const around = link.closest(".nested");
  if (around && link.matches(".later")) {
    for (const each of part.querySelectorAll(":scope > .earlier")) each.remove();
    link.replaceWith(...part.children);
  } else {
    link.closest("[data-nested]").replaceWith(part);
  }
}

list.addEventListener("click", (event) => {
  const link = event.target.closest("[data-nested] a, .nested > .later");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  loadNested(link).catch(() => location.assign(link.href));
});

showNestedButtons(list);
markWords(list);
unfoldTarget();
if (new URLSearchParams(location.search).has("nr")) {
  // Go where the address says; the browser would restore a position among other messages.
  history.scrollRestoration = "manual";
  scrollToFirst();
}
addEventListener("hashchange", unfoldTarget);
for (const link of list.querySelectorAll(".earlier, .later")) watcher.observe(link);
if (place) followScroll();
