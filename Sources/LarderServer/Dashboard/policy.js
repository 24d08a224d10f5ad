// Policy: settings, miss-ratio curve and simulation, candidates, evictions, quotas.
import { make, setText } from "./dom.js";
import { curveChart } from "./draw.js";
import { bytes, duration, percent, pick, some } from "./format.js";
import { PLAN, policyPlan, twoSteps } from "./plan.js";
import { changes, control } from "./settings.js";
import { action, announce, assetLink, badge, checkField, facts, form, grid, heading, listPanel, meter, numberField, numbers, panel, submitButton, table, textField, words } from "./view.js";

// All simulations have one colour, and a pattern each.
const PATTERNS = { s3fifo: "k.k1", lru: "k.k2", sieve: "k.k3", lfuda: "k.k4", gdsf: "k.k5" };
const LEAST_CAPACITY = 1 << 20;
const GIB = 2 ** 30;
const FIELDS = [
  ["Capacity, GiB (empty: the disk)", "capacityBytes", "number", GIB], ["Algorithm", "algorithm", "choice", Object.keys(PATTERNS)], ["Low watermark, 0 to 1", "lowWatermark", "number"], ["High watermark, 0 to 1", "highWatermark", "number"],
];
const quotaFields = (tag) => [["guaranteed", "minBytes"], ["at most", "maxBytes"]].map(([text, name]) => [`${tag} ${text}, GiB`, `tagQuotas\t${tag}\t${name}`, "number", GIB]);
const CHANGE = "PATCH /v1/policy";

export function policyPage(page) {
  const settings = facts();
  const policyPanel = panel("In force", { tools: action([PLAN, CHANGE], "Change…", () => changePolicy(page), "main") }, settings.element);
  page.every(15, policyPanel, async () => {
    const { tagQuotas, admission, ...policy } = await page.get("/v1/policy");
    settings.update(pick({ ...policy, ...admission }));
  });
  const quotas = table("Quotas", [
    ["Owner", "wide", ({ owner }) => Object.entries(owner).flat().join(" ")], ...numbers("cachedBytes minBytes maxBytes"),
    ["Used", "", ({ usedRatio }) => usedRatio !== null && meter(usedRatio, usedRatio > 1 ? "bad" : "")],
  ], ({ owner }) => JSON.stringify(owner), "No origin and no tag has a quota.");
  const quotaPanel = panel("Quotas", {}, quotas.element);
  page.every(10, quotaPanel, async () => quotas.update((await page.get("/v1/stats")).store.quotas));
  const next = listPanel(page, "Next to be evicted", {
    path: "/v1/evictions/next", name: "next", query: () => ({ limit: 12 }), key: (item) => `${item.assetId} ${item.range.offset}`, empty: "No bytes would be evicted.", size: "half",
    columns: [["Asset", "wide", assetLink], ["Offset", "number", (item) => bytes(item.range.offset)], ...numbers("bytes reads ageSeconds"), ...words("queue")],
  });
  const evictions = evictionList(page, { query: () => ({ limit: 12, total: true }), size: "half" });
  return [heading("Policy"), grid(policyPanel, curvePanel(page), next, evictions, quotaPanel)];
}

// Asks for another policy. The plan tells which assets would leave.
async function changePolicy(page) {
  const { document: policy, revision } = await page.get("/v1/policy", {}, { read: "revision" });
  const quotas = Object.keys(policy.tagQuotas).flatMap(quotaFields);
  const added = quotaFields("");
  let patch;
  const prepare = async ({ tag, ...values }) => {
    patch = changes(policy, values, [...FIELDS, ...quotas]);
    if (tag) patch.tagQuotas = { ...patch.tagQuotas, [tag]: changes({}, values, added).tagQuotas?.[""] ?? null };
    // A quota without limits is none.
    for (const [name, limits] of Object.entries(patch.tagQuotas ?? {})) if (limits && Object.values({ ...policy.tagQuotas[name], ...limits }).every((limit) => limit === null)) patch.tagQuotas[name] = null;
    if (!Object.keys(patch).length) return { lines: make("p", "Nothing was changed.") };
    return { ...await policyPlan(page, { policy: patch }), text: "Apply" };
  };
  const commit = async () => {
    await page.send("PATCH", "/v1/policy", patch, { "If-Match": revision });
    announce("The policy was changed.");
    page.update();
  };
  const row = (fields) => fields.map((each) => control(policy, each));
  twoSteps(page, "Change the policy", "Show the plan", { prepare, commit },
    make("div.fields", row(FIELDS), row(quotas)), make("div.fields", textField("New quota for the tag", "tag"), row(added)));
}

// The curve in force, and curves of simulated algorithms.
function curvePanel(page) {
  const chart = curveChart({ label: "Miss ratio of bytes by capacity", height: 220, format: bytes, signal: page.signal });
  const note = make("p.muted", " ");
  const columns = [...words("algorithm"), ...numbers("capacityBytes byteHitRatio requestHitRatio upstreamBytesPerDay writtenBytesPerDay"), ["Upstream cost per day", "number", (item) => item.upstreamCostPerDay?.toFixed(2)]];
  const results = table("Results of the simulation", columns, (item) => item.algorithm, "");
  results.element.hidden = true;
  let [curve, simulated] = [null, []];
  const show = () => {
    const points = curve.points.filter(({ capacityBytes }) => capacityBytes > 0).map(({ capacityBytes, byteMissRatio }) => ({ x: capacityBytes, y: byteMissRatio }));
    chart.update([[`${curve.algorithm}, in force`, "t", points], ...simulated], curve.capacityBytes);
    setText(note, curve.reads ? `Miss ratio of bytes by capacity, from ${some(curve.reads, "read")} in ${duration(curve.windowSeconds)}.` : "There were no reads since the start.");
  };
  const submit = async ({ capacity, ...chosen }) => {
    const algorithms = Object.keys(chosen);
    const wanted = capacity ? Math.round(capacity * 2 ** 30) : curve.capacityBytes;
    const capacities = [...curve.points.map(({ capacityBytes }) => capacityBytes), wanted].filter((size) => size >= LEAST_CAPACITY).sort((left, right) => left - right);
    const { items } = await page.send("POST", "/v1/policy/simulations", { capacities, ...(algorithms.length && { algorithms }) });
    const points = (name) => items.filter(({ algorithm }) => algorithm === name).map(({ capacityBytes, byteHitRatio }) => ({ x: capacityBytes, y: 1 - byteHitRatio }));
    simulated = algorithms.map((name) => [name, PATTERNS[name], points(name)]);
    results.update(items.filter((item) => item.capacityBytes === wanted));
    results.element.hidden = false;
    show();
  };
  const body = panel("Miss ratio and simulation", {}, note, chart.element, form("form.filters", submit, numberField("Capacity, GiB", "capacity", { least: 0.001, placeholder: "in force" }),
    Object.keys(PATTERNS).map((name) => checkField(name, name, name === "lru")), submitButton("Simulate")), results.element);
  page.every(60, body, async () => {
    curve = await page.get("/v1/policy/curve");
    show();
  });
  return body;
}

// Evictions, newest first; `told` gets each page of them.
export function evictionList(page, options, told = () => {}) {
  return listPanel(page, "Evictions of the last day", {
    path: "/v1/evictions", name: "evictions", seconds: 3, live: true, key: (item) => `${item.at} ${item.assetId} ${item.ranges[0]?.offset}`, empty: "No bytes were evicted.",
    columns: [...words("at"), ["Reason", "", (item) => badge(item.reason), "reason"], ["Asset", "wide", assetLink, "key"], ...numbers("bytes")], told, ...options,
  });
}
