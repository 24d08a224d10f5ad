// Origins: circuits, latency, traffic and settings.
import { make, replace, setText } from "./dom.js";
import { duration, pick } from "./format.js";
import { circuitItems } from "./overview.js";
import { badge, facts, heading, panel } from "./view.js";

export function originsPage(page) {
  const [list, shown] = [make("div.grid", make("p.empty", "Loading…")), new Map()];
  const problem = make("p.problem", { role: "status" });
  page.every(5, { show: (error) => setText(problem, error) }, async () => {
    const [{ items }, { origins }] = await Promise.all([page.get("/v1/origins"), page.get("/v1/stats")]);
    const names = items.map(({ name }) => name);
    if (names.join() !== [...shown.keys()].join() || !names.length) {
      shown.clear();
      names.forEach((name) => shown.set(name, originView(name)));
      replace(list, names.length ? [...shown.values()].map(({ element }) => element) : make("p.empty", "No origin is mounted."));
    }
    for (const origin of items) shown.get(origin.name).update(origin, origins.find((each) => each.origin === origin.name));
  });
  return [heading("Origins", problem), list];
}

function originView(name) {
  const [circuits, figures, settings] = [make("ul"), facts(), facts()];
  const { element } = panel(name, {}, circuits, figures.element, make("details", make("summary", "Settings"), settings.element));
  function update(origin, stats) {
    const items = stats?.circuit ? circuitItems(name, stats.circuit) : [["", "no circuit breaker", origin.baseURL]];
    replace(circuits, items.map(([kind, title, text]) => make("li", badge(title, kind), text)));
    const { p50, p95, p99 } = stats?.firstByteSeconds ?? {};
    const counts = { ...stats?.fills, ...stats, requests: stats?.requests.total, upstreamBytes: stats?.bytes.upstream, credentialsFile: origin.credentialsFile };
    figures.update({ "First byte, p50": duration(p50), "First byte, p95": duration(p95), "First byte, p99": duration(p99), ...pick(counts, "requests byteHitRatio upstreamBytes failed timedOut retried credentialsFile") });
    settings.update(pick(origin));
  }
  return { element, update };
}
