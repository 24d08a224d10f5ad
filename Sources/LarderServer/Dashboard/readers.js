// Readers: tokens with their rights and traffic, new tokens, revocation.
import { session } from "./api.js";
import { make } from "./dom.js";
import { moment } from "./format.js";
import { action, announce, badge, dialog, grid, heading, link, listPanel, numberField, numbers, pair, proof, proofField, scan, selectField, textField, words } from "./view.js";

const STATES = { active: "good", expired: "bad", overridden: "warn" };
const list = (text) => text?.split(/[\s,]+/).filter(Boolean);

export function readersPage(page) {
  const traffic = new Map();
  // The rate is that between two reads of the counters.
  const readTraffic = async () => {
    const time = performance.now();
    for (const each of (await page.get("/v1/stats")).readers) {
      const last = traffic.get(each.token);
      traffic.set(each.token, { ...each, time, bytesPerSecond: last && ((each.bytes - last.bytes) * 1000) / (time - last.time) });
    }
  };
  const readers = listPanel(page, "Readers", {
    read: async () => {
      const [items] = await Promise.all([scan(page, "/v1/tokens", {}, () => true, 10_000), session.can("GET /v1/stats") && readTraffic()]);
      return items.map((item) => ({ ...traffic.get(item.id), ...item }));
    },
    seconds: 5, find: ({ id, origins, prefixes }) => [id, ...(origins ?? []), ...(prefixes ?? [])].join(" "), key: ({ id, source }) => `${id} ${source}`, empty: "The service requires no token.",
    tools: action("POST /v1/tokens", "New token…", async () => newToken(page, readers), "main"),
    columns: [
      ["Name", "name", ({ id }) => (session.can("GET /v1/requests") ? link(`#/requests?token=${encodeURIComponent(id)}`, id) : id), "id"], ...words("scope source"), ["State", "", ({ state }) => badge(state, STATES[state]), "state"],
      ["Limits", "text", ({ origins, prefixes }) => [...(origins ?? []), ...(prefixes ?? [])].join(", ") || "none"],
      ...numbers("bytesPerSecond bytes bytesFromCache requests errors"),
      ["Expires", "number", ({ expiresAt }) => (expiresAt ? moment(expiresAt) : "never"), "expiresAt"],
      ["", "", ({ id, source }) => (source === "api" ? action("DELETE /v1/tokens/{tokenId}", "Revoke…", async () => revoke(page, readers, id)) : null)],
    ],
  });
  return [heading("Readers"), grid(readers)];
}

function revoke(page, readers, id) {
  dialog(page, `Revoke the token ${id}?`, "Revoke", async (values) => {
    await page.send("DELETE", `/v1/tokens/${encodeURIComponent(id)}`, undefined, proof(values));
    announce(`The token ${id} is revoked.`);
    readers.load();
  }, make("p", "Requests with it are refused at once, and its streams end."), proofField());
}

function newToken(page, readers) {
  const create = async ({ id, scope, origins, prefixes, days, ...values }) => {
    const end = days && new Date(Date.now() + days * 86_400_000).toISOString();
    const { token } = await page.send("POST", "/v1/tokens", { id, scope, origins: list(origins), prefixes: list(prefixes), expiresAt: end }, proof(values));
    readers.load();
    // The secret stays on the screen until the user closes the dialog.
    dialog(page, `The token ${id}`, "Close", async () => {}, make("p", "Copy the secret now: it is shown once, and nothing keeps it."), make("output.secret", token));
  };
  dialog(page, "New token", "Create", create, pair(textField("Name", "id", { required: true }), selectField("Scope", "scope", ["read", "write", "sign", "admin"])),
    textField("Origins", "origins", {}, "Without origins and prefixes the token permits all content."), textField("Path prefixes, such as /o/media/films/", "prefixes", { value: session.access.assetPrefixes?.join(" ") }),
    numberField("Validity, days", "days", { placeholder: "no end" }), proofField());
}
