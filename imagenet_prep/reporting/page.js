"use strict";

// The URL names the image in the large view: links open and close it without this script.
const enlarged = () => document.querySelector(".tile:target");

addEventListener("keydown", event => {
  const way = { Escape: ".close", ArrowLeft: ".previous", ArrowRight: ".next" }[event.key];
  const link = way && enlarged()?.querySelector(way);
  if (link) link.click();
});

// The classes: search, sorting, and some images of each. Without this script the plain table is shown.
function explore(table, { command, classes }) {
  const [body] = table.tBodies;
  const [search, found, dialog] = ["search", "found", "class-view"].map(id => document.getElementById(id));
  const chips = [...document.querySelectorAll("[data-split]")];
  const order = { key: "label", way: 1 };

  const isShown = split => chips.every(chip => chip.checked || chip.dataset.split !== String(split));
  const sum = parts => Object.entries(parts).reduce((total, [split, count]) => total + (isShown(split) ? count : 0), 0);
  const value = (each, key) => (typeof each[key] === "object" ? sum(each[key]) : each[key]);
  const compare = (a, b) => (typeof a === "string" ? a.localeCompare(b, "en") : a - b);

  function update() {
    const words = search.value.trim().toLowerCase();
    const matches = each => [each.name, each.wnid].some(text => text.toLowerCase().includes(words)) || String(each.label) === words;
    const chosen = classes.filter(each => matches(each) && sum(each.images));
    const values = new Map(chosen.map(each => [each, value(each, order.key)]));
    chosen.sort((a, b) => order.way * compare(values.get(a), values.get(b)) || a.label - b.label);
    body.replaceChildren(...chosen.map(each => each.row));
    found.textContent = `${chosen.length.toLocaleString("en")} of ${classes.length.toLocaleString("en")} classes`;
  }

  function sortBy(key, head) {
    order.way = order.key === key ? -order.way : ["name", "wnid", "label"].includes(key) ? 1 : -1;
    order.key = key;
    for (const each of table.tHead.rows[0].cells) each.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", order.way > 0 ? "ascending" : "descending");
    for (const each of table.tHead.querySelectorAll("button")) each.classList.toggle("sorted", each.dataset.key === key);
    update();
  }

  function addHeads() {
    const names = { name: "class", wnid: "WordNet id", label: "label" };
    for (const head of table.tHead.rows[0].cells) {
      const text = head.textContent;
      head.replaceChildren(...head.dataset.keys.split(",").map(key => {
        const button = make("button", names[key] ?? text, { type: "button" });
        button.dataset.key = key;
        button.addEventListener("click", () => sortBy(key, head));
        return button;
      }));
    }
  }

  function picture(each) {
    const image = make("img", "", { src: `data:image/webp;base64,${each.webp}`, alt: "", className: `of-${each.split}` });
    image.style.aspectRatio = `${each.size[0]} / ${each.size[1]}`;
    return image;
  }

  const sight = new IntersectionObserver(entries => {
    for (const { target, isIntersecting } of entries) {
      if (!isIntersecting) continue;
      sight.unobserve(target);
      target.querySelector(".thumbs").append(...target.ofClass.pictures.map(picture));
    }
  }, { root: table.parentElement, rootMargin: "400px" });

  function large(each) {
    const tile = dialog.querySelector("template").content.cloneNode(true);
    tile.querySelector(".image").style.setProperty("--ratio", each.size[0] / each.size[1]);
    tile.querySelector("img").replaceWith(Object.assign(picture(each), { alt: each.file || `record ${each.number} of ${each.shard}`, className: "" }));
    tile.querySelector(".image").append(...each.boxes.map(([left, top, width, height]) => {
      const box = make("span", "", { className: "box" });
      Object.assign(box.style, { left: `${left}%`, top: `${top}%`, width: `${width}%`, height: `${height}%` });
      return box;
    }));
    const record = `number ${each.number.toLocaleString("en")} of ${each.shard}, at byte ${each.offset.toLocaleString("en")}`;
    const [width, height] = each.size.map(side => side.toLocaleString("en"));
    const facts = {
      file: each.file,
      image: `${width} \u00d7 ${height} pixels, ${each.bytes}`,
      record,
      "to see it": command.replace("@SHARD@", each.shard).replace("@NUMBER@", each.number),
    };
    tile.querySelector(".facts").append(...Object.entries(facts).filter(([, text]) => text).map(([name, text]) => {
      const row = make("div");
      row.append(make("dt", name), make("dd", text, { className: ["file", "to see it"].includes(name) ? "exact" : "" }));
      return row;
    }));
    return tile;
  }

  function open(each) {
    dialog.querySelector("h2").textContent = each.name;
    dialog.querySelector(".none").textContent = `${each.wnid ? `${each.wnid}, ` : ""}label ${each.label}`;
    dialog.querySelector(".grid").replaceChildren(...each.pictures.map(large));
    dialog.showModal();
  }

  classes.forEach((each, number) => {
    const row = (each.row = body.rows[number]);
    row.ofClass = each;
    if (!each.pictures.length) return;
    const name = row.querySelector(".name");
    const button = make("button", name.textContent, { type: "button", className: "name" });
    button.addEventListener("click", () => open(each));
    name.replaceWith(button);
    row.cells[0].append(make("span", "", { className: "thumbs" }));
    sight.observe(row);
  });
  addHeads();
  table.tHead.rows[0].cells[0].setAttribute("aria-sort", "ascending");
  search.addEventListener("input", update);
  for (const chip of chips) chip.addEventListener("change", update);
  dialog.querySelector(".close").addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", event => event.target === dialog && dialog.close());
  document.querySelector(".tools").hidden = false;
}

function make(name, text = "", attributes = {}) {
  return Object.assign(document.createElement(name), { textContent: text }, attributes);
}

const data = document.getElementById("class-data");
if (data) setTimeout(() => explore(document.querySelector("table.classes"), JSON.parse(data.textContent)));
