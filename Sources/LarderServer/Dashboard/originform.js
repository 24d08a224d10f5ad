// The form of an origin: its settings by groups, a test, and the change.
import { session } from "./api.js";
import { make, replace } from "./dom.js";
import { bytes, duration } from "./format.js";
import { announce, badge, checkField, dialog, facts, field, FieldError, numberField, oneLine, selectField, submitButton, textField } from "./view.js";

export const [SAVE_NEW, SAVE] = ["PUT /v1/origins/{name}", "PATCH /v1/origins/{name}"];
const TEST = "POST /v1/origins/{name}/test";
const MIB = 2 ** 20;
const words = (text) => text.split(/[\s,]+/).filter(Boolean);

// Kinds of fields: the text of a value, and the value of a text. An empty text is null, for lists and header fields none.
const KINDS = {
  text: { show: (value) => value ?? "", read: (text) => text || null },
  secret: { show: () => "", read: (text) => text || undefined },
  number: { show: (value, unit = 1) => (value === null || value === undefined ? "" : String(Number((value / unit).toFixed(6)))), read: (text, unit = 1) => (text === "" ? null : unit === 1 ? Number(text) : Math.round(Number(text) * unit)) },
  check: { show: (value) => (value ? "on" : ""), read: (text) => text === "on" },
  list: { show: (value = []) => value.join("\n"), read: words },
  headers: { show: (value = {}) => Object.entries(value).map((pair) => pair.join(": ")).join("\n"), read: readHeaders },
  freshness: { show: (value) => String(value?.ttlSeconds ?? value ?? ""), read: (text) => (text === "" ? null : /^\d/.test(text) ? { ttlSeconds: Number(text) } : text) },
  query: { show: (value = "") => (typeof value === "string" ? value : Object.entries(value).flat(2).join(" ")), read: (text) => readQuery(words(text)) },
};

function readHeaders(text) {
  return Object.fromEntries(text.split("\n").filter((line) => line.trim()).map((line) => {
    const [, name, value] = /^\s*([^:\s]+)\s*:\s*(.*?)\s*$/.exec(line) ?? [];
    if (!name) throw new FieldError("headers", "Each line is a name, a colon and a value.");
    return [name, value];
  }));
}

function readQuery([kind, ...names]) {
  if (!kind) return null;
  return names.length ? { [kind]: names } : kind;
}

// Groups of fields [label, path, kind, unit or options, hint].
const GROUPS = {
  Servers: [
    ["Base URL", "baseURL", "text", null, "The URL before each path."], ["Mirrors, one on each line", "mirrors", "list"], ["Redirects may lead to", "redirectHosts", "list", null, "Hosts, one on each line; without any, all hosts."],
    ["Private addresses are permitted", "allowPrivateAddresses", "check"], ["The certificate is verified", "tls.verify", "check"], ["File with certificate authorities", "tls.caFile", "text"],
  ],
  Credentials: [
    ["Readers need", "access", "text", ["public", "token"]], ["Header fields, one “Name: value” on each line", "headers", "headers", null, "••• keeps a stored value."], ["File with header fields", "credentialsFile", "text"],
    ["Account", "auth.type", "text", ["s3", "oauth2", "sas"]], ["Source of the keys", "auth.credentials", "text", ["static", "file", "environment", "container", "instance", "webIdentity", "assumeRole"]],
    ["Region", "auth.region", "text"], ["Access key ID", "auth.accessKeyId", "text"], ["New secret access key", "auth.secretAccessKey", "secret"], ["New session token", "auth.sessionToken", "secret"], ["Credentials file", "auth.file", "text"],
    ["Grant", "auth.grant", "text", ["clientCredentials", "refreshToken", "jwtBearer"]], ["Token URL", "auth.tokenURL", "text"], ["Scope", "auth.scope", "text"],
  ],
  Freshness: [
    ["Freshness", "freshness", "freshness", null, "respect, explicit, or a number of seconds."], ["Query in keys", "keyQuery", "query", null, "all, none, include a b, or exclude a b."], ["Stale after errors, seconds", "staleIfErrorSeconds", "number"],
    ["Trusted validators", "trustValidators", "text", ["strong", "lengthAndLastModified", "immutable"]], ["Directives of requests count", "requestDirectives", "check"],
  ],
  Transfers: [
    ["Retries", "retries", "number"], ["Transfers at once", "maxTransfers", "number"], ["Maximum rate, MiB/s", "maxBytesPerSecond", "number", MIB], ["Read ahead, MiB", "readAheadBytes", "number", MIB], ["Beyond the range, MiB", "speculativeBytes", "number", MIB],
    ...["connect", "firstByte", "idle", "total", "read"].map((name) => [`Time limit ${name}, seconds`, `timeouts.${name}Seconds`, "number"]), ["Late requests are sent twice", "hedging", "check"],
  ],
  Storage: [
    ["Guaranteed, MiB", "quota.minBytes", "number", MIB], ["At most, MiB", "quota.maxBytes", "number", MIB], ["Longest file, MiB", "storeRules.maxBytes", "number", MIB], ["Never stored types", "storeRules.never", "list"], ["Checksums are verified", "verify", "text", ["first", "suspect", "always"]],
    ["Encrypted", "encrypt", "check"],
  ],
};
const DEFAULTS = { tls: { verify: true } };

const at = (origin, path) => path.split(".").reduce((value, name) => value?.[name], origin);
const shown = (origin, [, path, kind, unit]) => KINDS[kind].show(at(origin, path), Array.isArray(unit) ? undefined : unit ?? undefined);

function control(origin, each) {
  const [label, path, kind, unit, hint] = each;
  const value = shown(origin, each);
  if (kind === "check") return checkField(label, path, value === "on");
  if (kind === "number") return numberField(label, path, { value });
  if (Array.isArray(unit)) return selectField(label, path, [["", "–"], ...unit], value);
  if (kind === "list" || kind === "headers") return field(label, make("textarea.low", { name: path, spellcheck: "false", value }), hint);
  return textField(label, path, { value, ...(kind === "secret" && { type: "password", placeholder: "unchanged" }), required: path === "baseURL" }, hint);
}

// The members that differ from the origin, as a merge patch.
function changes(origin, values, fields) {
  const patch = {};
  for (const each of fields) {
    const [, path, kind, unit] = each;
    const text = String(values[path] ?? "");
    if (text === shown(origin, each)) continue;
    const value = KINDS[kind].read(text, Array.isArray(unit) ? undefined : unit ?? undefined);
    const [first, second] = path.split(".");
    if (second) patch[first] = { ...patch[first], [second]: value };
    else patch[first] = kind === "headers" ? { ...Object.fromEntries(Object.keys(origin.headers ?? {}).map((name) => [name, null])), ...value } : value;
  }
  // An account without a kind is none.
  if (patch.auth && patch.auth.type === null) patch.auth = null;
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
  const { document: origin, revision } = name ? await page.get(`/v1/origins/${encodeURIComponent(name)}`, {}, { read: "revision" }) : { document: DEFAULTS };
  const fields = groups.flatMap((group) => GROUPS[group]);
  const report = make("div", { role: "status" });
  const submit = async ({ name: chosen = name, path, ...values }, isTest) => {
    const patch = changes(origin, values, fields);
    const place = `/v1/origins/${encodeURIComponent(chosen)}`;
    if (isTest) {
      replace(report, make("p.muted", "The upstream is being asked…"));
      replace(report, result(await page.send("POST", `${place}/test`, { settings: merged(origin, patch), ...(path && { path }) })));
      return false;
    }
    if (name) await page.send("PATCH", place, patch, { "If-Match": revision });
    else await page.send("PUT", place, merged({}, patch), { "If-None-Match": "*" });
    announce(`The origin ${chosen} was ${name ? "changed" : "mounted"}.`, "good", !name);
    if (name) page.update();
    else location.hash = `/origins/${encodeURIComponent(chosen)}`;
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
    ...Object.fromEntries(Object.entries(timings ?? {}).map(([name, value]) => [name.replace(/Seconds$/, "").replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`), duration(value)])),
  });
  return [make("p.key", url), detail && oneLine(detail), shownFacts.element];
}
