// Keys that work on every page, and buttons that need a script.

const help = document.getElementById("keys");

const items = () => [...document.querySelectorAll("[data-item]")].filter((each) => each.checkVisibility());

function move(step) {
  const all = items();
  const box = document.querySelector("input[type=search]");
  const next = all.indexOf(document.activeElement) + step;
  if (next < 0) {
    box?.focus();
  } else if (next < all.length) {
    all[next].focus();
    all[next].scrollIntoView({ block: "nearest" });
  }
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
  const target = event.target;
  const isBox = target.matches("input[type=search]");
  const isTyping = target.matches("input, textarea, select") && !isBox;
  if (isTyping) return;
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    if (!items().length || (isBox && event.key === "ArrowUp")) return;
    if (!isBox && !target.matches("[data-item], body, main")) return;
    move(event.key === "ArrowDown" ? 1 : -1);
  } else if (event.key === "Escape") {
    const box = document.querySelector("input[type=search]");
    if (!box || isBox) return; // the browser empties a box by itself
    box.focus();
    box.select();
  } else if (isBox) {
    return;
  } else if (event.key === "/") {
    const box = document.querySelector("input[type=search]");
    if (!box) location.assign("/");
    box?.focus();
    box?.select();
  } else if (event.key === "?") {
    help.showModal();
  } else {
    return;
  }
  event.preventDefault();
});

// When somebody comes back to a list, focus the item that was opened.
document.addEventListener("click", (event) => {
  const item = event.target.closest("a[data-item]");
  if (item) history.replaceState({ opened: item.getAttribute("href") }, "");
});

const { opened } = history.state ?? {};
if (opened) {
  const item = items().find((each) => each.getAttribute("href") === opened);
  item?.focus({ preventScroll: true });
}

// A message such as "saved" is not shown again on reloading.
if (document.querySelector("[data-once]")) {
  history.replaceState(history.state, "", location.pathname + location.hash);
}

for (const button of document.querySelectorAll("[data-keys]")) {
  button.hidden = false;
  button.addEventListener("click", () => help.showModal());
}

// Copying needs a script, so its buttons are hidden until there is one.
export function showCopyButtons(within) {
  for (const button of within.querySelectorAll("[data-copy]")) button.hidden = false;
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(button.dataset.copy);
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = "Copy"), 1500);
});

showCopyButtons(document);
