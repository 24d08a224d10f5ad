// Fleet: the nodes with their shares, the statistics of all nodes, the state in etcd, and requests between nodes.
import { session } from "./api.js";
import { make, replace } from "./dom.js";
import { bytes, count, duration, percent, some } from "./format.js";
import { badge, facts, grid, heading, meter, numbers, panel, table } from "./view.js";

const KINDS = { ok: "good", self: "", setAside: "bad", failing: "warn", leaving: "warn", draining: "warn", starting: "warn" };
const state = (name) => badge(name, KINDS[name]);

export function fleetPage(page) {
  const [sums, etcd, missing, faults] = [facts(), facts(), make("p.problem", { role: "status" }), make("ul")];
  const nodes = table("Nodes", [
    ["Node", "wide", ({ name, isOwn }) => `${name}${isOwn ? " (this)" : ""}`], ["State", "", (node) => state(node.state)],
    ["Purges", "number", ({ purges, last }) => (purges < last ? badge(`${purges} of ${last}`, "warn") : count(purges))],
    ...numbers("lagSeconds version"),
    ["Used", "number", ({ used, capacity }) => `${bytes(used)}${capacity ? ` of ${bytes(capacity)}` : ""}`],
    ["Share of requests", "", ({ share }) => (share === undefined ? "–" : meter(share))], ...numbers("byteHitRatio"), ...numbers("error", "text"),
  ], ({ name }) => name, "The service knows no other nodes.");
  const asked = table("Requests to other nodes", [
    ["Node", "wide", ({ url }) => url], ["State", "", (peer) => state(peer.state)],
    ...numbers("hit miss timedOut failed"), ...numbers("lastError", "text"),
  ], ({ url }) => url, "The service has no other nodes.");
  const nodesPanel = panel("Nodes", {}, nodes.element);
  const sumPanel = panel("All nodes", { size: "half" }, missing, sums.element);
  const etcdPanel = panel("State in etcd", { size: "half" }, etcd.element, faults);

  page.every(5, nodesPanel, async () => {
    const [fleet, stats] = await Promise.all([page.get("/v1/fleet"), session.can("GET /v1/fleet/stats") ? page.get("/v1/fleet/stats") : null]);
    nodes.update(rows(fleet, stats));
    asked.update(fleet.peers.map((peer) => ({ ...peer, ...peer.requests })));
    etcdPanel.element.hidden = !fleet.etcd;
    if (fleet.etcd) showEtcd(fleet.etcd);
    sumPanel.element.hidden = !stats;
    if (stats) showSums(stats);
  });

  function showEtcd({ fleet, name, state: contact, lagSeconds, purges, lastError, fault, origins }) {
    etcd.update({ Fleet: fleet, "This node": name, Contact: badge(contact, contact === "reached" ? "good" : "bad"), Lag: duration(lagSeconds), "Last purge": count(purges) });
    const texts = [fault && ["bad", "not ready", fault], lastError && ["warn", "etcd", lastError], ...origins.map((origin) => ["bad", origin.name, origin.error])];
    replace(faults, texts.filter(Boolean).map(([kind, title, text]) => make("li", badge(title, kind), text)));
  }

  function showSums({ partial, nodes: all, total }) {
    const silent = all.filter(({ stats }) => !stats);
    replace(missing, partial && [badge("partial", "warn"), ` ${some(silent.length, "node")} did not answer: ${silent.map(({ url }) => url).join(", ")}`]);
    sums.update({
      Requests: count(total.requests.total), "To clients": bytes(total.bytes.served), "From upstreams": bytes(total.bytes.fromUpstream),
      "Between nodes": bytes(total.bytes.fromPeers), "Byte hit ratio": percent(total.byteHitRatio),
      Disk: `${bytes(total.diskBytes)}${total.capacityBytes === null ? "" : ` of ${bytes(total.capacityBytes)}`}`,
    });
  }

  return [heading("Fleet"), grid(nodesPanel, sumPanel, etcdPanel, panel("Requests to other nodes", {}, asked.element))];
}

// The nodes of etcd, or this one and those of the configuration; with the statistics of those that have answered.
function rows({ node, state: own, etcd, peers }, stats) {
  const known = new Map(stats?.nodes.map((each) => [each.url, each]));
  const total = stats?.total.requests.total;
  const listed = etcd?.nodes.map(({ name, url, state: told, version, purges, ageSeconds, usedBytes, capacityBytes }) => ({
    name, url, isOwn: name === etcd.name, state: told, version, purges, last: etcd.purges, lagSeconds: name === etcd.name ? etcd.lagSeconds : ageSeconds, used: usedBytes, capacity: capacityBytes,
  })) ?? [{ name: node, isOwn: true, state: own }, ...peers.filter((peer) => peer.state !== "self").map((peer) => ({ name: peer.url, url: peer.url, state: peer.state }))];
  return listed.map((row) => {
    const { stats: found, error } = known.get(row.isOwn ? null : row.url) ?? {};
    if (!found) return { ...row, error };
    const { requests, store, byteHitRatio } = found;
    return { ...row, used: store.diskBytes, capacity: store.capacityBytes, byteHitRatio, share: total ? requests.total / total : undefined };
  });
}
