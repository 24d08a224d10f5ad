// The event stream: seconds of statistics, jobs, fills, evictions and health, with reconnection.
import { call, readEvents, session } from "./api.js";

const RING = 900;
const LONGEST_SILENCE = 25_000;
const LONGEST_PAUSE = 15;
const POLL_SECONDS = 5;
const STREAM = ["GET /v1/stats/live", "GET /v1/events"];

const isRefusal = (error) => error?.status === 401 || error?.status === 403;

class LiveFeed {
  // Buckets of /v1/stats/live, oldest first, with `time` in milliseconds.
  seconds = [];
  #subscribers = new Set();
  #report;
  #run = new AbortController();
  #connection = new AbortController();
  #lastId;

  retry = () => {};

  constructor() {
    document.addEventListener("visibilitychange", () => (document.hidden ? this.#connection.abort("hidden") : this.retry()));
  }

  // Calls `handler` for each event of the topic, until the signal aborts.
  subscribe(signal, topic, handler) {
    const subscriber = { topic, handler };
    const before = this.#topics();
    this.#subscribers.add(subscriber);
    signal.addEventListener("abort", () => this.#subscribers.delete(subscriber));
    if (this.#topics() !== before) this.#connection.abort("topics");
  }

  // Reports connecting, live, waiting, reload (lists must be read again), access (the permissions have changed) and
  // rejected.
  start(report) {
    this.stop();
    this.#report = report;
    this.#run = new AbortController();
    this.#loop(this.#run.signal);
  }

  stop() {
    this.#run.abort();
    this.#connection.abort();
    this.retry();
    this.seconds = [];
    this.#lastId = undefined;
  }

  #topics() {
    return [...new Set(["stats", ...[...this.#subscribers].map(({ topic }) => topic)])].sort().join();
  }

  async #loop(signal) {
    let [pause, wasLost] = [1, false];
    const opened = () => {
      pause = 1;
      this.#report("live");
      if (wasLost) this.#report("reload");
      wasLost = false;
    };
    while (!signal.aborted) {
      this.#connection = new AbortController();
      const error = await this.#connect(this.#connection, opened).catch((reason) => reason);
      const { reason } = this.#connection.signal;
      if (signal.aborted || reason === "topics") continue;
      if (isRefusal(error)) {
        const refusal = await this.#loadAccess(signal).catch((cause) => cause);
        if (isRefusal(refusal)) return this.#report("rejected", refusal);
      }
      if (reason === "hidden") {
        if (document.hidden) await this.#sleep();
        continue;
      }
      if (error === POLL_SECONDS) continue;
      wasLost = true;
      this.#report("waiting", error);
      await this.#sleep(pause * (0.9 + 0.2 * Math.random()));
      if (!signal.aborted) this.#report("connecting");
      pause = Math.min(pause * 2, LONGEST_PAUSE);
    }
  }

  async #loadAccess(signal) {
    if (await session.load({ signal })) this.#report("access");
  }

  async #connect(connection, opened) {
    const { signal } = connection;
    await this.#loadAccess(signal);
    if (!session.can(STREAM)) {
      opened();
      await this.#sleep(POLL_SECONDS);
      return POLL_SECONDS;
    }
    const { seconds } = await call("/v1/stats/live", { query: { windowSeconds: RING }, signal });
    for (const second of seconds) this.#add(second);
    let timer;
    const alive = () => {
      clearTimeout(timer);
      timer = setTimeout(() => connection.abort("silent"), LONGEST_SILENCE);
    };
    alive();
    const query = { topics: this.#topics() };
    await readEvents("/v1/events", { query, lastId: this.#lastId, signal, opened, alive, receive: (event) => this.#receive(event) }).finally(() => clearTimeout(timer));
  }

  #receive({ id, event: topic, data }) {
    this.#lastId = id ?? this.#lastId;
    if (topic === "reset") return this.#report("reload");
    const event = JSON.parse(data);
    if (topic === "stats") this.#add(event.second);
    for (const subscriber of [...this.#subscribers]) if (subscriber.topic === topic) subscriber.handler(event);
  }

  #add(second) {
    const time = Date.parse(second.at);
    if (time <= this.seconds.at(-1)?.time) return;
    this.seconds.push({ ...second, time });
    while (this.seconds[0].time <= time - RING * 1000) this.seconds.shift();
  }

  // Waits for the time, or for `retry`.
  #sleep(seconds) {
    return new Promise((resolve) => {
      const timer = seconds && setTimeout(resolve, seconds * 1000);
      this.retry = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

export const live = new LiveFeed();
