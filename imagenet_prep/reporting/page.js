"use strict";

// The large view of an image is the one that the address names: it opens and closes without this, by links.
const enlarged = () => document.querySelector(".tile:target");

addEventListener("keydown", event => {
  const way = { Escape: ".close", ArrowLeft: ".previous", ArrowRight: ".next" }[event.key];
  const link = way && enlarged()?.querySelector(way);
  if (link) link.click();
});
