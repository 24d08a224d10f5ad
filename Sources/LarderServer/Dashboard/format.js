// Numbers, sizes and times as text.
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
const LABELS = { __proto__: null, at: "Time", bytesPerSecond: "Rate", maxBytesPerSecond: "Rate limit", etaSeconds: "Remaining", etag: "ETag" };
const WORDS = { __proto__: null, auth: "account", url: "URL", cmcd: "CMCD", id: "ID", tls: "TLS", sts: "STS", min: "minimum", max: "maximum" };
const guard = (format) => (value) => (value === null || value === undefined || Number.isNaN(value) ? "–" : format(value));

function digits(value, significant) {
  if (!significant || value >= 100) return String(Math.round(value));
  return String(Number(value.toFixed(significant - (value >= 10 ? 2 : 1))));
}

export const bytes = guard((value) => {
  let [rest, unit] = [value, 0];
  for (; rest >= 1023.5 && unit < UNITS.length - 1; unit += 1) rest /= 1024;
  return `${digits(rest, unit && 3)} ${UNITS[unit]}`;
});
export const rate = guard((value) => `${bytes(value)}/s`);
export const count = guard((value) => Math.round(value).toLocaleString("en"));
export const some = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
export const percent = guard((share) => (share > 0.999 && share < 1 ? "99.9 %" : `${digits(share * 100, 3)} %`));

export const duration = guard((seconds) => {
  if (seconds < 0.001) return `${digits(seconds * 1e6, 3)} µs`;
  if (seconds < 1) return `${digits(seconds * 1000, 3)} ms`;
  if (seconds < 60) return `${digits(seconds, 3)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
  return seconds < 86_400 ? `${digits(seconds / 3600, 3)} h` : `${digits(seconds / 86_400, 3)} d`;
});

// A position in a media file, for example 1:02:03.
export function position(seconds) {
  const parts = [seconds / 3600, (seconds % 3600) / 60, seconds % 60].map((part) => String(Math.floor(part)).padStart(2, "0"));
  return (seconds < 3600 ? parts.slice(1) : parts).join(":");
}

// The text of a key without percent-encoding, unless that hides characters.
export function decoded(text) {
  try {
    const plain = decodeURIComponent(text);
    return /[\p{Cc}\p{Cf}]/u.test(plain) ? text : plain;
  } catch {
    return text;
  }
}

export const originPath = (name) => `origins/${encodeURIComponent(name)}`;

// A time on an axis of a day.
export const dated = (time) => new Date(time).toLocaleString("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
export const clock = (time) => new Date(time).toLocaleTimeString("en-GB");
export const moment = guard((text) => {
  const date = new Date(text);
  return `${date.toDateString() === new Date().toDateString() ? "" : `${date.toLocaleDateString("en-CA")} `}${clock(date)}`;
});
// The time that many seconds ago.
export const before = (seconds) => new Date(Date.now() - seconds * 1000).toISOString();
export const ago = guard((text) => {
  const seconds = Math.floor((Date.now() - Date.parse(text)) / 1000);
  return seconds < 1 ? "now" : `${duration(seconds).split(" ", 2).join(" ")} ago`;
});

// The value of a field of the API. Its name states the unit.
export function show(name, value) {
  if (/(^a|A)t$/.test(name)) return moment(value);
  if (Array.isArray(value)) return value.map((each) => show("", each)).join(", ") || "none";
  if (value && typeof value === "object") return Object.entries(value).map(([key, each]) => `${label(key)} ${show(key, each)}`).join(", ") || "none";
  if (typeof value !== "number") return String(value ?? "–");
  if (/PerSecond$/.test(name)) return rate(value);
  if (/bytes|length$/i.test(name)) return bytes(value);
  if (/Seconds$/i.test(name)) return duration(value);
  return /(Ratio|Watermark)$/.test(name) ? percent(value) : count(value);
}

export function label(name) {
  const words = name.replace(/(Seconds|At)$|(?<!^)Bytes$/, "").replace(/[A-Z]+/g, (letters) => ` ${letters.toLowerCase()}`).replace(/[a-z]+/g, (word) => WORDS[word] ?? word);
  return LABELS[name] ?? words[0].toUpperCase() + words.slice(1);
}

// Fields of a document as {label: text}; without names all of them.
export const pick = (document, names) => Object.fromEntries((names?.split(" ") ?? Object.keys(document)).map((name) => [label(name), show(name, document[name])]));
