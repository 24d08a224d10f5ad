// Jobs: the list, one job with the causes of its failures, a new job.
import { make, replace, setText } from "./dom.js";
import { session } from "./api.js";
import { count, moment, pick, some } from "./format.js";
import { action, announce, ask, assetLink, badge, checkField, dialog, facts, field, FieldError, forEach, form, grid, heading, keyLink, keyText, link, listPanel, meter, numberField, numbers, oneLine, pair, panel, scan, selectField, submitButton, table, textField, words } from "./view.js";

const STATES = ["queued", "running", "paused", "succeeded", "failed", "timedOut", "cancelled"];
const SUMMARY = "itemsTotal itemsDone itemsWaiting itemsFailed itemsTimedOut itemsCancelled bytesTotal bytesDone bytesFromCache bytesFromUpstream bytesPerSecond maxBytesPerSecond etaSeconds priority queue createdAt finishedAt deadlineAt predictedFinishAt notBefore windows waitingFor nextRunAt";
const MOST_PAGES = 10;
export const CREATE = "POST /v1/jobs";
const [CHANGE, RETRY, CANCEL] = ["PATCH /v1/jobs/{jobId}", "POST /v1/jobs/{jobId}/retry", "DELETE /v1/jobs/{jobId}"];

const name = (job) => job.label ?? job.jobId.slice(0, 12);
const hasEnded = (job) => STATES.indexOf(job.state) > 2;
const failures = (job) => job.itemsFailed + job.itemsTimedOut + job.itemsCancelled;
const state = (job) => make("span", badge(job.state), job.waitingFor && ` until ${moment(job.nextRunAt)}`, job.atRisk && badge("deadline at risk", "warn"));
const itemState = (item) => make("span", badge(item.state), item.waitingFor && ` for ${item.waitingFor}, until ${moment(item.retryAt)}`);
const target = (item) => item.url ?? (item.origin ? `${item.origin}/${item.path}` : item.assetId);

const progress = (job) => meter(job.progressRatio ?? 0, failures(job) ? "bad" : "");

const columns = () => [
  ["Job", "wide", (job) => keyLink(`#/jobs/${job.jobId}`, name(job)), name], ["State", "", state, "state"], ...(session.hasFleet ? words("node") : []), ["Progress", "", progress, "progressRatio"],
  ["Not done", "number", (job) => count(failures(job)), failures], ...numbers("itemsDone itemsTotal bytesDone bytesPerSecond etaSeconds createdAt"),
];

const createAction = (page) => action(CREATE, "New job…", async () => newJob(page), "main");

// For a token that cannot list the jobs: each is opened by its ID.
function singleJobs(page) {
  const open = form("form.filters", async ({ job = "" }) => { location.hash = `/jobs/${encodeURIComponent(job)}`; }, textField("Job ID", "job", { required: true }), submitButton("Open"));
  return [heading("Jobs"), grid(panel("Open a job", { tools: createAction(page) }, make("p.muted", "The token permits single jobs, but no list of jobs."), open))];
}

export function jobsPage(page) {
  if (!session.can("GET /v1/jobs")) return singleJobs(page);
  const pick = selectField("State", "state", [["", "any"], ...STATES], page.query.get("state"));
  pick.addEventListener("change", ({ target: { value } }) => {
    page.set({ state: value, page: null, cursor: null });
    list.load();
  });
  const list = listPanel(page, "Jobs", {
    path: "/v1/jobs", query: () => ({ state: page.query.get("state"), total: !session.access.assetPrefixes }), columns: columns(), key: (job) => job.jobId, empty: "There are no such jobs.",
    tools: [pick, createAction(page)], live: true,
    actions: [
      ["Pause", CHANGE, (items) => change(items, hasEnded, "paused", ({ jobId }) => page.send("PATCH", `/v1/jobs/${jobId}`, { state: "paused" }))],
      ["Resume", CHANGE, (items) => change(items, (job) => job.state !== "paused", "resumed", ({ jobId }) => page.send("PATCH", `/v1/jobs/${jobId}`, { state: "queued" }))],
      ["Retry", RETRY, (items) => change(items, (job) => !hasEnded(job) || job.state === "succeeded", "retried", ({ jobId }) => page.send("POST", `/v1/jobs/${jobId}/retry`))],
      ["Cancel…", CANCEL, async (items) => ask(page, `Cancel ${some(items.length, "job")}?`, "Their running transfers are stopped. Fetched bytes stay.", "Keep the jobs", "Cancel the jobs",
        () => change(items, hasEnded, "cancelled", ({ jobId }) => page.send("DELETE", `/v1/jobs/${jobId}`))), "danger"],
    ],
  });
  // Jobs that the change is not for are left out.
  const change = async (items, isOther, done, operation) => {
    const wanted = items.filter((job) => !isOther(job));
    if (wanted.length < items.length) announce(`${some(items.length - wanted.length, "job")} cannot be ${done}.`, "warn");
    await forEach(wanted, "job", done, operation);
    return list.load();
  };
  page.on("jobs", ({ job, type }) => {
    if (list.items.some(({ jobId }) => jobId === job.jobId)) list.put(job);
    else if (type === "state" && list.isFirst()) list.load();
  });
  return [heading("Jobs"), grid(list)];
}

export function jobPage(page) {
  const path = `/v1/jobs/${page.argument}`;
  const [bar, problem, summary, title] = [make("p"), make("p.problem"), facts(), heading("Job", link("#/jobs", "Jobs"))];
  const act = async (method, tail, body) => {
    show(await page.send(method, path + tail, body));
    page.update();
  };
  const pause = action(CHANGE, "Pause", () => act("PATCH", "", { state: "paused" }));
  const resume = action(CHANGE, "Resume", () => act("PATCH", "", { state: "queued" }));
  const change = action(CHANGE, "Change…", async () => changeJob(page, await page.get(path), act));
  const retry = action(RETRY, "Retry", () => act("POST", "/retry"));
  const cancel = action(CANCEL, "Cancel", async () => ask(page, "Cancel this job?", "Its running transfers are stopped. Fetched bytes stay.", "Keep the job", "Cancel the job", () => act("DELETE", "")), "danger");
  const jobPanel = panel("Progress", { tools: [pause, resume, change, retry, cancel] }, bar, problem, summary.element);
  const causes = table("Causes of failures", [...numbers("items"), ["Cause", "line", ({ cause }) => oneLine(cause)], ...words("code"), ["First item", "wide", ({ firstItem }) => keyText(firstItem)]],
    ({ cause }) => cause, "No item has failed.");
  const causePanel = panel("Causes of failures", {}, causes.element);
  const list = listPanel(page, "Items", {
    path: `${path}/items`, query: () => ({ total: true }), key: (item) => item.index, empty: "The job has no items.", seconds: 5,
    columns: [
      ...words("index"), ["Asset", "wide", (item) => (item.assetId ? assetLink({ assetId: item.assetId, key: target(item) }) : keyText(target(item)))],
      ["Ranges", "text", ({ play, ranges }) => (play ? `${play.seconds} s from ${play.startSeconds ?? 0} s` : ranges.slice(0, 3).join(", ") || "all")],
      ["State", "", itemState], ...numbers("bytesDone bytesTotal attempts"), ["Error", "line", (item) => oneLine(item.error?.message)],
    ],
  });
  let known = -1;

  function show(job) {
    setText(title.firstChild, `Job ${name(job)}`);
    replace(bar, state(job), progress(job));
    setText(problem, job.error?.message ?? "");
    summary.update(pick(job, session.hasFleet ? `${SUMMARY} node` : SUMMARY));
    if (retry) retry.disabled = !hasEnded(job) || job.state === "succeeded";
    for (const button of [cancel, change]) if (button) button.disabled = hasEnded(job);
    if (pause) pause.hidden = hasEnded(job) || job.state === "paused";
    if (resume) resume.hidden = job.state !== "paused";
    if (known === failures(job)) return;
    known = failures(job);
    loadCauses();
  }
  page.every(session.can("GET /v1/stats/live") ? 10 : 2, jobPanel, async () => show(await page.get(path)));
  const loadCauses = page.every(0, causePanel, async () => causes.update(known > 0 ? await readCauses(page, path) : []));
  page.on("jobs", ({ job, type }) => {
    if (job.jobId !== page.argument) return;
    show(job);
    if (type === "state") list.load();
  });
  return [title, grid(jobPanel, causePanel, list)];
}

async function readCauses(page, path) {
  const causes = new Map();
  const { items } = await scan(page, `${path}/items`, {}, (item) => item.error, Infinity, MOST_PAGES);
  for (const { error, ...item } of items) {
    const cause = causes.get(error.message) ?? { cause: error.message, code: error.code, items: 0, firstItem: target(item) };
    cause.items += 1;
    causes.set(error.message, cause);
  }
  return [...causes.values()].sort((left, right) => right.items - left.items).slice(0, 50);
}

// Asks for a new job: for these assets, or with these targets in its field.
export function newJob(page, ids = [], targets = "") {
  const headers = { "Idempotency-Key": crypto.getRandomValues(new Uint32Array(4)).join("-") };
  const submit = async (values) => {
    const job = await page.send("POST", "/v1/jobs", jobRequest(values, ids), headers);
    announce(`The job ${name(job)} was created.`, "good", true);
    location.hash = `/jobs/${job.jobId}`;
  };
  dialog(page, ids.length ? `Prefetch ${ids.length === 1 ? "this asset" : some(ids.length, "asset")}` : "New job", "Create the job", submit,
    !ids.length && field("Origin and path, URL or asset ID, one on each line", make("textarea", { name: "targets", spellcheck: "false", value: targets })),
    pair(textField("Ranges, such as bytes=0-1048575", "ranges"), numberField("Or play for, seconds", "seconds", { least: 0.001 }), numberField("From, seconds", "start")),
    pair(textField("Label", "label"), selectField("Priority", "priority", ["normal", "low", "high"])),
    pair(numberField("Maximum rate, MiB/s", "rate", { least: 0.001 }), textField("Deadline", "deadline", { type: "datetime-local" }), textField("Tags, separated by commas", "tags")),
    checkField("Pin the assets", "pinned"));
}

// Asks for another priority and other limits of an unfinished job.
function changeJob(page, job, act) {
  const local = (at) => new Date(Date.parse(at) - new Date(at).getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
  dialog(page, "Change this job", "Change the job", async ({ priority, ...limits }) => act("PATCH", "", { priority, ...jobLimits(limits) }),
    pair(selectField("Priority", "priority", ["normal", "low", "high"], job.priority), numberField("Maximum rate, MiB/s", "rate", { least: 0.001, value: job.maxBytesPerSecond ? job.maxBytesPerSecond / 2 ** 20 : "" })),
    pair(textField("Deadline", "deadline", { type: "datetime-local", value: job.deadlineAt ? local(job.deadlineAt) : "" })));
}

const jobLimits = ({ rate: limit, deadline }) => ({
  maxBytesPerSecond: limit ? Math.round(limit * 2 ** 20) : null, deadlineAt: deadline ? new Date(deadline).toISOString() : null,
});

function jobRequest({ targets = "", ranges, start, seconds, tags, rate, deadline, pinned, ...rest }, ids) {
  if (seconds && ranges) throw new FieldError("ranges", "A job has either ranges or a time to play.");
  if (start && !seconds) throw new FieldError("seconds", "The time to play is missing.");
  const part = seconds ? { play: { startSeconds: start ?? 0, seconds } } : { ranges: ranges?.split(/\s+/) ?? [] };
  const items = ids.length ? ids.map((assetId) => ({ assetId })) : targets.split("\n").filter((line) => line.trim()).map(readTarget);
  return {
    ...rest, items: items.map((item) => ({ ...item, ...part })), tags: splitTags(tags), pinned: pinned === "on", ...jobLimits({ rate, deadline }),
  };
}

export const splitTags = (text = "") => text.split(",").map((tag) => tag.trim()).filter(Boolean);

// An asset ID, a URL, or an origin and a path.
export function readTarget(text) {
  const line = text.trim();
  if (/^[0-9a-f]{32}$/.test(line)) return { assetId: line };
  if (/^https?:/i.test(line)) return { url: line };
  const [, origin, path] = /^\/?(?:o\/)?([^/]*)\/?(.*)/.exec(line);
  return { origin, path };
}
