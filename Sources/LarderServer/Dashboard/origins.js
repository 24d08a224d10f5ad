// Origins: the list, and one origin with circuits, latency, traffic, credentials and settings.
import { session } from "./api.js";
import { make, replace } from "./dom.js";
import { ago, before, count, duration, moment, originPath, pick, some } from "./format.js";
import { originForm, SAVE, SAVE_NEW } from "./settings.js";
import { action, announce, ask, badge, facts, grid, heading, link, listPanel, numbers, oneLine, panel } from "./view.js";

const STATES = ["closed", "halfOpen", "open"];
const stateOf = ({ addresses }) => STATES[Math.max(...addresses.map(({ state }) => STATES.indexOf(state)))];
const lastFailure = ({ addresses }) => addresses.map((each) => each.lastFailure).filter(Boolean).sort((one, two) => one.secondsAgo - two.secondsAgo)[0];
const figuresOf = ({ requests, bytes, firstByteSeconds, fills, ...stats }) => ({ ...fills, ...stats, requests: requests.total, upstreamBytes: bytes.upstream, ...firstByteSeconds });
const originLink = (name) => link(`#/${originPath(name)}`, name);
const stateBadge = (state) => badge(state === "halfOpen" ? "half open" : state, { open: "bad", halfOpen: "warn", closed: "good" }[state]);

export function originsPage(page) {
  const list = listPanel(page, "Origins", {
    read: async () => {
      const [{ items }, { origins }] = await Promise.all([page.get("/v1/origins"), page.get("/v1/stats")]);
      const stats = new Map(origins.map((each) => [each.origin, figuresOf(each)]));
      return items.map((origin) => ({ ...origin, ...stats.get(origin.name), failure: lastFailure(origin) }));
    },
    seconds: 5, find: ({ name, baseURL }) => `${name} ${baseURL}`, key: ({ name }) => name, empty: "No origin is mounted.", tools: [reloadAction(page), action(SAVE_NEW, "New origin…", () => originForm(page), "main")],
    columns: [
      ["Name", "name", ({ name }) => originLink(name), "name"], ["Circuit", "", (origin) => stateBadge(stateOf(origin)), (origin) => STATES.indexOf(stateOf(origin))], ...numbers("baseURL", "wide"),
      ...numbers("requests byteHitRatio upstreamBytes"), ["First byte, p95", "number", ({ p95 }) => duration(p95), "p95"], ["Failed fills", "number", ({ failed }) => count(failed), "failed"],
      ["Last failure", "", ({ failure }) => failure && `${failure.cause}, ${ago(before(failure.secondsAgo))}`, ({ failure }) => failure && -failure.secondsAgo],
      ["Credentials", "", ({ credentials }) => credentials && badge(credentials.kind, credentials.error || credentials.stale ? "bad" : "good")],
    ],
  });
  return [heading("Origins"), grid(list)];
}

const reloadAction = (page) => action("POST /v1/configuration/reload", "Reload the configuration", async () => {
  const { changed, needsRestart } = await page.send("POST", "/v1/configuration/reload");
  announce(`The configuration was read. Changed: ${changed.join(", ") || "nothing"}.${needsRestart.length ? ` A restart is needed for ${needsRestart.join(", ")}.` : ""}`);
  page.update();
});

// A server or one of its addresses, with its state and its last failure.
function serverItem({ url, address, state, failuresInARow, probeInSeconds, lastFailure: failure }) {
  const detail = [failuresInARow > 0 && `${some(failuresInARow, "failure")} in a row`, probeInSeconds !== null && probeInSeconds !== undefined && `next probe in ${duration(Math.ceil(probeInSeconds))}`,
    failure && `${some(failure.count, "failure")} in all, the last ${ago(before(failure.secondsAgo))} with ${failure.cause}`].filter(Boolean).join(", ");
  const kind = { open: "bad", closed: failuresInARow ? "warn" : "good", healthy: "good" }[state] ?? "warn";
  return make("li", badge(url ? `circuit ${state === "halfOpen" ? "half open" : state}` : state, kind), `${url ?? address}${detail && `: ${detail}`}`, oneLine(failure?.message));
}

const unmount = (page, name) => ask(page, `Unmount the origin ${name}?`, "Its assets stay cached until they are evicted or purged.", "Keep the origin", "Unmount", async () => {
  await page.send("DELETE", `/v1/${originPath(name)}`);
  announce(`The origin ${name} was unmounted.`, "good", true);
  location.hash = "/origins";
});

export function originPage(page) {
  const name = decodeURIComponent(page.argument);
  const [circuits, figures, account, settings] = [make("ul"), facts(), facts(), facts()];
  const state = panel("State", { tools: [session.can("GET /v1/requests") && link(`#/requests?origin=${page.argument}`, "Requests"), session.can("GET /v1/assets") && link(`#/assets?origin=${page.argument}`, "Assets")] }, circuits, figures.element);
  const accountPanel = panel("Credentials", { tools: [action(SAVE, "Rotate…", () => originForm(page, name, ["Credentials"])), reloadAction(page)] }, account.element);
  page.every(5, state, async () => {
    const [origin, { origins }] = await Promise.all([page.get(`/v1/origins/${page.argument}`), page.get("/v1/stats")]);
    show(origin, origins.find((each) => each.origin === name));
  });

  function show(origin, stats) {
    replace(circuits, origin.addresses.flatMap((address) => [address, ...(address.resolved ?? [])]).map(serverItem));
    const counts = stats ? figuresOf(stats) : {};
    figures.update({ ...Object.fromEntries(["p50", "p95", "p99"].map((each) => [`First byte, ${each}`, duration(counts[each])])), ...pick(counts, "requests byteHitRatio upstreamBytes failed timedOut retried") });
    accountPanel.element.hidden = !stats?.credentials && !origin.credentialsFile && !Object.keys(origin.headers).length;
    const { kind, expiresAt, stale, error, ...rest } = stats?.credentials ?? {};
    account.update({
      Kind: kind ?? (origin.credentialsFile ? "header fields of a file" : "header fields"), "Header fields": Object.keys(origin.headers).join(", ") || "none", File: origin.credentialsFile ?? origin.auth?.file, Expires: expiresAt ? moment(expiresAt) : kind && "never or unknown",
      State: kind && badge(error ? "failing" : stale ? "stale" : "good", error || stale ? "bad" : "good"), ...pick(rest, "refreshedAt refreshes failures"), Error: error,
    });
    const { addresses, observations, ...own } = origin;
    settings.update(pick(own));
  }
  return [heading(name, link("#/origins", "All origins")), grid(state, accountPanel, panel("Settings", { tools: [action(SAVE, "Change…", () => originForm(page, name)), action("DELETE /v1/origins/{name}", "Unmount…", async () => unmount(page, name), "danger")] }, settings.element))];
}
