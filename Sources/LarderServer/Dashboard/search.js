// The search for assets: by identifier, by the URL of a viewer or of an upstream, by the beginning or a part of a key.
export const ID = /^[0-9a-f]{32}$/;

// The meaning of a text: an asset ID, or filters of the list to be tried in turn.
export function meaning(text) {
  if (ID.test(text)) return { id: text };
  if (/^https?:/i.test(text)) return ofURL(text);
  if (text.startsWith("/")) return { filters: [{ prefix: text }, { contains: text }] };
  return { filters: [{ contains: text }] };
}

function ofURL(text) {
  const { pathname, searchParams } = URL.canParse(text) ? new URL(text) : { pathname: "", searchParams: new URLSearchParams() };
  const [, id] = /\/v1\/assets\/([0-9a-f]{32})/.exec(pathname) ?? [];
  if (id) return { id };
  const [key, url] = ["key", "url"].map((name) => searchParams.get(name));
  if (pathname.endsWith("/v1/content") && url) return { filters: [key ? { key } : { url }] };
  // The URL of an upstream can contain such a path, too.
  const [mounted] = /\/o\/[^/]+\/.*$/.exec(pathname) ?? [];
  return { filters: [{ url: text }, mounted && { prefix: mounted }].filter(Boolean) };
}
