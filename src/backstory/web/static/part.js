// Fetch a part of a page that the server has rendered.

// Return the element with this id from the page at an address. Throws if there is none,
// as on an error page.
export async function fetchPart(url, id, asked = {}) {
  const answer = await fetch(url, { ...asked, headers: { "Backstory-Part": id } });
  const parsed = new DOMParser().parseFromString(await answer.text(), "text/html");
  const part = parsed.getElementById(id);
  if (!part) throw new Error(`no ${id} at ${url}`);
  return document.adoptNode(part);
}
