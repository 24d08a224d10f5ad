// Sign-in, state of the connection, navigation.
import { call, session } from "./api.js";
import { make, replace, setText } from "./dom.js";
import { live } from "./live.js";
import { button, form, submitButton, textField } from "./view.js";
import { assetPage } from "./asset.js";
import { assetsPage } from "./assets.js";
import { fillsPage } from "./fills.js";
import { jobPage, jobsPage } from "./jobs.js";
import { originsPage } from "./origins.js";
import { overviewPage } from "./overview.js";
import { policyPage } from "./policy.js";
import { problemsPage } from "./problems.js";

const PAGES = { overview: [overviewPage], assets: [assetsPage, assetPage], jobs: [jobsPage, jobPage], fills: [fillsPage], policy: [policyPage], origins: [originsPage], problems: [problemsPage] };
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

  constructor(argument, query) {
    Object.assign(this, { argument, query });
  }

  // Runs `update` now, after each pause (0: never), and after an outage. `target` shows its errors.
  every(seconds, target, update) {
    let timer, isRunning;
    const next = async () => {
      if (isRunning || this.signal.aborted) return;
      clearTimeout(timer);
      isRunning = true;
      try {
        if (!document.hidden) await update();
        target.show("");
      } catch (error) {
        if (error.status === 401) showSignIn(EXPIRED);
        else if (!this.signal.aborted) target.show(error.message);
      }
      isRunning = false;
      if (seconds && !this.signal.aborted) timer = setTimeout(next, seconds * 1000);
    };
    this.#updates.push(next);
    this.signal.addEventListener("abort", () => clearTimeout(timer));
    queueMicrotask(next);
    return next;
  }

  on(topic, handler) {
    live.subscribe(this.signal, topic, handler);
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
    for (const update of this.#updates) update();
  }
}

function showPage() {
  const [path, query] = location.hash.slice(2).split("?");
  const [wanted, argument] = path.split("/");
  const name = Object.hasOwn(PAGES, wanted) ? wanted : "overview";
  const title = (text) => text[0].toUpperCase() + text.slice(1);
  page?.leaving.abort();
  page = new Page(argument, new URLSearchParams(query));
  document.title = `${title(name)} – Larder`;
  replace(navigation, Object.keys(PAGES).map((each) => make("a", { href: `#/${each}`, "aria-current": each === name && "page" }, title(each))));
  replace(main, PAGES[name].at(argument ? -1 : 0)(page));
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
    session.use(token.trim());
    return open(() => setText(problem, "The service does not accept this token."));
  };
  replace(main, form("form.sign-in.panel", submit, make("h1", "Sign in"),
    make("p", "This tab keeps the token until you close it or sign out."),
    textField("Access token", "token", { type: "password" }, "Actions require a token with the scope “admin”."), problem, make("footer", submitButton("Sign in"))));
  main.querySelector("input").focus();
}

// Opens the session with the current token; `rejected` gets the error of a wrong token.
async function open(rejected) {
  try {
    const { version, scope: name } = await call("/version");
    session.canChange = name === "admin";
    setText(versionText, version);
    setText(scope, session.canChange ? "admin" : "read only");
  } catch (error) {
    if (error.status < 500) return rejected();
    close();
    showState("waiting");
    replace(main, make("p.empty", "This page opens as soon as the service answers."));
    setTimeout(() => open(() => showSignIn(EXPIRED)), RETRY_SECONDS * 1000);
    return;
  }
  scope.hidden = leave.hidden = !session.token;
  showPage();
  live.start((name) => {
    if (name === "rejected") showSignIn(EXPIRED);
    else if (name === "reload") page?.update();
    else showState(name);
  });
}

outage.append("The service does not answer. Reconnecting…", button("Connect now", async () => live.retry()));

function showState(name) {
  state.dataset.state = name;
  setText(state.lastChild, STATES[name]);
  if (name === "connecting") return;
  outage.hidden = name !== "waiting";
  document.body.classList.toggle("lost", !outage.hidden);
}

leave.addEventListener("click", () => showSignIn());
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
open(() => showSignIn());
