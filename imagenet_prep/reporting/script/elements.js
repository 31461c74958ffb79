"use strict";

// Short names for what the script does often, and texts of numbers.

const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const byId = id => document.getElementById(id);
const set = document.querySelector("main").dataset;

// Text is never parsed as HTML: names come from files, and may hold anything.
function make(name, text = "", attributes = {}) {
  return Object.assign(document.createElement(name), { textContent: text, ...attributes });
}

const number = new Intl.NumberFormat("en").format;
const countText = (count, one, many = `${one}s`) => `${number(count)} ${count === 1 ? one : many}`;

function sizeText(bytes) {
  const units = ["B", "kB", "MB", "GB"];
  let unit = 0;
  while (bytes >= 999.95 && unit < units.length - 1) {
    bytes /= 1000;
    unit += 1;
  }
  return `${bytes.toFixed(1).replace(/\.0$/, "")} ${units[unit]}`;
}

// A command with a button that copies it.
function commandLine(shard, place) {
  const command = set.command.replace("@SHARD@", () => shard).replace("@NUMBER@", place);
  const line = make("span", "", { className: "command" });
  line.append(make("code", command), make("button", "Copy", { type: "button", className: "copy" }));
  return line;
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
