// Jobs: the list, one job with the causes of its failures, a new job.
import { make, replace, setText } from "./dom.js";
import { session } from "./api.js";
import { count, moment, pick, some } from "./format.js";
import { action, announce, ask, assetLink, badge, checkField, dialog, facts, field, FieldError, forEach, grid, heading, keyLink, keyText, link, listPanel, meter, numberField, numbers, oneLine, pair, panel, scan, selectField, table, textField, words } from "./view.js";

const STATES = ["queued", "running", "paused", "succeeded", "failed", "timedOut", "cancelled"];
const SUMMARY = "itemsTotal itemsDone itemsWaiting itemsFailed itemsTimedOut itemsCancelled bytesTotal bytesDone bytesFromCache bytesFromUpstream bytesPerSecond maxBytesPerSecond etaSeconds priority queue createdAt finishedAt deadlineAt predictedFinishAt notBefore windows waitingFor nextRunAt";
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

// Changes of jobs: text, operation, the jobs that it is not for, its past tense, call, class.
const CHANGES = [
  ["Pause", CHANGE, (job) => hasEnded(job) || job.state === "paused", "paused", (page, path) => page.send("PATCH", path, { state: "paused" })],
  ["Resume", CHANGE, (job) => job.state !== "paused", "resumed", (page, path) => page.send("PATCH", path, { state: "queued" })],
  ["Retry", RETRY, (job) => !hasEnded(job) || job.state === "succeeded", "retried", (page, path) => page.send("POST", `${path}/retry`)],
  ["Cancel", CANCEL, hasEnded, "cancelled", (page, path) => page.send("DELETE", path), "danger"],
];
const askCancel = (page, number, apply) => ask(page, `Cancel ${some(number, "job")}?`, "Running transfers are stopped. Fetched bytes stay.", "Keep fetching", "Stop fetching", apply);
const createAction = (page) => action(CREATE, "New job…", async () => newJob(page), "main");

export function jobsPage(page) {
  const pick = selectField("State", "state", [["", "any"], ...STATES], page.query.get("state"));
  pick.addEventListener("change", ({ target: { value } }) => {
    page.set({ state: value, page: null, cursor: null });
    list.load();
  });
  const list = listPanel(page, "Jobs", {
    path: "/v1/jobs", query: () => ({ state: page.query.get("state"), total: !session.access.assetPrefixes }), columns: columns(), key: (job) => job.jobId, empty: "There are no such jobs.",
    tools: [pick, createAction(page)], live: true,
    actions: CHANGES.map(([text, needs, isOther, done, change, kind]) => [text, needs, (items) => {
      // Jobs that the change is not for are left out.
      const wanted = items.filter((job) => !isOther(job));
      if (wanted.length < items.length) announce(`${some(items.length - wanted.length, "job")} cannot be ${done}.`, "warn");
      const apply = () => forEach(wanted, "job", done, ({ jobId }) => change(page, `/v1/jobs/${jobId}`)).then(() => list.load());
      return kind ? askCancel(page, wanted.length, apply) : apply();
    }, kind]),
  });
  page.on("jobs", ({ job, type }) => {
    if (list.items.some(({ jobId }) => jobId === job.jobId)) list.put(job);
    else if (type === "state" && list.isFirst()) list.load();
  });
  return [heading("Jobs"), grid(list)];
}

export function jobPage(page) {
  const path = `/v1/jobs/${page.argument}`;
  const [bar, problem, summary, title] = [make("p"), make("p.problem"), facts(), heading("Job", link("#/jobs", "Jobs"))];
  const apply = async (answer) => {
    show(await answer);
    page.update();
  };
  const controls = CHANGES.map(([text, needs, isOther, , call, kind]) => [action(needs, text, async () => (kind ? askCancel(page, 1, () => apply(call(page, path))) : apply(call(page, path))), kind), isOther]);
  controls.push([action(CHANGE, "Change…", async () => changeJob(page, await page.get(path), (body) => apply(page.send("PATCH", path, body)))), hasEnded]);
  const jobPanel = panel("Progress", { tools: controls.map(([control]) => control) }, bar, problem, summary.element);
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
    for (const [control, isOther] of controls) if (control) control.disabled = isOther(job);
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
  const items = await scan(page, `${path}/items`, {}, (item) => item.error, 100_000);
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
    pair(textField("Label", "label"), textField("Tags, separated by commas", "tags")), pair(limitFields({})),
    checkField("Pin the assets", "pinned"));
}

// Asks for another priority and other limits of an unfinished job.
const changeJob = (page, job, act) => dialog(page, "Change this job", "Change the job", async ({ priority, ...limits }) => act({ priority, ...jobLimits(limits) }), pair(limitFields(job)));

function limitFields({ priority, maxBytesPerSecond, deadlineAt }) {
  const local = (at) => new Date(Date.parse(at) - new Date(at).getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
  return [
    selectField("Priority", "priority", ["normal", "low", "high"], priority), numberField("Maximum rate, MiB/s", "rate", { least: 0.001, value: maxBytesPerSecond && maxBytesPerSecond / 2 ** 20 }),
    textField("Deadline", "deadline", { type: "datetime-local", value: deadlineAt && local(deadlineAt) }),
  ];
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
