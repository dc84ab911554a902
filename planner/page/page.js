"use strict";
document.documentElement.classList.add("js");

// One side at a time.
for (const choice of document.querySelectorAll(".choice")) {
  const buttons = [...choice.querySelectorAll(":scope > .sides button")];
  const panels = [...choice.querySelectorAll(":scope > .panel")];
  const show = (chosen) => {
    buttons.forEach((button, at) => button.setAttribute("aria-pressed", String(at === chosen)));
    panels.forEach((panel, at) => { panel.hidden = at !== chosen; });
  };
  buttons.forEach((button, at) => button.addEventListener("click", () => show(at)));
  show(0);
}

for (const button of document.querySelectorAll("button.numbers")) {
  const table = button.parentElement.querySelector("table");
  button.addEventListener("click", () => {
    button.setAttribute("aria-pressed", String(table.classList.toggle("shown")));
  });
}

// What a cell or a part of a drawing is: said in the line below it.
const told = (item) => {
  if (item.dataset.says) return item.dataset.says;
  const row = item.parentElement, table = row.closest("table");
  const heads = table.tHead.rows[0].cells;
  const column = heads[item.cellIndex].textContent, corner = heads[0].textContent;
  return corner + " " + row.cells[0].textContent + ", " + column + ": " + item.textContent;
};

// A heat map or a drawing is one stop of the Tab key; arrows go from part to part.
for (const map of document.querySelectorAll(".map")) {
  const says = map.querySelector(".says");
  const items = () => [...map.querySelectorAll(".heat tbody td, [data-says]")];
  const first = items()[0];
  if (!first || !says) continue;
  let here = first;
  here.tabIndex = 0;
  const go = (item) => {
    here.tabIndex = -1;
    here = item;
    here.tabIndex = 0;
    here.focus({ preventScroll: false });
  };
  map.addEventListener("keydown", (event) => {
    const all = items(), at = all.indexOf(document.activeElement);
    if (at < 0) return;
    const row = here.parentElement.cells;
    const across = row ? row.length - 1 : Number(map.dataset.across || 1);
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: across, ArrowUp: -across, Home: -at, End: all.length - 1 - at }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    if (all[at + step]) go(all[at + step]);
  });
  const tell = (event) => {
    const item = event.target.closest(".heat tbody td, [data-says]");
    if (item) says.textContent = told(item);
  };
  map.addEventListener("focusin", tell);
  map.addEventListener("mouseover", tell);
  map.addEventListener("click", (event) => {
    const item = event.target.closest(".heat tbody td, [data-says]");
    if (item) go(item);
  });
}

// Where in the page the reader is.
const links = new Map([...document.querySelectorAll("nav a")].map((link) => [link.hash.slice(1), link]));
const seen = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (!entry.isIntersecting) continue;
    for (const [name, link] of links) {
      const here = name === entry.target.id;
      link.classList.toggle("here", here);
      if (here) link.setAttribute("aria-current", "true"); else link.removeAttribute("aria-current");
    }
  }
}, { rootMargin: "-20% 0px -70% 0px" });
for (const section of document.querySelectorAll("main > section")) seen.observe(section);

// A fold that an anchor leads into opens.
const open = () => {
  const target = location.hash && document.getElementById(location.hash.slice(1));
  for (let one = target; one; one = one.parentElement) if (one.tagName === "DETAILS") one.open = true;
};
addEventListener("hashchange", open);
open();
