// Requests: the last ones, newest first.
import { ID } from "./search.js";
import { assetLink, badge, filters, grid, heading, keyText, link, listPanel, numbers, scan, textField, words } from "./view.js";

const FIELDS = { prefix: "Key prefix or path", origin: "Origin", token: "Token", status: "Status, such as 5xx", result: "Result, such as miss", minSeconds: "Least seconds" };

export function requestsPage(page) {
  const search = filters(page, "requests", textField("Trace, request or asset ID", "id", { value: page.query.get("id") }), Object.entries(FIELDS).map(([name, title]) => textField(title, name, { value: page.query.get(name) })));
  const id = page.query.get("id");
  const query = () => Object.fromEntries(Object.keys(FIELDS).map((name) => [name, page.query.get(name)]));
  // A traceparent has the ID of its trace in its second part.
  const wanted = id && (id.split("-").find((part) => ID.test(part)) ?? id).toLowerCase();
  const read = () => scan(page, "/v1/requests", query(), (request) => [request.traceId, request.requestId, request.assetId].includes(wanted));
  const list = listPanel(page, "Requests", {
    ...(id ? { read, seconds: 5 } : { path: "/v1/requests", query, seconds: 2 }), key: (request) => request.id, empty: id ? "None of the last 10,000 requests has this ID." : "No request meets the conditions.", live: true,
    columns: [
      ...words("at"), ["Status", "", ({ status }) => badge(status, status < 400 ? "good" : "bad"), "status"], ["Result", "", ({ code, result }) => code ?? result, ({ code, result }) => code ?? result],
      ["Request", "wide", (request) => (request.assetId ? assetLink(request) : keyText(request.path)), ({ key, path }) => key ?? path], ["Range", "", ({ assetId, range }) => assetId && link(`#/fills?target=${assetId}&range=${range ?? ""}`, range ?? "all")],
      ...numbers("bytes bytesFromUpstream firstByteSeconds totalSeconds"), ...words("token client"),
      ["Trace", "", ({ traceId, requestId }) => (traceId ?? requestId) && link(`#/requests?id=${traceId ?? requestId}`, (traceId ?? requestId).slice(0, 8))],
    ],
  });
  return [heading("Requests"), search, grid(list)];
}
