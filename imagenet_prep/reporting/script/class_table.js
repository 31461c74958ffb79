
// The classes: sorted by any column, with images next to the names. A name is a filter.

const table = document.querySelector("table.classes");
const classRows = all(".classes tbody tr");
const chips = all(".chips input");
const isShown = split => chips.every(chip => chip.checked || chip.dataset.code !== split);

const nameOf = row => row.querySelector(".name").textContent;
const order = { key: "label", way: 1 };
const texts = { class: nameOf, "WordNet id": row => row.dataset.wnid, label: row => +row.dataset.label };

// The number in a cell, over the splits that are shown.
function sum(cell) {
  let total = 0;
  for (const part of all("[data-count]", cell)) if (isShown(part.dataset.split)) total += +part.dataset.count;
  return total;
}

function compare(a, b) {
  return typeof a === "string" ? a.localeCompare(b, "en") : a - b;
}

function sortClasses() {
  if (!table) return;
  const heads = [...table.tHead.rows[0].cells];
  const place = heads.findIndex(head => head.dataset.keys.split(",").includes(order.key));
  const valueOf = texts[order.key] ?? (row => sum(row.cells[place]));
  const values = new Map(classRows.map(row => [row, valueOf(row)]));
  classRows.sort((a, b) => order.way * compare(values.get(a), values.get(b)) || a.dataset.label - b.dataset.label);
  const shown = classRows.filter(row => sum(row.cells[1]));
  const body = table.tBodies[0];
  const isSame = shown.length === body.rows.length && shown.every((row, place) => row === body.rows[place]);
  if (!isSame) body.replaceChildren(...shown); // laying out a thousand rows takes long
}

function sortBy(key, head, button) {
  const firstWay = key in texts ? 1 : -1;
  order.way = order.key === key ? -order.way : firstWay;
  order.key = key;
  for (const other of all("th", table.tHead)) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", order.way > 0 ? "ascending" : "descending");
  for (const other of all("button", table.tHead)) other.classList.toggle("sorted", other === button);
  sortClasses();
}

function addSortButtons() {
  for (const head of all("th", table.tHead)) {
    const buttons = head.dataset.keys.split(",").map(key => {
      const button = make("button", key, { type: "button" });
      button.addEventListener("click", () => sortBy(key, head, button));
      return button;
    });
    head.replaceChildren(...buttons);
  }
}

// Each name becomes the button of a filter; its code is the place of the class among all labels.
function addClassButtons() {
  classRows.forEach((row, code) => {
    const name = row.querySelector(".name");
    const button = make("button", name.textContent, { type: "button", className: "name" });
    button.setAttribute("aria-pressed", "false");
    Object.assign(button.dataset, { filter: "class", token: row.dataset.label, code, name: name.textContent });
    name.replaceWith(button);
  });
}

// Three images next to a name, once it comes into view.
function addThumbnails() {
  const sight = new IntersectionObserver(entries => {
    for (const { target } of entries.filter(entry => entry.isIntersecting)) {
      sight.unobserve(target);
      const ofClass = tiles.filter(tile => tile.dataset.label === target.dataset.label).slice(0, 3);
      const images = ofClass.map(tile => tile.querySelector("img")?.cloneNode()).filter(Boolean);
      const place = make("span", "", { className: "thumbs" });
      place.append(...images.map(image => Object.assign(image, { alt: "" })));
      target.cells[0].append(place);
    }
  }, { root: table.parentElement, rootMargin: "400px" });
  for (const row of classRows) sight.observe(row);
}

// Which classes the words of the class field mean. A whole name or label means that class alone,
// a part of a name or WordNet id all classes that have it.
function classesOf(words) {
  const wanted = words.trim().toLowerCase();
  const isExact = row => row.dataset.label === wanted || nameOf(row).toLowerCase() === wanted;
  const isAlike = row => nameOf(row).toLowerCase().includes(wanted) || row.dataset.wnid.includes(wanted);
  const exact = classRows.filter(isExact);
  return exact.length ? exact : classRows.filter(isAlike);
}

if (table) {
  addSortButtons();
  if (grid) {
    addClassButtons();
    addThumbnails();
  }
}
