// Fills: running and ended transfers, and the plan of a read.
import { make, replace } from "./dom.js";
import { strip } from "./draw.js";
import { bytes, moment, percent, pick, some } from "./format.js";
import { readTarget } from "./jobs.js";
import { action, assetLink, badge, facts, form, grid, heading, listPanel, numbers, panel, selectField, submitButton, table, textField, words } from "./view.js";

const range = (part) => (part ? `${bytes(part.offset)} + ${part.length === null ? "rest" : bytes(part.length)}` : "–");

export function fillsPage(page) {
  const workers = facts();
  const stop = async (id) => {
    await page.send("DELETE", `/v1/fills/${id}`);
    list.load();
  };
  const list = listPanel(page, "Running fills", {
    path: "/v1/fills", key: (fill) => fill.fillId, empty: "No fill is running.", seconds: 2, above: workers.element,
    columns: [
      ["Asset", "wide", assetLink], ["State", "", (fill) => badge(fill.state)], ...words("kind"), ["Range", "number", (fill) => range(fill.range)],
      ["Done", "number", ({ range: part, positionBytes }) => (part?.length ? percent((positionBytes - part.offset) / part.length) : bytes(positionBytes))],
      ...numbers("bytesPerSecond readers"), ...words("priority"), ["", "act", (fill) => action("Stop", () => stop(fill.fillId), "danger")],
    ],
  });
  const ended = table("Ended fills", [
    ...words("at"), ["Outcome", "", (fill) => badge(fill.outcome)], ["Asset", "wide", assetLink], ["Range", "number", (fill) => range(fill.range)], ...numbers("bytes seconds"), ...numbers("error", "text"),
  ], (fill) => fill.id, "No fill has ended lately.");
  const endedPanel = panel("Ended fills", {}, ended.element);
  page.events("fills", endedPanel, (events) => ended.update(events.filter(({ type }) => type === "ended").map(({ id, at, fill }) => ({ id, at, ...fill }))));
  page.every(2, list, async () => {
    const now = await page.get("/v1/workers");
    workers.update(pick({ ...now, ...now.connections }, "active queued paused opened reused reuseRatio"));
  });
  return [heading("Fills"), grid(explainPanel(page), list, endedPanel)];
}

function explainPanel(page) {
  const result = make("div", { role: "status" });
  const submit = async ({ target = "", ...query }) => replace(result, explanation(await page.get("/v1/explain", { ...readTarget(target), ...query })));
  return panel("Explain a read", {}, form("form.filters", submit,
    textField("Origin and path, URL or asset ID", "target", { value: page.query.get("target") }),
    textField("Range (bytes=0-99)", "range"), textField("From, seconds", "startSeconds"), textField("For, seconds", "seconds"),
    selectField("Method", "method", ["GET", "HEAD"]), submitButton("Explain")), result);
}

function explanation({ contentLength, response, freshness, source, wanted, cached, fetch, joinedFills, ...asset }) {
  const [summary, parts] = [facts(), strip("Plan of the read")];
  const join = (...texts) => texts.filter(Boolean).join(", ");
  summary.update({
    Asset: assetLink(asset), Response: join(response.status, response.result, response.code), "Content-Range": response.contentRange, Freshness: join(freshness.use, freshness.reason),
    "Fresh until": moment(freshness.freshUntilAt), Cached: `${bytes(cached.bytes)} in ${some(cached.extents, "range")}`,
    Fetch: `${bytes(fetch.bytes)} in ${some(fetch.requests, "request")}`, Requests: join(...fetch.items.slice(0, 5).map(({ kind, sizedBy }) => `${kind}: ${sizedBy}`)),
    Source: source.url, "Skipped upstream": source.skipReason, "Joined fills": joinedFills.join(", ") || "none",
  });
  const end = Math.max(1, contentLength, ...wanted.map(({ offset, length }) => offset + length));
  const spans = (ranges) => ranges.filter(Boolean).map(({ offset, length }) => ({ from: offset, to: length === null ? end : offset + length, strength: 1 }));
  parts.update({ length: end, format: bytes, rows: [["read", "e", spans(wanted)], ["cached", "a", spans(cached.items)], ["fetch", "c", spans(fetch.items.map(({ range: part }) => part))]] });
  return [parts.element, summary.element];
}
