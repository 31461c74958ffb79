
// An image that fills the window, with all that is known of it. Without this script links do it.

function describe(tile) {
  const { label, wnid, size, record } = tile.dataset;
  const [width, height, ...bytes] = size.split(" ");
  const [place, offset, shard] = record.split(" ");
  const file = tile.querySelector(".file").textContent;
  const boxes = all(".box", tile).map(box => boxText(box, width, height));
  const facts = {
    label,
    "WordNet id": wnid,
    file: file === `record ${place} of ${shard}` ? "" : file,
    image: `${number(+width)} \u00d7 ${number(+height)} pixels, ${bytes.join(" ")}`,
    [countText(boxes.length, "box", "boxes")]: boxes.join("; "),
    why: tile.querySelector(".why")?.textContent,
    record: `number ${number(+place)} of ${shard}, at byte ${number(+offset)}`,
  };
  const list = make("dl", "", { className: "facts" });
  for (const [name, text] of Object.entries(facts)) if (text) list.append(factOf(name, text));
  list.append(factOf("to see it", commandLine(shard, place)));
  tile.append(list);
  addWays(tile);
}

function factOf(name, content) {
  const fact = make("div");
  fact.append(make("dt", name), make("dd"));
  fact.lastChild.append(content);
  return fact;
}

function boxText(box, width, height) {
  const [left, top, wide, high] = ["left", "top", "width", "height"].map(side => parseFloat(box.style[side]) / 100);
  const corners = [left * width, top * height, (left + wide) * width, (top + high) * height];
  const [x, y, right, bottom] = corners.map(corner => number(Math.round(corner)));
  return `${box.textContent} (${x}, ${y}) to (${right}, ${bottom})`.trim();
}

function addWays(tile) {
  if (!tile.querySelector(".ways")) {
    tile.prepend(make("p", "", { className: "ways" }));
    const frame = tile.querySelector(".frame").id;
    tile.firstChild.append(make("a", "Close", { className: "close", href: `#${frame}` }));
  }
  const ways = tile.querySelector(".ways");
  ways.append(make("button", "Previous", { type: "button", className: "previous" }));
  ways.append(make("button", "Next", { type: "button", className: "next" }));
}

// The tile before (-1) or after (1) a tile, of those that are shown.
function neighbour(tile, step) {
  const shown = [...tile.parentElement.children].filter(other => getComputedStyle(other).display !== "none");
  return shown[shown.indexOf(tile) + step] ?? tile;
}

// Makes the image of this number large, or none ("").
function enlarge(image) {
  const before = document.querySelector(".tile.large");
  const tile = image && (byId(`image-${image}`) ?? tiles.find(other => other.id === `image-${image}`));
  if (before === tile) return;
  before?.classList.remove("large");
  if (!tile) {
    before?.querySelector(".frame").focus();
    return;
  }
  if (!tile.isConnected) grid.append(tile);
  if (!tile.querySelector("dl")) describe(tile);
  tile.classList.add("large");
  tile.focus();
}

addEventListener("keydown", event => {
  const way = { Escape: ".close", ArrowLeft: ".previous", ArrowRight: ".next" }[event.key];
  if (way) document.querySelector(`.tile.large ${way}`)?.click();
});
