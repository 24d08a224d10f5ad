// Forms of settings: fields of a document and their changes as a merge patch; the form of an origin with a test.
import { session } from "./api.js";
import { make, replace } from "./dom.js";
import { bytes, label, originPath, pick } from "./format.js";
import { announce, badge, checkField, dialog, facts, field, FieldError, numberField, oneLine, selectField, submitButton, textField } from "./view.js";

export const [SAVE_NEW, SAVE] = ["PUT /v1/origins/{name}", "PATCH /v1/origins/{name}"];
const TEST = "POST /v1/origins/{name}/test";
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
};

// A field that is not in the text is removed.
function readHeaders(text, _, { headers = {} }) {
  const removed = Object.fromEntries(Object.keys(headers).map((name) => [name, null]));
  return Object.assign(removed, Object.fromEntries(text.split("\n").filter((line) => line.trim()).map((line) => {
    const [, name, value] = /^\s*([^:\s]+)\s*:\s*(.*?)\s*$/.exec(line) ?? [];
    if (!name) throw new FieldError("headers", "Each line is a name, a colon and a value.");
    return [name, value];
  })));
}

// Groups of fields [label, path, kind, unit or options, hint].
const GROUPS = {
  Servers: [
    ["Base URL", "baseURL", "text"], ["Mirrors, one on each line", "mirrors", "list"],
    ["Private addresses are permitted", "allowPrivateAddresses", "check"], ["The certificate is verified", "tls.verify", "check"],
  ],
  Credentials: [
    ["Readers need", "access", "choice", ["public", "token"]], ["Header fields, one “Name: value” on each line, ••• keeps a value", "headers", "headers"], ["File with header fields", "credentialsFile", "text"],
    ["Account", "auth.type", "choice", ["s3", "oauth2", "sas"]], ["Source of the keys", "auth.credentials", "choice", ["static", "file", "environment", "container", "instance", "webIdentity", "assumeRole"]], ["Access key ID", "auth.accessKeyId", "text"],
    ["New secret access key", "auth.secretAccessKey", "secret"], ["New session token", "auth.sessionToken", "secret"], ["Grant", "auth.grant", "choice", ["clientCredentials", "refreshToken", "jwtBearer"]],
    ...["file", "region", "tokenURL", "scope"].map((name) => [`Account: ${label(name).toLowerCase()}`, `auth.${name}`, "text"]),
  ],
  Freshness: [
    ["Freshness", "freshness", "freshness", null, "respect, explicit, or seconds."], ["Stale after errors, seconds", "staleIfErrorSeconds", "number"],
  ],
  Transfers: [
    ["Retries", "retries", "number"], ["Transfers at once", "maxTransfers", "number"], ["Maximum rate, MiB/s", "maxBytesPerSecond", "number", MIB], ["Read ahead, MiB", "readAheadBytes", "number", MIB],
    ...["connect", "firstByte", "idle", "total", "read"].map((name) => [`Time limit: ${label(name).toLowerCase()}, seconds`, `timeouts.${name}Seconds`, "number"]),
  ],
  Storage: [
    ["Guaranteed, MiB", "quota.minBytes", "number", MIB], ["At most, MiB", "quota.maxBytes", "number", MIB], ["Longest file, MiB", "storeRules.maxBytes", "number", MIB], ["Checksums are verified", "verify", "choice", ["first", "suspect", "always"]], ["Encrypted", "encrypt", "check"],
  ],
};
const DEFAULTS = { tls: { verify: true } };

// Names in a path are separated by dots, or by tabs if one of them can contain a dot.
const names = (path) => path.split(path.includes("\t") ? "\t" : ".");
const shown = (document, [, path, kind, unit]) => KINDS[kind].show(names(path).reduce((value, name) => value?.[name], document), unit);

// The control of a field with its value in the document.
export function control(document, each) {
  const [title, path, kind, unit, hint] = each;
  const value = shown(document, each);
  if (kind === "check") return checkField(title, path, value === "on");
  if (kind === "number") return numberField(title, path, { value });
  if (kind === "choice") return selectField(title, path, [["", "–"], ...unit], value);
  if (kind === "list" || kind === "headers") return field(title, make("textarea.low", { name: path, spellcheck: "false", value }), hint);
  return textField(title, path, { value, ...(kind === "secret" && { type: "password", placeholder: "unchanged" }), required: path === "baseURL" }, hint);
}

// The members of the document that the values of a form change, as a merge patch: others are neither sent nor rounded.
export function changes(document, values, fields) {
  const patch = {};
  for (const each of fields) {
    const [, path, kind, unit] = each;
    const text = String(values[path] ?? "");
    if (text === shown(document, each)) continue;
    const [last, ...place] = names(path).reverse();
    place.reduceRight((part, name) => (part[name] ??= {}), patch)[last] = KINDS[kind].read(text, unit, document);
  }
  return patch;
}

// The document after a merge patch (RFC 7396).
function merged(target, patch) {
  if (patch?.constructor !== Object) return patch;
  const result = target?.constructor === Object ? { ...target } : {};
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete result[name];
    else result[name] = merged(result[name], value);
  }
  return result;
}

// Asks for a new origin, or for other settings of this one; `groups` are all or some of their names.
export async function originForm(page, name, groups = Object.keys(GROUPS)) {
  const { document: origin, revision } = name ? await page.get(`/v1/${originPath(name)}`, {}, { read: "revision" }) : { document: DEFAULTS };
  const fields = groups.flatMap((group) => GROUPS[group]);
  const report = make("div", { role: "status" });
  const submit = async ({ name: chosen = name, path, ...values }, isTest) => {
    const patch = changes(origin, values, fields);
    if (patch.auth?.type === null) patch.auth = null;
    const place = `/v1/${originPath(chosen)}`;
    if (isTest) {
      replace(report, make("p.muted", "The upstream is being asked…"));
      replace(report, result(await page.send("POST", `${place}/test`, { settings: merged(origin, patch), ...(path && { path }) })));
      return false;
    }
    if (name) await page.send("PATCH", place, patch, { "If-Match": revision });
    else await page.send("PUT", place, merged({}, patch), { "If-None-Match": "*" });
    announce(`The origin ${chosen} was ${name ? "changed" : "mounted"}.`, "good", !name);
    if (name) page.update();
    else location.hash = `/${originPath(chosen)}`;
    return undefined;
  };
  const sets = groups.map((group, index) => make("details.group", { open: index === 0 }, make("summary", group), make("div.fields", GROUPS[group].map((each) => control(origin, each)))));
  const test = session.can(TEST) && [textField("Path for the test", "path", { placeholder: "films/one.mp4" }), report];
  dialog(page, name ? `${groups.length === 1 ? groups[0] : "Settings"} of ${name}` : "New origin", "Save", submit,
    !name && textField("Name", "name", { required: true }), sets, test, session.can(TEST) && submitButton("Test", "test"));
}

// The report of a test.
function result({ outcome, url, status, code, detail, acceptsRanges, contentLength, contentType, timings }) {
  const shownFacts = facts();
  const kind = { succeeded: "good", refused: "warn" }[outcome] ?? "bad";
  shownFacts.update({
    Result: badge(outcome, kind), Status: status, Code: code, Ranges: acceptsRanges === true ? "yes" : acceptsRanges === false ? "no" : "unknown", Length: bytes(contentLength), Type: contentType,
    ...(timings && pick(timings)),
  });
  return [make("p.key", url), detail && oneLine(detail), shownFacts.element];
}
