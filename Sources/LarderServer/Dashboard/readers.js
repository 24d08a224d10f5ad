// Readers: tokens with their rights and traffic, new tokens, revocation.
import { session } from "./api.js";
import { make } from "./dom.js";
import { bytes, count, moment, percent } from "./format.js";
import { action, announce, ask, badge, dialog, grid, heading, listPanel, numberField, pair, selectField, textField, words } from "./view.js";

const STATES = { active: "good", expired: "bad", overridden: "warn" };
const REVOKE = "DELETE /v1/tokens/{tokenId}";
const list = (text) => text?.split(/[\s,]+/).filter(Boolean);

export function readersPage(page) {
  const traffic = new Map();
  const figure = (title, content) => [title, "number", ({ id }) => (traffic.has(id) ? content(traffic.get(id)) : "–")];
  const readers = listPanel(page, "Readers", {
    path: "/v1/tokens", key: ({ id, source }) => `${id} ${source}`, empty: "The service requires no token.",
    tools: action("POST /v1/tokens", "New token…", async () => newToken(page, readers), "main"),
    columns: [
      ["Name", "wide", ({ id }) => id], ...words("scope source"), ["State", "", ({ state }) => badge(state, STATES[state])],
      ["Limits", "text", ({ origins, prefixes }) => [...(origins ?? []), ...(prefixes ?? [])].join(", ") || "none"],
      figure("Requests", ({ requests }) => count(requests)), figure("Bytes", (each) => bytes(each.bytes)),
      figure("From the cache", (each) => (each.bytes ? percent(each.bytesFromCache / each.bytes) : "–")),
      ["Expires", "number", ({ expiresAt }) => (expiresAt ? moment(expiresAt) : "never")],
      ["", "", ({ id, source }) => (source === "api" ? action(REVOKE, "Revoke…", async () => revoke(page, readers, id)) : null)],
    ],
  });
  if (session.can("GET /v1/stats")) page.every(5, readers, async () => (await page.get("/v1/stats")).readers.forEach((each) => traffic.set(each.token, each)));
  return [heading("Readers"), grid(readers)];
}

function revoke(page, readers, id) {
  ask(page, `Revoke the token ${id}?`, "Requests with it are refused at once, and its streams end.", "Keep the token", "Revoke", async () => {
    await page.send("DELETE", `/v1/tokens/${encodeURIComponent(id)}`);
    announce(`The token ${id} is revoked.`);
    readers.load();
  });
}

function newToken(page, readers) {
  const create = async ({ id, scope, origins, prefixes, days }) => {
    const end = days && new Date(Date.now() + days * 86_400_000).toISOString();
    const { token } = await page.send("POST", "/v1/tokens", { id, scope, origins: list(origins), prefixes: list(prefixes), expiresAt: end });
    readers.load();
    // The secret stays on the screen until the user closes the dialog.
    dialog(page, `The token ${id}`, "Close", async () => {}, make("p", "Copy the secret now: it is shown once, and nothing keeps it."), make("output.secret", token));
  };
  dialog(page, "New token", "Create", create, pair(textField("Name", "id", { required: true }), selectField("Scope", "scope", ["read", "write", "sign", "admin"])),
    textField("Origins", "origins", {}, "Without origins and prefixes the token permits all content."), textField("Path prefixes, such as /o/media/films/", "prefixes", { value: session.access.assetPrefixes?.join(" ") }),
    numberField("Validity, days", "days", { placeholder: "no end" }));
}
