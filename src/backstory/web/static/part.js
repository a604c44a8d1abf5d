// Fetch a part of a page that the server has rendered.

// The element with that id of the page at an address. It throws if there is none, as on
// a page that says what went wrong.
export async function fetchPart(url, id, asked = {}) {
  const answer = await fetch(url, { ...asked, headers: { "Backstory-Part": id } });
  const parsed = new DOMParser().parseFromString(await answer.text(), "text/html");
  const part = parsed.getElementById(id);
  if (!part) throw new Error(`no ${id} at ${url}`);
  return document.adoptNode(part);
}
