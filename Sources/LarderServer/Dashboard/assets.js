// Assets: search, filters and the list.
import { make } from "./dom.js";
import { ago, bytes } from "./format.js";
import { planDialog } from "./plan.js";
import { action, assetLink, badge, checkField, form, grid, heading, listPanel, meter, numbers, pair, selectField, submitButton, textField } from "./view.js";

const SORTS = [["lastAccess", "last access"], ["cachedBytes", "cached bytes"], "hits", ["createdAt", "creation"], "key", ["contentLength", "length"]];

export function assetsPage(page) {
  const { find = "", ...filters } = Object.fromEntries(page.query);
  if (/^[0-9a-f]{32}$/.test(find)) location.replace(`#/assets/${find}`);
  const search = form("form.filters", async (chosen) => { location.hash = `/assets?${new URLSearchParams(chosen)}`; },
    textField("Key prefix, URL or asset ID", "find", { type: "search", value: find, placeholder: "/o/media/films/" }),
    textField("Origin", "origin", { value: filters.origin }), textField("Tag", "tag", { value: filters.tag }),
    selectField("Cached", "state", [["", "any"], "complete", "partial", "empty"], filters.state),
    selectField("Pinned", "pinned", [["", "any"], ["true", "pinned"], ["false", "not pinned"]], filters.pinned),
    selectField("Sort by", "sort", SORTS, filters.sort), selectField("Order", "order", [["desc", "descending"], ["asc", "ascending"]], filters.order),
    submitButton("Search"));
  const list = listPanel(page, "Assets", {
    path: "/v1/assets", query: () => ({ ...filters, total: true, [/^https?:/i.test(find) ? "url" : "prefix"]: find }),
    key: (asset) => asset.assetId, empty: "No asset meets the conditions.", tools: action("Purge…", () => purge(page), "danger"),
    columns: [["Key", "wide", assetLink], ...numbers("contentLength"), ["Cached", "", cachedMeter], ...numbers("hits"), ["Last access", "number", (asset) => ago(asset.lastAccessAt)], ["Tags", "text", labels]],
  });
  return [heading("Assets"), search, grid(list)];
}

export function cachedMeter({ cachedBytes, contentLength }) {
  return contentLength ? meter(cachedBytes / contentLength) : bytes(cachedBytes);
}

export function labels({ pinned, tags }) {
  return make("span", pinned && badge("pinned"), tags.map((tag) => badge(tag, "")));
}

function purge(page) {
  const request = ({ soft, pattern, days, ...conditions }) => ({
    ...conditions, soft: soft === "on", ...(pattern && { patterns: [pattern] }), ...(days && { olderThanSeconds: days * 86_400 }),
  });
  planDialog(page, "Purge assets", "/v1/purges", request, make("p.muted", "An asset is purged if it meets all conditions."),
    pair(textField("Key prefix", "prefix"), textField("Key pattern, such as /o/media/**/*.mp4", "pattern")),
    pair(textField("Origin", "origin"), textField("Tag", "tag"), textField("Media type", "contentType"), textField("Minimum age, days", "days")),
    checkField("Mark as stale instead of removing", "soft"));
}
