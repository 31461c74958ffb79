
// The listed images, a column each for their names, sizes and so on: templates of the page that
// hold numbers or lines of text, compressed and in base64.

const NUMBERS = { uint8: Uint8Array, uint16: Uint16Array, uint32: Uint32Array, float64: Float64Array };

function decodeBase64(text) {
  const characters = atob(text);
  const bytes = new Uint8Array(characters.length);
  for (let place = 0; place < bytes.length; place += 1) bytes[place] = characters.charCodeAt(place);
  return bytes;
}

async function unpack(template) {
  const packed = new Blob([decodeBase64(template.content.textContent)]);
  const stream = packed.stream().pipeThrough(new DecompressionStream("deflate"));
  const content = await new Response(stream).arrayBuffer();
  const { type } = template.dataset;
  if (type === "text") return new TextDecoder().decode(content).split("\n");
  return new NUMBERS[type](content);
}

async function readColumns() {
  const columns = {};
  for (const template of all("template.column")) columns[template.dataset.name] = await unpack(template);
  return columns;
}
