
// Brings all together: a choice changes the address, and the page shows what the address says.

document.documentElement.classList.add("has-script");

// One bar of each chart is a tab stop; arrow keys move to the others.
for (const chart of all(".chart")) {
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
  });
}

async function explore() {
  const columns = await readColumns();
  const filters = readFilters(columns);
  const tileOf = findTiles();
  const imageCount = columns.number.length;
  const buttons = all("button[data-filter]");
  const countedKeys = [...filters.keys()].filter(key => key !== "class" && key !== "split");
  let view = emptyView();

  // Every change goes through here. The address of a page of images is a step of its own for Back,
  // that of a single letter in the class field is not.
  function go(changes, { isStep = true } = {}) {
    view = { ...view, ...changes };
    history[isStep ? "pushState" : "replaceState"](null, "", fragmentOf(view));
    show();
  }

  const filterBy = (tokens, words = view.words) => go({ tokens, words, page: 1, image: "" });

  function toggle(key, token) {
    const tokens = new Map(view.tokens);
    const chosen = new Set(tokens.get(key));
    if (!chosen.delete(token)) chosen.add(token);
    if (chosen.size) tokens.set(key, chosen);
    else tokens.delete(key);
    filterBy(tokens);
  }

  // All splits together are no filter; without any, none of the images is shown.
  function chooseSplits() {
    const checked = chips.filter(chip => chip.checked).map(chip => chip.dataset.token);
    const tokens = new Map(view.tokens);
    tokens.delete("split");
    if (checked.length < chips.length) tokens.set("split", new Set(checked.length ? checked : [""]));
    filterBy(tokens);
    sortClasses();
  }

  function show() {
    const tests = new Map();
    for (const [key, tokens] of view.tokens) tests.set(key, testOf(filters.get(key), tokens));
    if (view.words) {
      const labels = classesOf(view.words).map(row => row.dataset.label);
      tests.set("words", testOf(filters.get("class"), labels));
    }
    if (tests.size) {
      const { rows, counters } = match(filters, countedKeys, tests, imageCount);
      const lastPage = Math.max(1, Math.ceil(rows.length / PER_PAGE));
      showPage(rows, Math.min(view.page, lastPage), columns, filters, tileOf);
      byId("found").textContent = matchText(rows.length);
      showChoices(counters);
    } else {
      showSamples();
      byId("found").textContent = byId("found").dataset.text;
      showChoices(new Map());
    }
    showFilters();
    enlarge(view.image);
  }

  function matchText(count) {
    const listed = imageCount < Number(set.records) ? "listed " : "";
    return `${number(count)} of ${number(imageCount)} ${listed}${set.thing}s match`;
  }

  // What is pressed, and beside each kind how many images it would show.
  function showChoices(counters) {
    for (const element of buttons) {
      const { filter, token, code } = element.dataset;
      const count = counters.get(filter)?.counts[code];
      const isPressed = `${Boolean(view.tokens.get(filter)?.has(token))}`;
      if (element.getAttribute("aria-pressed") !== isPressed) element.setAttribute("aria-pressed", isPressed);
      element.classList.toggle("without", count === 0);
      const place = element.querySelector(".count");
      if (place) place.textContent = count === undefined ? place.dataset.text : number(count);
    }
    const splits = view.tokens.get("split");
    const isChecked = chip => !splits || splits.has(chip.dataset.token);
    const changed = chips.filter(chip => chip.checked !== isChecked(chip));
    for (const chip of changed) chip.checked = isChecked(chip);
    if (changed.length) sortClasses();
    const field = byId("class");
    if (field && field.value !== view.words) field.value = view.words;
    const classes = new Set(view.words ? classesOf(view.words) : classRows);
    for (const row of classRows) row.hidden = !classes.has(row);
  }

  // The filters that are on, each with a button that removes it.
  function showFilters() {
    const removers = [];
    const add = (title, name, remove) => {
      const place = removers.length;
      const remover = make("button", `${title}: ${name}`, { type: "button", className: "filter" });
      remover.setAttribute("aria-label", `Remove the filter ${title}: ${name}`);
      remover.addEventListener("click", () => {
        remove();
        const remaining = all("#filters .filter");
        (remaining[place] ?? remaining.at(-1) ?? byId("found")).focus();
      });
      removers.push(remover);
    };
    for (const [key, tokens] of view.tokens) {
      const { title, nameOf } = filters.get(key);
      for (const token of tokens) add(title, nameOf.get(token) ?? (token || "none"), () => toggle(key, token));
    }
    if (view.words) add("Class", view.words, () => filterBy(view.tokens, ""));
    byId("filters").replaceChildren(...removers);
    byId("clear").hidden = !removers.length;
  }

  // The images come into view if what was pressed is elsewhere on the page.
  function showImages() {
    byId("images").scrollIntoView();
  }

  document.addEventListener("click", event => {
    const choice = event.target.closest("button[data-filter]");
    const frame = event.target.closest(".tile .frame");
    const tile = event.target.closest(".tile");
    if (choice) {
      toggle(choice.dataset.filter, choice.dataset.token);
      const isOn = choice.getAttribute("aria-pressed") === "true";
      if (isOn && !choice.closest(".explore, .kinds")) showImages();
    } else if (frame) {
      event.preventDefault();
      go({ image: tile.id.slice("image-".length) });
    } else if (event.target.closest(".close")) {
      event.preventDefault();
      go({ image: "" });
    } else if (event.target.matches(".previous, .next")) {
      const step = event.target.matches(".next") ? 1 : -1;
      go({ image: neighbour(tile, step).id.slice("image-".length) }, { isStep: false });
    } else if (event.target.closest("nav a") && view.tokens.size) {
      event.preventDefault(); // a section is no reason to lose the filters from the address
      byId(event.target.hash.slice(1)).scrollIntoView();
    }
  });
  for (const chip of chips) chip.addEventListener("change", chooseSplits);
  byId("class")?.addEventListener("input", event => {
    go({ words: event.target.value, page: 1, image: "" }, { isStep: false });
  });
  byId("clear").addEventListener("click", () => {
    filterBy(new Map(), "");
    byId("found").focus();
  });
  for (const [id, step] of [["earlier", -1], ["later", 1]]) {
    byId(id).addEventListener("click", () => {
      go({ page: view.page + step });
      showImages();
    });
  }
  addEventListener("hashchange", () => {
    if (location.hash && !/=|^#image-\d+$/.test(location.hash)) return; // a section of the page
    view = readAddress(filters);
    show();
  });

  view = readAddress(filters);
  show();
  document.documentElement.classList.add("is-ready");
  if (view.tokens.size && !scrollY) showImages();
}

if (byId("found")) explore();
else sortClasses();
