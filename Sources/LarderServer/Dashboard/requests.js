// Requests: the last ones, newest first.
import { duration } from "./format.js";
import { assetLink, badge, button, filters, grid, heading, link, listPanel, numbers, textField, words } from "./view.js";

const FIELDS = { prefix: "Key prefix or path", origin: "Origin", token: "Token", status: "Status, such as 5xx", result: "Result, such as miss", minSeconds: "Least seconds" };
const time = (title, name) => [title, "number", (request) => duration(request[name])];

export function requestsPage(page) {
  const search = filters("requests", Object.entries(FIELDS).map(([name, title]) => textField(title, name, { value: page.query.get(name) })));
  const pause = button("Pause", async () => { pause.textContent = (list.isPaused = !list.isPaused) ? "Continue" : "Pause"; });
  const list = listPanel(page, "Requests", {
    path: "/v1/requests", query: () => Object.fromEntries(page.query), key: ({ id }) => id, empty: "No request meets the conditions.", seconds: 2, tools: pause,
    columns: [
      ...words("at"), ["Status", "", ({ status }) => badge(status, status < 400 ? "good" : "bad")], ["Result", "", ({ code, result }) => code ?? result],
      ["Request", "wide", (request) => (request.assetId ? assetLink(request) : request.path)], ["Range", "", ({ assetId, range }) => assetId && link(`#/fills?target=${assetId}&range=${range ?? ""}`, range ?? "all")],
      ...numbers("bytes bytesFromUpstream"), time("First byte", "firstByteSeconds"), time("Total", "totalSeconds"), ...words("token client"),
    ],
  });
  return [heading("Requests"), search, grid(list)];
}
