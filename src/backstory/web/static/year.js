// The days of a year are one stop of the Tab key: arrows go from one to the next, and the
// latest day comes first.

const days = [...document.querySelectorAll(".year a")];
const STEPS = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 };

function stopAt(day) {
  for (const each of days) each.setAttribute("tabindex", each === day ? "0" : "-1");
}

for (const [place, day] of days.entries()) {
  day.addEventListener("keydown", (event) => {
    const next = days[place + STEPS[event.key]];
    if (!next) return;
    event.preventDefault();
    stopAt(next);
    next.focus();
  });
}

stopAt(days.at(-1));
