
// The images below the filters, a page of them at a time: first those that have a picture on the
// page, then the names of the others, each with the command that shows it.

const PER_PAGE = 100;

const grid = document.querySelector("#gallery .grid");
const samples = grid ? [...grid.children] : [];
const tiles = [...samples, ...(byId("more")?.content.children ?? [])];

// The tile of each image that has a picture; an odd image has one of its own further down.
function findTiles() {
  const tileOf = new Map(tiles.map(tile => [Number(tile.dataset.row), tile]));
  for (const tile of all(".odd .tile")) {
    const row = Number(tile.dataset.row);
    if (!tileOf.has(row)) tileOf.set(row, copyTile(tile));
  }
  return tileOf;
}

function copyTile(tile) {
  const copy = tile.cloneNode(true);
  copy.id += "-again";
  copy.querySelector(".frame").id += "-again";
  return copy;
}

function nameOfClass(row, columns, filters) {
  const filter = filters.get("class");
  const label = columns.labels?.[columns["by class"][row]];
  return label === undefined ? "" : filter.nameOf.get(`${label}`);
}

function listItem(row, columns, filters) {
  const shard = columns.shards[columns.shard[row]];
  const place = columns.number[row];
  const [width, height] = [columns.width[row], columns.height[row]];
  const facts = [
    nameOfClass(row, columns, filters),
    width ? `${number(width)} \u00d7 ${number(height)}` : "",
    columns.bytes[row] ? sizeText(columns.bytes[row]) : "",
    columns.boxes[row] ? countText(columns.boxes[row], "box", "boxes") : "",
  ];
  const item = make("li", "", { className: "listed" });
  item.append(make("span", columns.filename[row] || `record ${place} of ${shard}`, { className: "file" }));
  item.append(make("span", facts.filter(Boolean).join(", "), { className: "facts" }));
  const why = columns.why?.[row];
  if (why) item.append(make("span", why, { className: "why" }));
  item.append(commandLine(shard, place));
  return item;
}

// Shows a page of these images, and says which part of them it is.
function showPage(rows, page, columns, filters, tileOf) {
  const pictured = rows.filter(row => tileOf.has(row));
  const others = rows.filter(row => !tileOf.has(row));
  const start = PER_PAGE * (page - 1);
  const shown = [...pictured, ...others].slice(start, start + PER_PAGE);
  grid.replaceChildren(...shown.filter(row => tileOf.has(row)).map(row => tileOf.get(row)));
  const names = shown.filter(row => !tileOf.has(row)).map(row => listItem(row, columns, filters));
  byId("names").replaceChildren(...names);
  byId("pages").hidden = rows.length <= PER_PAGE;
  byId("part").textContent = `${number(start + 1)} to ${number(start + shown.length)} of ${number(rows.length)}`;
  byId("earlier").disabled = page === 1;
  byId("later").disabled = start + PER_PAGE >= rows.length;
}

function showSamples() {
  grid.replaceChildren(...samples);
  byId("names").replaceChildren();
  byId("pages").hidden = true;
}
