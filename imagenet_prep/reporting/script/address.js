
// What is chosen, as the address of the page holds it: #width=500..550&class=3&class=7&page=2
//
// A view: `tokens` has the chosen tokens of each filter, by its key; `words` is the text of the
// class field, `page` the page of images, `image` the number of the image that is shown large.

const emptyView = () => ({ tokens: new Map(), words: "", page: 1, image: "" });

function readAddress(filters) {
  const view = emptyView();
  const fragment = location.hash.slice(1);
  const isImage = fragment.match(/^image-(\d+)$/); // the address of an image without this script
  if (isImage) return { ...view, image: isImage[1] };
  for (const [key, token] of new URLSearchParams(fragment)) {
    if (filters.has(key)) {
      if (!view.tokens.has(key)) view.tokens.set(key, new Set());
      view.tokens.get(key).add(token);
    } else if (key === "page") {
      view.page = Math.max(1, parseInt(token) || 1);
    } else if (key === "words" || key === "image") {
      view[key] = token;
    }
  }
  return view;
}

function fragmentOf(view) {
  const parameters = new URLSearchParams();
  for (const [key, tokens] of view.tokens) {
    for (const token of tokens) parameters.append(key, token);
  }
  if (view.words) parameters.set("words", view.words);
  if (view.page > 1) parameters.set("page", view.page);
  if (view.image) parameters.set("image", view.image);
  return `#${parameters}`;
}
