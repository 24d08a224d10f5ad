// The usage of the cache by groups, and of directories by those below them.
import { make, replace } from "./dom.js";
import { keyLink, link, meter, numbers, panel, selectField, table } from "./view.js";

// Filters of the list of assets by grouping.
const FILTERS = { origin: "origin", path: "find", tag: "tag" };

export function usagePanel(page) {
  const by = selectField("By", "by", ["origin", "path", "tag", "type", "age"], page.query.get("usage") ?? "");
  const chosen = by.querySelector("select");
  const above = make("p.muted");
  const list = (text) => `#/assets?${FILTERS[chosen.value]}=${encodeURIComponent(text)}`;
  const name = ({ name: text }) => {
    if (chosen.value === "path") return keyLink(`#/overview?usage=path&below=${encodeURIComponent(text)}`, text);
    return FILTERS[chosen.value] && text ? keyLink(list(text), text) : text || "none";
  };
  const assets = ({ name: text }) => (chosen.value === "path" ? link(list(text), "Assets") : null);
  const shown = table("Usage", [["Name", "wide", name], ...numbers("assets bytes"), ["Share", "", ({ share }) => meter(share)], ["", "act", assets]], (item) => `${chosen.value} ${item.name}`, "The cache is empty.");
  const used = panel("Usage", { tools: by, size: "half" }, above, shown.element);
  const load = page.every(15, used, async () => {
    const below = chosen.value === "path" ? page.query.get("below") : null;
    const { items, total } = await page.get("/v1/assets/usage", { by: chosen.value, prefix: below, limit: 12 });
    replace(above, below && [link("#/overview?usage=path", "All directories"), ` ${below}`]);
    shown.update(items.map((item) => ({ ...item, share: total.bytes ? item.bytes / total.bytes : 0 })));
  });
  chosen.onchange = () => {
    page.set({ usage: chosen.value, below: null });
    load();
  };
  return used;
}
