// Assets: search, filters and the list.
import { make } from "./dom.js";
import { ago, bytes } from "./format.js";
import { planDialog, purgeAction } from "./plan.js";
import { assetLink, badge, checkField, filters, grid, heading, listPanel, meter, numberField, numbers, pair, selectField, textField, withinField } from "./view.js";

const SORTS = [["lastAccess", "last access"], ["cachedBytes", "cached bytes"], "hits", ["createdAt", "creation"], "key", ["contentLength", "length"]];

export function assetsPage(page) {
  const { find = "", within: chosen, ...query } = Object.fromEntries(page.query);
  if (/^[0-9a-f]{32}$/.test(find)) location.replace(`#/assets/${find}`);
  const within = withinField(chosen);
  const limit = within?.querySelector("select").value;
  // A limited token must select with one of its prefixes.
  const place = /^https?:/i.test(find) ? { url: find, prefix: limit } : { prefix: find || limit };
  const search = filters("assets",
    textField("Key prefix, URL or asset ID", "find", { type: "search", value: find, placeholder: "/o/media/films/" }),
    within, textField("Origin", "origin", { value: query.origin }), textField("Tag", "tag", { value: query.tag }),
    selectField("Cached", "state", [["", "any"], "complete", "partial", "empty"], query.state),
    selectField("Pinned", "pinned", [["", "any"], ["true", "pinned"], ["false", "not pinned"]], query.pinned),
    selectField("Sort by", "sort", SORTS, query.sort), selectField("Order", "order", [["desc", "descending"], ["asc", "ascending"]], query.order));
  const list = listPanel(page, "Assets", {
    path: "/v1/assets", query: () => ({ ...query, ...place, total: true }),
    key: (asset) => asset.assetId, empty: "No asset meets the conditions.", tools: purgeAction(() => purge(page, { ...query, ...place })),
    columns: [["Key", "wide", assetLink], ...numbers("contentLength"), ["Cached", "", cachedMeter], ...numbers("hits"), ["Last access", "number", (asset) => ago(asset.lastAccessAt)], ["Tags", "text", labels]],
  });
  return [heading("Assets"), search, grid(list)];
}

export function cachedMeter({ cachedBytes, cachedRatio }) {
  return cachedRatio === null ? bytes(cachedBytes) : meter(cachedRatio);
}

export function labels({ pinned, tags }) {
  return make("span", pinned && badge("pinned"), tags.map((tag) => badge(tag, "")));
}

// Asks for a purge of the assets that the filter of the list selects.
async function purge(page, { url, prefix, origin, tag, state, pinned }) {
  const request = ({ soft, pattern, days, url: address, ...conditions }) => ({
    ...conditions, soft: soft === "on", ...(pattern && { patterns: [pattern] }), ...(address && { urls: [address] }), ...(days !== undefined && { olderThanSeconds: days * 86_400 }),
  });
  planDialog(page, "Purge assets", request, make("p.muted", "An asset is purged if it meets all conditions."),
    (state || pinned) && make("p.problem", "A purge cannot select by the cached bytes or by pins: it includes assets that this list does not show."),
    pair(textField("Key prefix", "prefix", { value: prefix }), textField("Key pattern, such as /o/media/**/*.mp4", "pattern"), textField("URL", "url", { value: url })),
    pair(textField("Origin", "origin", { value: origin }), textField("Tag", "tag", { value: tag }), textField("Media type", "contentType"), numberField("Minimum age, days", "days")),
    checkField("Mark as stale instead of removing", "soft"));
}
