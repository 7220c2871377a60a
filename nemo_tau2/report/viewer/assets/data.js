// The packed blocks of the page: unpacked when first asked for.

const unpacked = new Map();

/** The value in block `id`; a promise, the same one each time. */
function block(id) {
  if (!unpacked.has(id)) unpacked.set(id, unpack(document.getElementById(id).textContent));
  return unpacked.get(id);
}

async function unpack(base64) {
  const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}
