// Problems: those of now with their causes, then warnings, errors and changes of the readiness.
import { session } from "./api.js";
import { make, replace } from "./dom.js";
import { ago, before, bytes, count, duration, moment, originPath, percent, some } from "./format.js";
import { badge, grid, heading, link, listPanel, numbers, oneLine, panel, words } from "./view.js";

// The share of young bytes among the evicted ones.
const THRASHING = 0.2;
const FULL = 0.95;
// Tokens and signatures are renewed by people, the other credentials by the service.
const [SOON, RENEWED] = [7 * 86_400_000, 300_000];
const SHOWN = 5;

// The problems of now, the worst first: {level, what, hash, status, text, at, count}.
async function findProblems(page) {
  const stats = await page.get("/v1/stats");
  const part = (needs, read) => (session.can(needs) ? read() : []);
  const found = await Promise.all([
    part("GET /v1/origins", async () => (await page.get("/v1/origins")).items.flatMap(ofOrigin)),
    part("GET /v1/jobs", () => ofJobs(page, stats.jobs)),
    part("GET /v1/tokens", async () => (await page.get("/v1/tokens", { limit: 1000 })).items.flatMap(ofToken)),
    page.get("/health/ready").then(({ detail }) => detail && { level: "warn", what: "Readiness", hash: "#/problems", text: detail }, ({ message: text }) => ({ level: "bad", what: "Readiness", hash: "#/problems", status: "not ready", text })),
  ]);
  return [...found.flat(), ...stats.failingServers.flatMap((server) => ofServer(server, "(url)", "#/requests?origin=(url)")), ...ofStats(stats)]
    .filter(Boolean).sort((one, two) => (one.level === "bad" ? 0 : 1) - (two.level === "bad" ? 0 : 1));
}

function ofServer({ url, state, failuresInARow, failingSeconds, lastFailure, resolved = [] }, name, hash) {
  const line = (level, failure, text) => ({ level, what: `Origin ${name}`, hash, status: failure?.cause, at: failure && before(failure === lastFailure && failingSeconds || failure.secondsAgo), count: failure?.count, text: `${text}. ${failure?.message ?? ""}` });
  const circuit = { open: ", the circuit is open", halfOpen: ", the circuit is half open" }[state] ?? "";
  return [
    (circuit || failuresInARow > 0) && line(state === "open" ? "bad" : "warn", lastFailure, `${url}: ${some(failuresInARow, "failure")} in a row${circuit}`),
    ...resolved.filter((each) => each.state !== "healthy").map((each) => line("warn", each.lastFailure, `The address ${each.address} is suspect`)),
  ];
}

const originHash = (name) => `#/${originPath(name)}`;
const ofOrigin = ({ name, addresses }) => addresses.flatMap((address) => ofServer(address, name, originHash(name)));

async function ofJobs(page, counts) {
  const rows = await Promise.all(["failed", "timedOut", "running", "queued"].filter((state) => counts[state] > 0).map(async (state) => {
    const hasEnded = ["failed", "timedOut"].includes(state);
    const { items } = await page.get("/v1/jobs", { state, limit: hasEnded ? SHOWN : 200 });
    const lines = items.filter((job) => hasEnded || job.itemsWaiting || job.atRisk).map(({ jobId, label, itemsWaiting, itemsTotal, itemsFailed, itemsTimedOut, error, ...job }) => ({
      level: hasEnded ? "bad" : "warn", what: `Job ${label ?? jobId.slice(0, 12)}`, hash: `#/jobs/${jobId}`, status: hasEnded ? state : itemsWaiting ? "waiting" : "at risk", at: job.finishedAt ?? job.startedAt, count: itemsFailed + itemsTimedOut + itemsWaiting,
      text: error?.message ?? (itemsWaiting ? `${some(itemsWaiting, "item")} of ${count(itemsTotal)} wait.` : "The job will probably miss its deadline."),
    }));
    const rest = hasEnded ? counts[state] - items.length : 0;
    return [...lines.slice(0, SHOWN), rest > 0 && { level: "bad", what: `${count(rest)} more jobs`, hash: `#/jobs?state=${state}`, status: state, count: rest, text: "" }];
  }));
  return rows.flat();
}

function ofToken({ id, state, expiresAt }) {
  const rest = expiresAt ? Date.parse(expiresAt) - Date.now() : Infinity;
  if (state === "overridden" || rest > SOON) return [];
  return [{ level: rest < 0 ? "bad" : "warn", what: `Token ${id}`, hash: "#/readers?sort=Expires&order=asc", status: rest < 0 ? "expired" : "expires", at: expiresAt, text: rest < 0 ? "Requests with the token are refused." : `The token expires in ${duration(rest / 1000)}.` }];
}

function ofCredentials({ origin, credentials }) {
  if (!credentials) return null;
  const { kind, expiresAt, refreshedAt, stale, failures, error } = credentials;
  const rest = expiresAt ? Date.parse(expiresAt) - Date.now() : Infinity;
  if (!error && !stale && rest > (kind === "sas" ? SOON : RENEWED)) return null;
  const text = error ?? (stale ? "Expired keys stay in use, because new ones cannot be fetched." : `The credentials ${rest < 0 ? "have expired" : `expire in ${duration(rest / 1000)}`}.`);
  return { level: rest < 0 || stale ? "bad" : "warn", what: `Credentials of ${origin}`, hash: originHash(origin), status: kind, at: refreshedAt, count: failures, text };
}

function ofStats({ origins, store, evictions, integrity }) {
  const young = evictions.bytes ? evictions.youngBytes / evictions.bytes : 0;
  return [
    ...origins.map(ofCredentials),
    ...store.quotas.filter(({ usedRatio }) => usedRatio >= FULL).map(({ owner, usedRatio, cachedBytes, maxBytes }) => ({
      level: usedRatio > 1 ? "bad" : "warn", what: `Quota of ${Object.values(owner)}`, hash: "#/policy", status: percent(usedRatio), text: `${bytes(cachedBytes)} of ${bytes(maxBytes)} are used.`,
    })),
    young > THRASHING && { level: "warn", what: "Disk", hash: "#/policy", status: "thrashing", count: evictions.count, text: `${percent(young)} of the evicted bytes had arrived within the hour: the capacity is too small.` },
    store.damaged && { level: "bad", what: "Catalog", hash: "#/problems", status: "damaged", text: "Counts may be out of date." },
    integrity.badBlocks > 0 && { level: "warn", what: "Disk", hash: "#/problems", status: "corrupt", count: integrity.badBlocks, text: `${some(integrity.badBlocks, "block")} with a wrong checksum.` },
  ];
}

// A short version of the list for the first page.
export function problemPanel(page) {
  const list = make("ul");
  const shown = panel("Problems", { tools: link("#/problems", "All problems") }, list);
  page.every(10, shown, async () => {
    const problems = await findProblems(page);
    const rest = problems.length - SHOWN;
    replace(list, problems.slice(0, SHOWN).map(({ level, what, hash, text }) => make("li.cut", badge(level === "bad" ? "error" : "warning"), link(hash, what), ` ${text}`)),
      rest > 0 && make("li", `and ${count(rest)} more`), !problems.length && make("li", badge("none", "good"), "There are no problems."));
  });
  return shown;
}

// Other events of this topic are log entries, too.
const isShown = ({ type }) => ["warning", "error", "readiness"].includes(type);
const level = ({ type, ready }) => (type !== "readiness" ? type : ready ? "ready" : "not ready");

export function problemsPage(page) {
  const now = session.can("GET /v1/stats") && listPanel(page, "Problems now", {
    name: "now", read: () => findProblems(page), find: ({ what, text, status }) => `${what} ${status} ${text}`, key: ({ what, text, status }) => `${what} ${status} ${text.split(/[:.]/)[0]}`, empty: "There are no problems.",
    columns: [
      ["Level", "", ({ level: kind }) => badge(kind === "bad" ? "error" : "warning"), "level"], ["Cause", "name", ({ what, hash }) => link(hash, what), "what"], ...words("status"),
      ["Description", "line", ({ text }) => oneLine(text)], ["Time", "number", ({ at }) => (Date.parse(at) > Date.now() ? moment(at) : ago(at)), "at"], ...numbers("count"),
    ],
  });
  const log = listPanel(page, "Warnings and errors", {
    name: "log", read: async () => null, seconds: 0, live: true, key: (event) => event.id, empty: "There are no warnings and no errors.",
    columns: [...words("at"), ["Level", "", (event) => badge(level(event)), level], ["Message", "text", (event) => event.message ?? (event.reasons.join(" ") || "The service accepts requests.")],
      ["Details", "text mono", (event) => Object.entries(event.metadata ?? {}).map((pair) => pair.join("=")).join(" ")]],
  });
  page.events("health", log, (events) => log.fill(events.filter(isShown)));
  return [heading("Problems"), grid(now, log)];
}
