// Assets: search, filters and the list, actions on selected assets.
import { make } from "./dom.js";
import { ago, bytes, count } from "./format.js";
import { CREATE, newJob } from "./jobs.js";
import { planDialog, PURGE, purgeAction } from "./plan.js";
import { meaning } from "./search.js";
import { assetLink, badge, checkField, filters, forEach, grid, heading, listPanel, meter, numberField, numbers, pair, selectField, textField, withinField } from "./view.js";

const FIELDS = ["origin", "tag", "state", "pinned"];

export function assetsPage(page) {
  const find = page.query.get("find") ?? "";
  const query = Object.fromEntries(FIELDS.map((name) => [name, page.query.get(name) ?? undefined]));
  const { id, filters: tried = [{}] } = find ? meaning(find) : {};
  if (id) location.replace(`#/assets/${id}`);
  const within = withinField(page.query.get("within"));
  const limit = within?.querySelector("select").value;
  const search = filters(page, "assets",
    textField("Name, part of a name, URL or ID", "find", { type: "search", value: find, placeholder: "/o/media/films/" }),
    within, textField("Origin", "origin", { value: query.origin }), textField("Tag", "tag", { value: query.tag }),
    selectField("Cached", "state", [["", "any"], "complete", "partial", "empty"], query.state),
    selectField("Pinned", "pinned", [["", "any"], ["true", "pinned"], ["false", "not pinned"]], query.pinned));
  // A limited token must select with one of its prefixes.
  const place = async () => {
    const wanted = tried.map((each) => ({ prefix: limit, ...each }));
    for (const each of wanted.slice(0, -1)) if ((await page.get("/v1/assets", { limit: 1, ...query, ...each })).items.length) return each;
    return wanted.at(-1);
  };
  let found;
  const list = listPanel(page, "Assets", {
    // A part of a name is compared with all assets: the list is read once.
    path: "/v1/assets", isSorted: true, seconds: tried.at(-1).contains ? 0 : 10, query: async () => ({ ...query, ...(found ??= await place()), total: true }), key: (asset) => asset.assetId, empty: "No asset meets the conditions.", tools: purgeAction(() => purge(page, { ...query, prefix: limit, ...(found ?? tried[0]) })),
    actions: actions(page),
    columns: [
      ["Key", "wide", assetLink, "key"], ...numbers("contentLength"), ["Cached", "", cachedMeter, "cachedBytes"], ...numbers("hits"),
      ["Last access", "number", (asset) => ago(asset.lastAccessAt), "lastAccess"], ["Fetched", "number", (asset) => ago(asset.createdAt), "createdAt"], ["Tags", "text", labels],
    ],
  });
  return [heading("Assets"), search, grid(list)];
}

// The actions on selected assets.
function actions(page) {
  const CHANGE = "PATCH /v1/assets/{assetId}";
  const pin = (pinned) => async (items) => {
    await forEach(items, "asset", pinned ? "pinned" : "unpinned", ({ assetId }) => page.send("PATCH", `/v1/assets/${assetId}`, { pinned }));
    page.update();
  };
  return [
    ["Pin", CHANGE, pin(true)], ["Unpin", CHANGE, pin(false)], ["Prefetch…", CREATE, async (items) => newJob(page, items.map(({ assetId }) => assetId))],
    ["Purge selected…", PURGE, async (items) => purgeAssets(page, items), "danger"],
  ];
}

// Asks for a purge of these assets.
export const purgeAssets = (page, items) => planDialog(page, items.length === 1 ? "Purge this asset" : `Purge ${count(items.length)} assets`, ({ soft }) => ({ assetIds: items.map(({ assetId }) => assetId), soft: soft === "on" }),
  make("ul.scroll.mono", { tabindex: 0 }, items.map(({ key }) => make("li", key))), checkField("Mark as stale instead of removing", "soft"));

export function cachedMeter({ cachedBytes, cachedRatio }) {
  return cachedRatio === null ? bytes(cachedBytes) : meter(cachedRatio, "cached");
}

export function labels({ pinned, tags }) {
  return make("span", pinned && badge("pinned"), tags.map((tag) => badge(tag, "")));
}

// Asks for a purge of the assets that the filter of the list selects.
async function purge(page, { url, prefix, contains, origin, tag, state, pinned }) {
  const request = ({ soft, pattern, days, url: address, ...conditions }) => ({
    ...conditions, soft: soft === "on", ...(pattern && { patterns: [pattern] }), ...(address && { urls: [address] }), ...(days !== undefined && { olderThanSeconds: days * 86_400 }),
  });
  planDialog(page, "Purge assets", request, make("p.muted", "An asset is purged if it meets all conditions."),
    (contains || state || pinned) && make("p.problem", "A purge cannot select by parts of names, cached bytes or pins: it includes assets that this list does not show."),
    pair(textField("Key prefix", "prefix", { value: prefix }), textField("Key pattern, such as /o/media/**/*.mp4", "pattern"), textField("URL", "url", { value: url })),
    pair(textField("Origin", "origin", { value: origin }), textField("Tag", "tag", { value: tag }), textField("Media type", "contentType"), numberField("Minimum age, days", "days")),
    checkField("Mark as stale instead of removing", "soft"));
}
