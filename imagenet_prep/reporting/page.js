"use strict";

const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const byId = id => document.getElementById(id);
const make = (name, text = "", attributes = {}) => Object.assign(document.createElement(name), { textContent: text, ...attributes });
const number = value => value.toLocaleString("en");

document.documentElement.classList.add("has-script");
const grid = document.querySelector("#gallery .grid");
const first = grid ? [...grid.children] : [];
const tiles = [...first, ...(byId("more")?.content.children ?? [])];
const charts = all(".chart");
const chips = all("input[data-split]");
const isShown = split => chips.every(chip => chip.checked || chip.dataset.split !== split);

// Filters: the pressed bars of each chart, and the class. Within a chart either bar will do; every chart must agree.
const holds = ({ low = -Infinity, high = Infinity }, value) => low <= value && value < high;
const pressed = chart => all("[aria-pressed=true]", chart);

const classRows = all(".classes tbody tr");
const nameOf = element => element.querySelector(".name, .label b")?.textContent.toLowerCase() ?? "";

// A whole name or label means that class alone; a part of a name or WordNet id means all classes that have it.
function classFilter() {
  const words = (byId("class")?.value ?? "").trim().toLowerCase();
  const isExact = each => each.dataset.label === words || nameOf(each) === words;
  const isAlike = each => nameOf(each).includes(words) || (each.dataset.wnid ?? "").includes(words);
  return words && (classRows.some(isExact) ? isExact : isAlike);
}

function filter() {
  const isOfClass = classFilter();
  const bars = charts.map((chart, place) => [place, pressed(chart).map(bar => bar.dataset)]).filter(([, own]) => own.length);
  const isFiltered = Boolean(isOfClass) || bars.length > 0;
  const matches = tile => {
    const values = tile.dataset.values.split(" ").map(Number);
    return (!isOfClass || isOfClass(tile)) && bars.every(([place, own]) => own.some(bar => holds(bar, values[place])));
  };
  const found = isFiltered ? tiles.filter(matches) : first;
  grid.replaceChildren(...found);
  const names = charts.flatMap(chart => pressed(chart).map(bar => `${chart.dataset.title}: ${bar.dataset.name}`));
  const shown = found.filter(tile => isShown(tile.className.split("of-")[1])).length;
  byId("found").textContent = [`${number(shown)} of the page's ${number(tiles.length)} images`, ...names].join(" \u00b7 ");
  byId("clear").hidden = !isFiltered;
  for (const row of classRows) row.hidden = isOfClass && !isOfClass(row);
  if (byId("images").getBoundingClientRect().bottom < 0 && isFiltered) byId("images").scrollIntoView();
}

function clear() {
  for (const bar of charts.flatMap(pressed)) bar.setAttribute("aria-pressed", "false");
  if (byId("class")) byId("class").value = "";
  filter();
}

// One bar of each chart is a tab stop; arrow keys move to the others.
for (const chart of charts) {
  const bars = all(".bars button:enabled", chart);
  bars.forEach((bar, place) => {
    bar.tabIndex = place ? -1 : 0;
    bar.addEventListener("keydown", event => {
      const next = bars[place + ({ ArrowLeft: -1, ArrowRight: 1 }[event.key] ?? NaN)];
      if (!next) return;
      [bar.tabIndex, next.tabIndex] = [-1, 0];
      next.focus();
      event.stopPropagation();
    });
    if (!grid) return;
    bar.addEventListener("click", () => {
      bar.setAttribute("aria-pressed", bar.getAttribute("aria-pressed") === "false");
      filter();
    });
  });
}

// The image that the URL names is large: links open and close it without this script, which adds details.
const neighbour = (tile, way) => {
  const shown = [...tile.parentElement.children].filter(each => isShown(each.className.split("of-")[1]));
  return shown[shown.indexOf(tile) + way];
};

function describe(tile) {
  const { label, wnid, size, record } = tile.dataset;
  const [width, height, ...bytes] = size.split(" ");
  const [place, offset, shard] = record.split(" ");
  const file = tile.querySelector(".file").textContent;
  const boxes = all(".box", tile).map(box => {
    const [left, top, wide, high] = ["left", "top", "width", "height"].map(each => parseFloat(box.style[each]) / 100);
    const corners = [left * width, top * height, (left + wide) * width, (top + high) * height].map(each => number(Math.round(each)));
    return `${box.textContent} (${corners.slice(0, 2).join(", ")}) to (${corners.slice(2).join(", ")})`.trim();
  });
  const facts = {
    label,
    "WordNet id": wnid,
    file: file === `record ${place} of ${shard}` ? "" : file,
    image: `${number(+width)} \u00d7 ${number(+height)} pixels, ${bytes.join(" ")}`,
    [boxes.length === 1 ? "1 box" : `${boxes.length} boxes`]: boxes.join("; "),
    record: `number ${number(+place)} of ${shard}, at byte ${number(+offset)}`,
  };
  const list = make("dl", "", { className: "facts" });
  const add = (name, ...content) => {
    const row = list.appendChild(make("div"));
    row.append(make("dt", name), make("dd"));
    row.lastChild.append(...content);
  };
  for (const [name, text] of Object.entries(facts)) if (text) add(name, text);
  const command = document.querySelector("main").dataset.command.replace("@SHARD@", shard).replace("@NUMBER@", place);
  const line = make("span", "", { className: "command" });
  line.append(make("code", command), make("button", "Copy", { type: "button", className: "copy" }));
  add("to see it", line);
  tile.append(list);
  if (!tile.querySelector(".ways")) {
    tile.prepend(make("p", "", { className: "ways" }));
    tile.firstChild.append(make("a", "Close", { className: "close", href: `#${tile.querySelector(".frame").id}` }));
  }
  tile.querySelector(".ways").append(...[["Previous", -1], ["Next", 1]].map(([name, way]) => {
    const button = make("button", name, { type: "button", className: name.toLowerCase() });
    button.addEventListener("click", () => {
      location.hash = (neighbour(tile, way) ?? tile).id;
      enlarge(); // at once: a quick second key must find the buttons of the next image
    });
    return button;
  }));
}

function enlarge() {
  const id = location.hash.slice(1);
  if (!byId(id) && tiles.some(tile => tile.id === id)) {
    grid.append(tiles.find(tile => tile.id === id));
    location.replace("#");
    location.replace(`#${id}`);
    return;
  }
  const tile = document.querySelector(".tile:target");
  if (tile && !tile.querySelector("dl")) describe(tile);
}

addEventListener("hashchange", enlarge);
addEventListener("keydown", event => {
  const way = { Escape: ".close", ArrowLeft: ".previous", ArrowRight: ".next" }[event.key];
  if (way) document.querySelector(`.tile:target ${way}`)?.click();
});

// The classes: sorted by any column, with images next to the names. A class that is pressed filters the images.
function explore(table) {
  const [body] = table.tBodies;
  const heads = [...table.tHead.rows[0].cells];
  const order = { key: "label", way: 1 };
  const texts = { class: row => row.querySelector(".name").textContent, "WordNet id": row => row.dataset.wnid, label: row => +row.dataset.label };
  const sum = cell => all("[data-count]", cell).reduce((total, each) => total + (isShown(each.dataset.split) ? +each.dataset.count : 0), 0);
  const compare = (a, b) => (typeof a === "string" ? a.localeCompare(b, "en") : a - b);

  function sort() {
    const place = heads.findIndex(head => head.dataset.keys.split(",").includes(order.key));
    const values = new Map(classRows.map(row => [row, (texts[order.key] ?? (each => sum(each.cells[place])))(row)]));
    classRows.sort((a, b) => order.way * compare(values.get(a), values.get(b)) || a.dataset.label - b.dataset.label);
    body.replaceChildren(...classRows.filter(row => sum(row.cells[1])));
  }

  for (const head of heads) {
    head.replaceChildren(...head.dataset.keys.split(",").map(key => {
      const button = make("button", key, { type: "button" });
      button.addEventListener("click", () => {
        order.way = order.key === key ? -order.way : key in texts ? 1 : -1;
        order.key = key;
        for (const each of heads) each.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", order.way > 0 ? "ascending" : "descending");
        for (const each of all("button", table.tHead)) each.classList.toggle("sorted", each === button);
        sort();
      });
      return button;
    }));
  }

  const sight = new IntersectionObserver(entries => {
    for (const { target } of entries.filter(each => each.isIntersecting)) {
      sight.unobserve(target);
      const own = tiles.filter(tile => tile.dataset.label === target.dataset.label).slice(0, 3);
      const images = own.map(tile => tile.querySelector("img")?.cloneNode()).filter(Boolean);
      target.cells[0].append(make("span", "", { className: "thumbs" }));
      target.cells[0].lastChild.append(...images.map(image => Object.assign(image, { alt: "" })));
    }
  }, { root: table.parentElement, rootMargin: "400px" });

  for (const row of grid ? classRows : []) {
    const name = row.querySelector(".name");
    const button = make("button", name.textContent, { type: "button", className: "name" });
    button.addEventListener("click", () => {
      clear();
      byId("class").value = row.dataset.label;
      filter();
      byId("images").scrollIntoView();
    });
    name.replaceWith(button);
    sight.observe(row);
  }
  return sort;
}

document.addEventListener("click", async event => {
  const button = event.target.closest(".copy");
  if (!button) return;
  const code = button.previousElementSibling;
  getSelection().selectAllChildren(code);
  await navigator.clipboard?.writeText(code.textContent).catch(() => document.execCommand("copy"));
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = "Copy"), 2000);
});

const table = document.querySelector("table.classes");
const sort = table ? explore(table) : () => {};
if (grid) {
  byId("class")?.addEventListener("input", filter);
  byId("clear").addEventListener("click", clear);
  filter();
}
for (const chip of chips) chip.addEventListener("change", () => { sort(); if (grid) filter(); });
enlarge();
