// Calls of the HTTP API with the token of the user.
const STORAGE = "larder.token";
const ROOT = new URL("../", document.baseURI);
const TIME_LIMIT = 60_000;
const LONGEST_LINE = 4 << 20;

// Tabs of this page tell each other the token. Content from the cache has another, opaque origin, and cannot listen.
const tabs = new BroadcastChannel(`larder ${ROOT}`);
const ANSWER_LIMIT = 400;

export const session = {
  token: sessionStorage.getItem(STORAGE) ?? "",
  access: null,
  operations: new Set(),
  // Whether the service has other nodes.
  hasFleet: false,
  use(token) {
    this.token = token;
    sessionStorage.setItem(STORAGE, token);
  },
  // Gets the token of another open tab. Returns whether there is one.
  async borrow() {
    const found = await new Promise((resolve) => {
      tabs.addEventListener("message", ({ data }) => data.token && resolve(data.token));
      setTimeout(resolve, ANSWER_LIMIT);
      tabs.postMessage({ isWanted: true });
    });
    if (found) this.use(found);
    return Boolean(found);
  },
  // Calls `ended` when the user signs out in another tab.
  share(ended) {
    tabs.addEventListener("message", ({ data }) => {
      if (data.isWanted && this.access && this.token) tabs.postMessage({ token: this.token });
      if (data.isOver && this.token) ended();
    });
  },
  end: () => tabs.postMessage({ isOver: true }),
  // Reads the permissions of the token, and whether there is a fleet. Returns whether one has changed.
  async load(options) {
    const access = await call("/v1/access", options);
    const operations = new Set(access.operations.map(({ method, path }) => `${method} ${path}`));
    const { etcd, peers = [] } = operations.has("GET /v1/fleet") ? await call("/v1/fleet", options) : {};
    const hasFleet = Boolean(etcd) || peers.length > 0;
    const isNew = JSON.stringify(access) !== JSON.stringify(this.access) || hasFleet !== this.hasFleet;
    Object.assign(this, { access, operations, hasFleet });
    return isNew;
  },
  // Whether the token permits all these operations, such as "GET /v1/stats".
  can: (...names) => names.flat().every((name) => session.operations.has(name)),
};

// An error response of the service. Other errors of a call mean that the service does not answer.
export class Problem extends Error {
  constructor(status, { field, detail }) {
    super((field ? `${field}: ` : "") + (detail ?? `The service answered with status ${status}.`));
    this.status = status;
  }
}

async function request(path, { method = "GET", query = {}, body, headers, signal }) {
  const pairs = Object.entries(query).filter(([, value]) => value || value === 0);
  const address = ROOT + path.slice(1) + (pairs.length ? "?" : "") + pairs.map((pair) => pair.map(encodeURIComponent).join("=")).join("&");
  const fields = { Accept: "application/json", "Larder-Dashboard": "1", ...(session.token && { Authorization: `Bearer ${session.token}` }), ...(body && { "Content-Type": "application/json" }), ...headers };
  const response = await fetch(address, { method, headers: fields, body: body && JSON.stringify(body), signal, credentials: "omit", cache: "no-store", redirect: "error" });
  if (!response.ok) throw new Problem(response.status, await response.json().catch(() => ({})));
  return response;
}

// Sends a request and reads its body with a time limit. The caller's signal cancels it earlier.
export async function call(path, { signal: outer, read = "json", ...options } = {}) {
  outer?.throwIfAborted();
  const controller = new AbortController();
  const cancel = () => controller.abort(outer.reason);
  const timer = setTimeout(() => controller.abort(), TIME_LIMIT);
  outer?.addEventListener("abort", cancel);
  try {
    const response = await request(path, { ...options, signal: controller.signal });
    if (response.status === 204) return null;
    return read === "revision" ? { document: await response.json(), revision: response.headers.get("ETag") } : await response[read]();
  } catch (error) {
    throw error instanceof Problem || outer?.aborted ? error : new Error("The service does not answer.");
  } finally {
    clearTimeout(timer);
    outer?.removeEventListener("abort", cancel);
  }
}

// Reads server-sent events until the stream ends. EventSource cannot send the Authorization field.
export async function readEvents(path, { query, lastId, signal, opened, alive, receive }) {
  const headers = { Accept: "text/event-stream", ...(lastId && { "Last-Event-ID": lastId }) };
  const { body } = await request(path, { query, headers, signal });
  opened();
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let [rest, event] = ["", {}];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    alive();
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    if (rest.length > LONGEST_LINE) throw new Error("A line of the event stream is too long.");
    for (const line of lines) {
      const [, name, text] = /^([^:]*):? ?(.*)/.exec(line);
      if (name) event[name] = text;
      else if (line === "") {
        if (event.event) receive(event);
        event = {};
      }
    }
  }
}
