// Fills: running and ended transfers, and the plan of a read.
import { make, replace } from "./dom.js";
import { strip } from "./draw.js";
import { bytes, decoded, moment, percent, pick, some } from "./format.js";
import { session } from "./api.js";
import { readTarget } from "./jobs.js";
import { action, ask, assetLink, badge, facts, forEach, form, grid, heading, listPanel, numberField, numbers, oneLine, panel, selectField, submitButton, textField, withinField, words } from "./view.js";

const range = (part) => (part ? `${bytes(part.offset)} + ${part.length === null ? "rest" : bytes(part.length)}` : "–");

export function fillsPage(page) {
  const workers = facts();
  const STOP = "DELETE /v1/fills/{fillId}";
  const stop = async (items) => ask(page, `Stop ${some(items.length, "fill")}?`, `${some(items.reduce((sum, { readers }) => sum + readers, 0), "reader")} may be waiting. Stored bytes stay.`, "Keep fetching", "Stop fetching", async () => {
    await forEach(items, "fill", "stopped", ({ fillId }) => page.send("DELETE", `/v1/fills/${fillId}`));
    list.load();
  });
  const within = withinField(page.query.get("within"));
  within?.addEventListener("change", () => list.load());
  const list = listPanel(page, "Running fills", {
    path: "/v1/fills", query: () => ({ prefix: within?.querySelector("select").value }), tools: within, key: (fill) => fill.fillId, empty: "No fill is running.", seconds: 2, live: true, above: workers.element, actions: [["Stop…", STOP, stop, "danger"]],
    columns: [
      ["Asset", "wide", assetLink, "key"], ["State", "", (fill) => badge(fill.state), "state"], ...words("kind"), ["Range", "number", (fill) => range(fill.range)],
      ["Done", "number", ({ progressRatio, positionBytes }) => (progressRatio === null ? bytes(positionBytes) : percent(progressRatio)), "progressRatio"],
      ...numbers("bytesPerSecond readers"), ...words("priority"), ["From", "", ({ peer }) => peer ?? "upstream"], ["", "act", (fill) => action(STOP, "Stop", () => stop([fill]), "danger")],
    ],
  });
  if (session.can("GET /v1/workers")) page.every(2, list, async () => {
    const now = await page.get("/v1/workers");
    workers.update(pick({ ...now, ...now.connections }, "active queued paused opened reused reuseRatio"));
  });
  return [heading("Fills"), grid(session.can("GET /v1/explain") && explainPanel(page), list, session.can("GET /v1/stats/live") && endedPanel(page))];
}

function endedPanel(page) {
  const list = listPanel(page, "Ended fills", {
    name: "ended", read: async () => null, seconds: 0, live: true, find: ({ key, outcome, error }) => `${decoded(key)} ${key} ${outcome} ${error}`, key: (fill) => fill.id, empty: "No fill has ended lately.",
    columns: [
      ...words("at"), ["Outcome", "", (fill) => badge(fill.outcome), "outcome"], ["Asset", "wide", assetLink, "key"], ["Range", "number", (fill) => range(fill.range)], ...numbers("bytes seconds"), ["Error", "line", ({ error }) => oneLine(error), "error"],
    ],
  });
  page.events("fills", list, (events) => list.fill(events.filter(({ type }) => type === "ended").map(({ id, at, fill }) => ({ id, at, ...fill }))));
  return list;
}

function explainPanel(page) {
  const result = make("div", { role: "status" });
  const submit = async ({ target = "", ...query }) => {
    const [found, stats] = await Promise.all([page.get("/v1/explain", { ...readTarget(target), ...query }), session.can("GET /v1/stats") && page.get("/v1/stats")]);
    replace(result, explanation(found, stats?.pricePerGigabyte));
  };
  return panel("Explain a read", {}, form("form.filters", submit,
    textField("Origin and path, URL or asset ID", "target", { value: page.query.get("target") }),
    textField("Range (bytes=0-99)", "range", { value: page.query.get("range") }), numberField("From, seconds", "startSeconds"), numberField("For, seconds", "seconds", { least: 0.001 }),
    selectField("Method", "method", ["GET", "HEAD"]), submitButton("Explain")), result);
}

function explanation({ contentLength, response, freshness, source, wanted, cached, fetch, joinedFills, ...asset }, price) {
  const [summary, parts] = [facts(), strip("Plan of the read")];
  const join = (...texts) => texts.filter(Boolean).join(", ");
  summary.update({
    Asset: assetLink(asset), Response: join(response.status, response.result, response.code), "Content-Range": response.contentRange, Freshness: join(freshness.use, freshness.reason),
    "Fresh until": moment(freshness.freshUntilAt), Cached: `${bytes(cached.bytes)} in ${some(cached.extents, "range")}`,
    Fetch: `${bytes(fetch.bytes)} in ${some(fetch.requests, "request")}`, Cost: price ? `${((fetch.bytes / 1e9) * price).toFixed(6)} at ${price} per GB` : null, Requests: join(...fetch.items.slice(0, 5).map(({ kind, sizedBy }) => `${kind}: ${sizedBy}`)),
    Source: source.url, "Nodes asked first": source.peers.join(", "), "Skipped upstream": source.skipReason, "Joined fills": joinedFills.join(", ") || "none",
  });
  const end = Math.max(1, contentLength, ...wanted.map(({ offset, length }) => offset + length));
  const spans = (ranges) => ranges.filter(Boolean).map(({ offset, length }) => ({ from: offset, to: length === null ? end : offset + length, strength: 1 }));
  parts.update({ length: end, format: bytes, rows: [["read", "g", spans(wanted)], ["cached", "a", spans(cached.items)], ["fetch", "c", spans(fetch.items.map(({ range: part }) => part))]] });
  return [parts.element, summary.element];
}
