// Problems: those of now with their causes, then warnings, errors and changes of the readiness.
import { session } from "./api.js";
import { make, replace } from "./dom.js";
import { ago, bytes, count, duration, moment, percent, some } from "./format.js";
import { badge, grid, heading, link, listPanel, oneLine, panel, words } from "./view.js";

// Above this share of young bytes, what is evicted has hardly been used.
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
    part("GET /v1/configuration", async () => ofConfiguration(await page.get("/v1/configuration"))),
    page.get("/health/ready").then(() => [], (error) => [{ level: "bad", what: "Not ready", hash: "#/problems", text: error.message }]),
  ]);
  return [...found.flat(), ...stats.failingServers.flatMap((server) => ofServer(server, "(url)", "#/requests?origin=(url)")), ...ofStats(stats)]
    .filter(Boolean).sort((one, two) => (one.level === "bad" ? 0 : 1) - (two.level === "bad" ? 0 : 1));
}

const since = (seconds) => new Date(Date.now() - seconds * 1000).toISOString();

function ofServer({ url, state, failuresInARow, lastFailure, resolved = [] }, name, hash) {
  const isFailing = state !== "closed" || failuresInARow > 0;
  const server = isFailing && {
    level: state === "open" ? "bad" : "warn", what: `Origin ${name}`, hash, status: lastFailure?.cause, at: lastFailure && since(lastFailure.secondsAgo), count: lastFailure?.count,
    text: `${url}: ${some(failuresInARow, "failure")} in a row${state === "closed" ? "" : `, the circuit is ${state === "open" ? "open" : "half open"}`}. ${lastFailure?.message ?? ""}`,
  };
  return [server, ...resolved.filter((each) => each.state !== "healthy").map(({ address, lastFailure: failure }) => ({
    level: "warn", what: `Origin ${name}`, hash, status: failure?.cause, at: failure && since(failure.secondsAgo), count: failure?.count, text: `The address ${address} is suspect. ${failure?.message ?? ""}`,
  }))];
}

const originHash = (name) => `#/origins/${encodeURIComponent(name)}`;
const ofOrigin = ({ name, addresses }) => addresses.flatMap((address) => ofServer(address, name, originHash(name)));

async function ofJobs(page, counts) {
  const states = [["failed", "bad"], ["timedOut", "bad"], ["running", "warn"], ["queued", "warn"]].filter(([state]) => counts[state] > 0);
  const rows = await Promise.all(states.map(async ([state, level]) => {
    const hasEnded = level === "bad";
    const { items } = await page.get("/v1/jobs", { state, limit: hasEnded ? SHOWN : 200 });
    const lines = items.filter((job) => hasEnded || job.itemsWaiting || job.atRisk).map((job) => ({
      level, what: `Job ${job.label ?? job.jobId.slice(0, 12)}`, hash: `#/jobs/${job.jobId}`, status: hasEnded ? state : job.itemsWaiting ? "waiting" : "at risk", at: job.finishedAt ?? job.startedAt, count: job.itemsFailed + job.itemsTimedOut + (hasEnded ? 0 : job.itemsWaiting),
      text: job.error?.message ?? (job.itemsWaiting ? `${some(job.itemsWaiting, "item")} of ${count(job.itemsTotal)} wait.` : "The job will probably miss its deadline."),
    }));
    const rest = hasEnded ? counts[state] - items.length : 0;
    return [...lines.slice(0, SHOWN), rest > 0 && { level, what: `${count(rest)} more jobs`, hash: `#/jobs?state=${state}`, status: state, count: rest, text: "They are in the list of jobs." }];
  }));
  return rows.flat();
}

function ofToken({ id, state, expiresAt }) {
  const rest = expiresAt ? Date.parse(expiresAt) - Date.now() : Infinity;
  if (state === "overridden" || rest > SOON) return [];
  return [{ level: rest < 0 ? "bad" : "warn", what: `Token ${id}`, hash: "#/readers?sort=Expires&order=asc", status: rest < 0 ? "expired" : "expires", at: expiresAt, text: rest < 0 ? "Requests with the token are refused." : `The token expires in ${duration(rest / 1000)}.` }];
}

const ofConfiguration = ({ error, needsRestart }) => [
  error && { level: "bad", what: "Configuration", hash: "#/problems", status: "invalid", at: error.at, text: error.message },
  needsRestart.length > 0 && { level: "warn", what: "Configuration", hash: "#/problems", status: "restart", count: needsRestart.length, text: `A restart is needed for ${needsRestart.join(", ")}.` },
];

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
      level: usedRatio > 1 ? "bad" : "warn", what: `Quota of ${Object.values(owner)}`, hash: "#/policy", status: percent(usedRatio), text: `${bytes(cachedBytes)} of ${bytes(maxBytes)} are used: assets of this owner are evicted for new ones.`,
    })),
    young > THRASHING && { level: "warn", what: "Disk", hash: "#/policy", status: "thrashing", count: evictions.count, text: `${percent(young)} of the evicted bytes had arrived within the hour before: the capacity is too small for the traffic.` },
    store.damaged && { level: "bad", what: "Catalog", hash: "#/problems", status: "damaged", text: "The catalog was damaged; counts may be out of date." },
    integrity.badBlocks > 0 && { level: "warn", what: "Disk", hash: "#/problems", status: "corrupt", count: integrity.badBlocks, text: `${some(integrity.badBlocks, "block")} had a wrong checksum and were fetched again.` },
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
const message = (event) => event.message ?? (event.reasons.join(" ") || "The service accepts requests.");
const details = (event) => Object.entries(event.metadata ?? {}).map(([name, value]) => `${name}=${value}`).join(" ");

export function problemsPage(page) {
  const now = session.can("GET /v1/stats") && listPanel(page, "Problems now", {
    name: "now", read: () => findProblems(page), find: ({ what, text, status }) => `${what} ${status} ${text}`, key: ({ what, text, status }) => `${what} ${status} ${text.split(/[:.]/)[0]}`, empty: "There are no problems.",
    columns: [
      ["Level", "", ({ level: kind }) => badge(kind === "bad" ? "error" : "warning"), "level"], ["Cause", "name", ({ what, hash }) => link(hash, what), "what"], ["Status", "", ({ status }) => status, "status"],
      ["Description", "line", ({ text }) => oneLine(text)], ["Time", "number", ({ at }) => (Date.parse(at) > Date.now() ? moment(at) : ago(at)), "at"], ["Count", "number", (each) => count(each.count), "count"],
    ],
  });
  const log = listPanel(page, "Warnings and errors", {
    name: "log", read: async () => null, seconds: 0, live: true, find: (event) => `${level(event)} ${message(event)} ${details(event)}`, key: (event) => event.id, empty: "There are no warnings and no errors.",
    columns: [...words("at"), ["Level", "", (event) => badge(level(event)), level], ["Message", "text", message], ["Details", "text mono", details]],
  });
  page.events("health", log, (events) => log.fill(events.filter(isShown)));
  return [heading("Problems"), grid(now, log)];
}
