
// The filters: which images have what is chosen. Of one filter any chosen token will do; every
// filter must agree.
//
// A filter is described by the elements that choose its tokens: bars, classes, kinds and splits,
// each with data-filter, data-token, data-code and data-name. `codes` has a number for each listed
// image: the code of its only token or, for data-several, a bit for each of its codes.

function readFilters(columns) {
  const filters = new Map();
  for (const element of all("[data-code]")) {
    const { filter: key, token, code, name } = element.dataset;
    if (!filters.has(key)) {
      const { title, several } = element.closest("[data-title]").dataset;
      const codes = columns[`by ${key}`];
      filters.set(key, { key, title, codes, isSeveral: several !== undefined, codeOf: new Map(), nameOf: new Map() });
    }
    filters.get(key).codeOf.set(token, Number(code));
    filters.get(key).nameOf.set(token, name);
  }
  addUnlistedClasses(filters.get("class"), columns.labels);
  return filters;
}

// The table of classes may leave some out.
function addUnlistedClasses(filter, labels) {
  labels?.forEach((label, code) => {
    if (filter.codeOf.has(`${label}`)) return;
    filter.codeOf.set(`${label}`, code);
    filter.nameOf.set(`${label}`, `label ${label}`);
  });
}

function testOf(filter, tokens) {
  const { codes } = filter;
  const chosen = [...tokens].map(token => filter.codeOf.get(token)).filter(code => code !== undefined);
  if (!filter.isSeveral) {
    const wanted = new Set(chosen);
    return row => wanted.has(codes[row]);
  }
  let bits = 0;
  for (const code of chosen) bits |= 1 << code;
  return row => (codes[row] & bits) !== 0;
}

// A counter of the images that have each code of a filter.
function counterOf(filter) {
  const counts = new Uint32Array(1 + Math.max(...filter.codeOf.values()));
  const { codes } = filter;
  const addOne = row => { counts[codes[row]] += 1; };
  const addSeveral = row => {
    for (let bits = codes[row], code = 0; bits; bits >>>= 1, code += 1) counts[code] += bits & 1;
  };
  return { counts, add: filter.isSeveral ? addSeveral : addOne };
}

// The only filter that an image fails, undefined if it passes all; null if it fails several.
function onlyFailure(tests, row) {
  let failure;
  for (const [key, test] of tests) {
    if (test(row)) continue;
    if (failure !== undefined) return null;
    failure = key;
  }
  return failure;
}

// The listed images that pass all tests; and for each of these keys how many images have each code
// of that filter among those that pass the tests of the other filters.
function match(filters, countedKeys, tests, imageCount) {
  const rows = [];
  const counters = new Map(countedKeys.map(key => [key, counterOf(filters.get(key))]));
  const everyCounter = [...counters.values()];
  const everyTest = [...tests];
  for (let row = 0; row < imageCount; row += 1) {
    const failure = onlyFailure(everyTest, row);
    if (failure === undefined) {
      rows.push(row);
      for (const counter of everyCounter) counter.add(row);
    } else if (failure !== null) {
      counters.get(failure)?.add(row);
    }
  }
  return { rows, counters };
}
