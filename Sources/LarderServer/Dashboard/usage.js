// The usage of the cache by groups.
import { keyLink, meter, numbers, panel, selectField, table } from "./view.js";

// Filters of the list of assets by grouping.
const FILTERS = { origin: "origin", path: "find", tag: "tag" };

export function usagePanel(page) {
  const by = selectField("By", "by", ["origin", "path", "tag", "type", "age"]);
  const chosen = by.querySelector("select");
  const name = ({ name: text }) => (FILTERS[chosen.value] ? keyLink(`#/assets?${FILTERS[chosen.value]}=${encodeURIComponent(text)}`, text) : text || "none");
  const shown = table("Usage", [["Name", "wide", name], ...numbers("assets bytes"), ["Share", "", ({ share }) => meter(share)]], (item) => `${chosen.value} ${item.name}`, "The cache is empty.");
  const used = panel("Usage", { tools: by, size: "half" }, shown.element);
  chosen.onchange = page.every(15, used, async () => {
    const { items, total } = await page.get("/v1/assets/usage", { by: chosen.value, limit: 12 });
    shown.update(items.map((item) => ({ ...item, share: total.bytes ? item.bytes / total.bytes : 0 })));
  });
  return used;
}
