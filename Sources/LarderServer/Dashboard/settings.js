// Forms of settings: fields of a document and their changes as a merge patch; the form of an origin with a test and a plan.
import { session } from "./api.js";
import { make } from "./dom.js";
import { label, originPath, pick } from "./format.js";
import { PLAN, policyPlan, twoSteps } from "./plan.js";
import { announce, badge, checkField, facts, field, FieldError, numberField, oneLine, selectField, submitButton, textField } from "./view.js";

export const [SAVE_NEW, SAVE] = ["PUT /v1/origins/{name}", "PATCH /v1/origins/{name}"];
const MIB = 2 ** 20;

// Kinds of fields: the text of a value, and the value of a text. An empty text is null, for lists and header fields none.
const TEXT = { show: (value) => value ?? "", read: (text) => text || null };
const KINDS = {
  text: TEXT, choice: TEXT,
  secret: { show: () => "", read: (text) => text || undefined },
  number: { show: (value, unit = 1) => (value === null || value === undefined ? "" : String(Number((value / unit).toFixed(6)))), read: (text, unit = 1) => (text === "" ? null : unit === 1 ? Number(text) : Math.round(Number(text) * unit)) },
  check: { show: (value) => (value ? "on" : ""), read: (text) => text === "on" },
  list: { show: (value = []) => value.join("\n"), read: (text) => text.split(/[\s,]+/).filter(Boolean) },
  headers: { show: (value = {}) => Object.entries(value).map((pair) => pair.join(": ")).join("\n"), read: readHeaders },
  freshness: { show: (value) => String(value?.ttlSeconds ?? value ?? ""), read: (text) => (text === "" ? null : /^\d/.test(text) ? { ttlSeconds: Number(text) } : text) },
  json: { show: (value) => JSON.stringify(value ?? undefined, (_, member) => member ?? undefined, 1) ?? "", read: readJSON },
};
const HINTS = { list: "One on each line.", headers: "One “Name: value” on each line; ••• keeps a value.", freshness: "respect, explicit, or seconds." };

function readHeaders(text, _, before, path) {
  return replacement(before, Object.fromEntries(text.split("\n").filter((line) => line.trim()).map((line) => {
    const [, name, value] = /^\s*([^:\s]+)\s*:\s*(.*?)\s*$/.exec(line) ?? [];
    if (!name) throw new FieldError(path, "Each line is a name, a colon and a value.");
    return [name, value];
  })));
}

function readJSON(text, _, before, path) {
  try {
    return text ? replacement(before, JSON.parse(text)) : null;
  } catch ({ message }) {
    throw new FieldError(path, `The text is not JSON: ${message}.`);
  }
}

const isObject = (value) => value?.constructor === Object;

// The merge patch from one value to another: a member that the other one lacks is removed.
function replacement(before, after) {
  if (!isObject(after)) return after;
  const removed = isObject(before) ? Object.keys(before).map((name) => [name, null]) : [];
  return Object.fromEntries([...removed, ...Object.entries(after).map(([name, value]) => [name, replacement(before?.[name], value)])]);
}

const SOURCES = "static|file|environment|container|instance|webIdentity|assumeRole";
// The members of an origin: a path, and its kind, its options, or an example of its JSON. Without these the name states the kind.
const GROUPS = {
  Servers: "baseURL mirrors:list redirectHosts:list allowPrivateAddresses:check tls.verify:check tls.caFile resolve:{\"url\":\"https://api.example.com/?path={path}\"} circuitBreaker:{\"failures\":10} propagateTrace:check",
  Credentials: `access:public|token headers:headers credentialsFile auth.type:s3|oauth2|sas auth.credentials:${SOURCES} auth.accessKeyId auth.secretAccessKey:secret auth.sessionToken:secret auth.file auth.profile auth.region auth.service auth.roleArn auth.roleSessionName auth.externalId auth.source:${SOURCES} auth.stsURL auth.metadataURL auth.grant:clientCredentials|refreshToken|jwtBearer auth.tokenURL auth.scope auth.audience auth.scheme:Bearer|OAuth forward:list forwardShared:check`,
  Freshness: "freshness:freshness staleIfErrorSeconds trustValidators:strong|lengthAndLastModified|immutable negativeCaching:{\"maxSeconds\":300} requestDirectives:check",
  "Keys and responses": "keyQuery:{\"include\":[\"version\"]} cmcd:strip|forward|key ignoreVary:list fallback:{\"file\":\"sorry.mp4\"} errorBodies:upstream|problem unknownLength:whole|partial",
  Transfers: "retries:number maxTransfers:number maxBytesPerSecond readAheadBytes speculativeBytes gapMergeBytes finishIfRemainingBytes finishIfRemainingPercent:number anticipateIndex:check hedging:check timeouts.connectSeconds timeouts.firstByteSeconds timeouts.idleSeconds timeouts.totalSeconds timeouts.readSeconds",
  Storage: "quota.minBytes quota.maxBytes storeRules.maxBytes storeRules.never:list storeRules.always:list verify:first|suspect|always encrypt:check",
};
const NUMBERS = [[/Bytes$/, ", MiB", MIB], [/PerSecond$/, ", MiB/s", MIB], [/Seconds$/, ", seconds", 1]];
const DEFAULTS = { tls: { verify: true }, anticipateIndex: true, propagateTrace: true };

// Fields of a group: [label, path, kind, unit or options or example].
const fieldsOf = (group) => GROUPS[group].split(" ").map((text) => {
  const [, path, kind] = /^([^:]+):?(.*)/.exec(text);
  const [, suffix = "", unit] = NUMBERS.find(([name]) => name.test(path)) ?? [];
  const title = label(path.replace(".", ": ")) + suffix;
  if (kind.startsWith("{")) return [title, path, "json", kind];
  if (kind.includes("|")) return [title, path, "choice", kind.split("|")];
  return [title, path, kind || (unit ? "number" : "text"), unit];
});

// Names in a path are separated by dots, or by tabs if one of them can contain a dot.
const names = (path) => path.split(path.includes("\t") ? "\t" : ".");
const valueOf = (document, path) => names(path).reduce((value, name) => value?.[name], document);
const shown = (document, [, path, kind, unit]) => KINDS[kind].show(valueOf(document, path), unit);

// The control of a field with its value in the document.
export function control(document, each) {
  const [title, path, kind, unit] = each;
  const value = shown(document, each);
  if (kind === "check") return checkField(title, path, value === "on");
  if (kind === "number") return numberField(title, path, { value });
  if (kind === "choice") return selectField(title, path, [["", "–"], ...unit], value);
  if (/^(list|headers|json)$/.test(kind)) return field(title, make("textarea.low", { name: path, spellcheck: "false", placeholder: kind === "json" && unit, value }), HINTS[kind]);
  return textField(title, path, { value, ...(kind === "secret" && { type: "password", placeholder: "unchanged" }), required: path === "baseURL" }, HINTS[kind]);
}

// The members of the document that the values of a form change, as a merge patch: others are neither sent nor rounded.
export function changes(document, values, fields) {
  const patch = {};
  for (const each of fields) {
    const [, path, kind, unit] = each;
    const text = String(values[path] ?? "");
    if (text === shown(document, each)) continue;
    const [last, ...place] = names(path).reverse();
    place.reduceRight((part, name) => (part[name] ??= {}), patch)[last] = KINDS[kind].read(text, unit, valueOf(document, path), path);
  }
  return patch;
}

// The document after a merge patch (RFC 7396).
function merged(target, patch) {
  if (!isObject(patch)) return patch;
  const result = isObject(target) ? { ...target } : {};
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete result[name];
    else result[name] = merged(result[name], value);
  }
  return result;
}

// Asks for a new origin, or for other settings of this one; `groups` are all or some of their names. The plan of another quota
// tells before which assets would leave.
export async function originForm(page, name, groups = Object.keys(GROUPS)) {
  const { document: origin, revision } = name ? await page.get(`/v1/${originPath(name)}`, {}, { read: "revision" }) : { document: DEFAULTS };
  const fields = Object.fromEntries(groups.map((group) => [group, fieldsOf(group)]));
  const canPlan = name && session.can(PLAN);
  let commit;
  const prepare = async ({ name: chosen = name, path, ...values }, wish) => {
    const patch = changes(origin, values, Object.values(fields).flat());
    if (patch.auth?.type === null) patch.auth = null;
    const place = `/v1/${originPath(chosen)}`;
    if (wish === "test") return { lines: result(await page.send("POST", `${place}/test`, { settings: merged(origin, patch), ...(path && { path }) })) };
    commit = async () => {
      if (name) await page.send("PATCH", place, patch, { "If-Match": revision });
      else await page.send("PUT", place, patch, { "If-None-Match": "*" });
      announce(`The origin ${chosen} was ${name ? "changed" : "mounted"}.`, "good", !name);
      if (name) page.update();
      else location.hash = `/${originPath(chosen)}`;
    };
    const plan = canPlan && (patch.quota || wish) && await policyPlan(page, { originQuotas: { [name]: merged(origin.quota, patch.quota ?? {}) } });
    return plan && (plan.assets || wish) ? { lines: plan.lines, text: "Apply" } : commit();
  };
  const sets = groups.map((group, index) => make("details.group", { open: index === 0 }, make("summary", group), make("div.fields", fields[group].map((each) => control(origin, each))),
    group === "Storage" && canPlan && submitButton("Show the plan", "plan")));
  twoSteps(page, name ? `${groups.length === 1 ? groups[0] : "Settings"} of ${name}` : "New origin", "Save", { prepare, commit: () => commit() },
    !name && textField("Name", "name", { required: true }), sets, session.can("POST /v1/origins/{name}/test") && [textField("Path for the test", "path", { placeholder: "films/one.mp4" }), submitButton("Test", "test")]);
}

// The report of a test.
function result({ outcome, url, detail, timings, ...rest }) {
  const shownFacts = facts();
  const kind = { succeeded: "good", refused: "warn" }[outcome] ?? "bad";
  shownFacts.update({ Result: badge(outcome, kind), ...pick(rest, "status code acceptsRanges contentLength contentType"), ...(timings && pick(timings)) });
  return [make("p.key", url), detail && oneLine(detail), shownFacts.element];
}
