// One asset: cached bytes and heat by byte or by second, properties, actions; of an evicted one the evictions.
import { make, setText } from "./dom.js";
import { strip } from "./draw.js";
import { bytes, decoded, percent, pick, position, some } from "./format.js";
import { session } from "./api.js";
import { cachedMeter, labels, purgeAssets } from "./assets.js";
import { CREATE, newJob, splitTags } from "./jobs.js";
import { purgeAction } from "./plan.js";
import { evictionList } from "./policy.js";
import { action, announce, button, dialog, facts, grid, heading, link, panel, textField } from "./view.js";

const PARTS = 240;
const PROPERTIES = "contentLength diskBytes contentType hits lastAccessAt createdAt freshUntilAt pinnedUntilAt generation etag activeReaders activeFills ttlSeconds origin url";

export function assetPage(page) {
  const id = page.argument;
  const path = `/v1/assets/${id}`;
  const [map, properties, note] = [strip("Parts of the asset"), facts(), make("p.muted", " ")];
  let [asset, by] = [null, "bytes"];
  const axes = [button("Bytes", () => choose("bytes")), button("Seconds", () => choose("time"))];
  const choose = async (axis) => {
    by = axis;
    axes.forEach((control, index) => { control.ariaPressed = index === (axis === "time" ? 1 : 0); });
    loadMap();
  };
  const readIndex = async () => {
    const { container, layout, durationSeconds, playableUntilSeconds } = await page.get(`${path}/media`);
    announce(`${container}, ${layout}, ${position(durationSeconds ?? 0)}; plays from the start until ${position(playableUntilSeconds)}.`);
    choose("time");
  };
  const mapPanel = panel("Cached bytes and reads", { tools: [action("GET /v1/assets/{assetId}/media", "Read the media index", readIndex), axes] }, map.element, note);
  const title = heading("Asset", session.can("GET /v1/assets") && link("#/assets", "All assets"), session.can("GET /v1/explain") && link(`#/fills?target=${id}`, "Explain a read"));
  const patch = async (body, text) => {
    show(await page.send("PATCH", path, body));
    announce(text);
  };
  const PATCH = "PATCH /v1/assets/{assetId}";
  const pin = action(PATCH, "Pin", () => patch({ pinned: !asset.pinned }, `The asset is ${asset.pinned ? "not pinned any more" : "pinned"}.`));
  const editTags = () => dialog(page, "Tags", "Save", ({ tags }) => patch({ tags: splitTags(tags) }, "The tags were changed."), textField("Tags, separated by commas", "tags", { value: asset.tags.join(", ") }));
  const tools = [pin, action(PATCH, "Tags…", editTags), action(CREATE, "Prefetch…", () => newJob(page, [id])), purgeAction(async () => purgeAssets(page, [asset]))];
  const propertyPanel = panel("Properties", { tools }, properties.element);

  const gone = gonePanels(page, id, title);

  function show(newAsset) {
    asset = newAsset;
    for (const each of [mapPanel, propertyPanel]) each.element.hidden = !asset;
    gone.show(!asset);
    if (!asset) return;
    setText(title.firstChild, decoded(asset.key));
    if (pin) setText(pin, asset.pinned ? "Unpin" : "Pin");
    properties.update({ Cached: cachedMeter(asset), Tags: labels(asset), ...pick(asset, PROPERTIES) });
  }

  page.every(5, propertyPanel, async () => show(await page.get(path).catch((error) => {
    if (error.status === 404) return null;
    throw error;
  })));
  const loadMap = page.every(5, mapPanel, async () => {
    if (mapPanel.element.hidden) return;
    const { buckets } = await page.get(`${path}/map`, { by, buckets: PARTS });
    const isTime = buckets[0]?.endSeconds > 0;
    const format = isTime ? position : bytes;
    const hottest = Math.max(1, ...buckets.map(({ heat }) => heat));
    const spans = (strength) => buckets.map(({ offset, length, startSeconds, endSeconds, cached, heat }) => {
      const [from, to] = isTime ? [startSeconds, endSeconds] : [offset, offset + length];
      return { from, to, strength: strength === "cached" ? cached : heat / hottest, hint: `${format(from)} to ${format(to)}: ${percent(cached)} cached, ${some(heat, "read")}` };
    });
    const rows = [["cached", "a", spans("cached")], ["reads", "g", spans("heat")]];
    map.update({ length: rows[0][2].at(-1)?.to ?? 0, format, rows });
    setText(note, buckets.length ? `Up to ${some(hottest, "read")} of one part.` : "The length of the asset is unknown.");
  });
  choose("bytes");
  return [title, grid(mapPanel, propertyPanel, ...gone.panels)];
}

// For an asset that is not in the cache: its evictions.
function gonePanels(page, id, title) {
  const text = make("p", "The asset was evicted, purged or never fetched.");
  let key;
  const again = action(CREATE, "Prefetch again…", async () => newJob(page, [], key), "main");
  const panels = [panel("Not in the cache", { tools: [again, session.can("GET /v1/requests") && link(`#/requests?id=${id}`, "Requests")] }, text)];
  if (again) again.hidden = true;
  if (session.can("GET /v1/evictions")) panels.push(evictionList(page, { path: "/v1/evictions", query: () => ({ assetId: id, total: true }) }, ([last]) => {
    if (!last) return;
    key = last.key;
    setText(title.firstChild, decoded(key));
    if (again) again.hidden = !key.startsWith("/o/");
  }));
  const show = (isGone) => panels.forEach(({ element }) => { element.hidden = !isGone; });
  show(false);
  return { panels, show };
}
