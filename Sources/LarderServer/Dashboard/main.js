// Sign-in, state of the connection, navigation.
import { call, Problem, session } from "./api.js";
import { make, replace, setText } from "./dom.js";
import { live } from "./live.js";
import { button, endMessages, form, submitButton, textField } from "./view.js";
import { assetPage } from "./asset.js";
import { assetsPage } from "./assets.js";
import { fillsPage } from "./fills.js";
import { fleetPage } from "./fleet.js";
import { jobPage, jobsPage } from "./jobs.js";
import { originPage, originsPage } from "./origins.js";
import { overviewPage } from "./overview.js";
import { policyPage } from "./policy.js";
import { problemsPage } from "./problems.js";
import { readersPage } from "./readers.js";
import { requestsPage } from "./requests.js";

// By name: the page and the operations that it needs; then the page of one item.
const PAGES = {
  overview: [[overviewPage, "GET /v1/stats", "GET /v1/stats/history", "GET /v1/stats/live", "GET /v1/stats/top", "GET /v1/policy", "GET /v1/events", "GET /v1/assets/usage"]],
  assets: [[assetsPage, "GET /v1/assets"], [assetPage, "GET /v1/assets/{assetId}", "GET /v1/assets/{assetId}/map"]],
  jobs: [[jobsPage, "GET /v1/jobs"], [jobPage, "GET /v1/jobs/{jobId}", "GET /v1/jobs/{jobId}/items"]],
  fills: [[fillsPage, "GET /v1/fills"]],
  requests: [[requestsPage, "GET /v1/requests"]],
  readers: [[readersPage, "GET /v1/tokens"]],
  fleet: [[fleetPage, "GET /v1/fleet"]],
  policy: [[policyPage, "GET /v1/policy", "GET /v1/policy/curve", "POST /v1/policy/simulations", "GET /v1/stats", "GET /v1/evictions", "GET /v1/evictions/next"]],
  origins: [[originsPage, "GET /v1/origins", "GET /v1/stats"], [originPage, "GET /v1/origins/{name}", "GET /v1/stats"]],
  problems: [[problemsPage, "GET /v1/stats/live"]],
};
const STATES = { connecting: "Connecting…", live: "Live", waiting: "Reconnecting…", off: "Not connected" };
const EXPIRED = "The service no longer accepts the token.";
const RETRY_SECONDS = 2;
const MOST_EVENTS = 300;
const [main, navigation, state, outage, scope, leave, versionText] = ["main", "navigation", "state", "outage", "scope", "leave", "version"].map((id) => document.getElementById(id));
let page = null;

// The page on the screen. Its signal aborts when the user leaves it.
class Page {
  #updates = [];
  leaving = new AbortController();
  signal = this.leaving.signal;
  get = (path, query, more) => call(path, { query, signal: this.signal, ...more });
  send = (method, path, body, headers) => call(path, { method, body, headers });

  // `memory` outlives changes of the query.
  constructor(path, argument, query, memory) {
    Object.assign(this, { path, argument, query, memory });
  }

  // Changes the query in the URL; null removes a value. Back returns to the query before, unless it is replaced.
  set(values, isReplaced) {
    for (const [name, value] of Object.entries(values)) {
      if (value) this.query.set(name, value);
      else this.query.delete(name);
    }
    const query = this.query.size ? `?${this.query}` : "";
    history[isReplaced ? "replaceState" : "pushState"](null, "", `#/${this.path}${query}`);
  }

  // Runs `update` now, after each pause (0: never), and after an outage. `target` shows its errors.
  every(seconds, target, update) {
    let timer, running, isWanted;
    // While an update runs, another one that the user wants follows it.
    const next = (isRepeated) => {
      if (this.signal.aborted) return null;
      if (running) isWanted ||= !isRepeated;
      return (running ??= run(isRepeated).then(goOn));
    };
    const run = async (isRepeated) => {
      clearTimeout(timer);
      try {
        if (!document.hidden && !(isRepeated && target.isPaused)) await update();
        target.show("");
      } catch (error) {
        if (error.status === 401) showSignIn(EXPIRED);
        else if (!this.signal.aborted) target.show(error.message);
      }
    };
    const goOn = () => {
      running = null;
      if (isWanted) return next((isWanted = false));
      if (seconds && !this.signal.aborted) timer = setTimeout(next, seconds * 1000, true);
      return null;
    };
    this.#updates.push(next);
    this.signal.addEventListener("abort", () => clearTimeout(timer));
    queueMicrotask(next);
    return next;
  }

  on(topic, handler) {
    if (session.can("GET /v1/stats/live")) live.subscribe(this.signal, topic, handler);
  }

  // Shows the last events of a topic, newest first: the kept ones and the new ones.
  events(topic, target, show) {
    let [events, timer] = [[]];
    const add = (more) => {
      events = [...more.reverse(), ...events].slice(0, MOST_EVENTS);
      timer ??= setTimeout(() => (timer = show(events)), 250);
    };
    this.every(0, target, async () => {
      const { items, lastId } = await this.get("/v1/events", { topics: topic });
      events = events.filter(({ id }) => id > lastId);
      add(items);
    });
    this.on(topic, (event) => add([event]));
  }

  update() {
    for (const update of this.#updates) update(true);
  }
}

function showPage() {
  const [path, query] = location.hash.slice(2).split("?");
  const [wanted, argument] = path.split("/");
  const names = Object.keys(PAGES).filter((each) => session.can(PAGES[each][0].slice(1)) && (each !== "fleet" || session.hasFleet));
  const name = Object.hasOwn(PAGES, wanted) ? wanted : names[0] ?? "overview";
  const [show, ...needs] = PAGES[name].at(argument ? -1 : 0);
  const title = (text) => text[0].toUpperCase() + text.slice(1);
  page?.leaving.abort();
  page = new Page(path, argument, new URLSearchParams(query), page?.path === path ? page.memory : new Map());
  endMessages();
  document.title = `${title(name)} – Larder`;
  replace(navigation, names.map((each) => make("a", { href: `#/${each}`, "aria-current": each === name && "page" }, title(each))));
  replace(main, session.can(needs) ? show(page) : make("p.empty", `The token ${session.access.token?.id ?? ""} does not permit this page.`));
  window.scrollTo(0, 0);
}

function close() {
  page?.leaving.abort();
  page = null;
  live.stop();
  replace(navigation);
  scope.hidden = leave.hidden = true;
}

function showSignIn(reason = "") {
  close();
  showState("off");
  session.use("");
  const problem = make("p.problem", { role: "alert" }, reason);
  const submit = ({ token = "" }) => {
    session.use(token);
    return open((error) => setText(problem, error.status === 403 ? error.message : "The service does not accept this token."));
  };
  replace(main, form("form.sign-in.panel", submit, make("h1", "Sign in"),
    make("p", "The tabs of this page keep the token until you close them or sign out."),
    textField("Access token", "token", { type: "password" }, "The page shows what the token permits."), problem, make("footer", submitButton("Sign in"))));
  main.querySelector("input").focus();
}

// Opens the session with the current token; `rejected` gets the error of a wrong token.
async function open(rejected) {
  try {
    await session.load();
    setText(versionText, (await call("/version")).version);
  } catch (error) {
    if (error.status < 500) return rejected(error);
    close();
    showState("waiting");
    replace(main, make("p.empty", "This page opens as soon as the service answers."));
    setTimeout(() => open(showRejected), RETRY_SECONDS * 1000);
    return;
  }
  showAccess();
  live.start((name, error) => {
    if (name === "rejected") showRejected(error);
    else if (name === "access") showAccess();
    else if (name === "reload") page?.update();
    else showState(name, error);
  });
}

// A token that expired, or that has no scope any more.
const showRejected = (error) => showSignIn(error.status === 403 ? error.message : EXPIRED);

// Shows the permissions of the token, and the page with the permitted actions.
function showAccess() {
  const { token, assetPrefixes } = session.access;
  scope.hidden = leave.hidden = !session.token;
  setText(scope, token ? `${token.scope}${token.scope === "read" ? " only" : ""}${assetPrefixes ? ", limited" : ""}` : "");
  scope.title = assetPrefixes ? `${token.id}: ${assetPrefixes.join(", ")}` : token?.id ?? "";
  showPage();
}

const outageText = make("span");
outage.append(outageText, button("Connect now", async () => live.retry()));

function showState(name, error) {
  state.dataset.state = name;
  setText(state.lastChild, STATES[name]);
  if (name === "connecting") return;
  setText(outageText, `${error instanceof Problem ? error.message : "The service does not answer."} Reconnecting…`);
  outage.hidden = name !== "waiting";
  document.body.classList.toggle("lost", !outage.hidden);
}

leave.addEventListener("click", () => {
  session.end();
  showSignIn();
});
session.share(() => showSignIn());
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
document.addEventListener("visibilitychange", () => page?.update());
window.addEventListener("hashchange", () => {
  if (!page) return;
  showPage();
  main.focus({ preventScroll: true });
});
open(async (error) => (error.status === 401 && !session.token && (await session.borrow()) ? open(() => showSignIn()) : showSignIn()));
