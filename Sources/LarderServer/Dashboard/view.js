// Parts of pages: panels, tables, forms, dialogs, messages.
import { session } from "./api.js";
import { make, replace, setContent, setStyle, setText } from "./dom.js";
import { count, label as fieldLabel, percent, show } from "./format.js";

const messages = document.getElementById("messages");

export const heading = (text, ...more) => make("div.top", make("h1", text), more);
export const grid = (...panels) => make("div.grid", panels.map((each) => each?.element));

export function panel(title, { tools, size = "full" }, ...content) {
  const note = make("span.note", { role: "status" });
  return {
    element: make(`section.panel.${size}`, make("header", make("h2", title), note, tools), make("div.body", content)),
    // Shows the error of an update beside the title; the old content stays.
    show: (error) => setText(note, error),
  };
}

// Columns for fields of the API, named with spaces between them.
export const numbers = (names, kind = "number") => names.split(" ").map((name) => [fieldLabel(name), kind, (item) => show(name, item[name])]);
export const words = (names) => numbers(names, "");

// Columns are [title, class, content of an item]. An update writes only the cells that differ.
export function table(label, columns, key, empty) {
  const rows = new Map();
  const body = make("tbody");
  const message = make("p.empty", "Loading…");
  const cells = (tag, title) => columns.map(([name, kind]) => make(tag, { class: kind, scope: title && "col", "data-title": name }, title && name));
  return {
    element: make("div.table", make("table", { "aria-label": label }, make("thead", make("tr", cells("th", true))), body), message),
    update(items) {
      const wanted = new Map(items.map((item) => [key(item), item]));
      for (const [name, row] of rows) if (!wanted.has(name) && rows.delete(name)) row.remove();
      [...wanted].forEach(([name, item], index) => {
        const row = rows.get(name) ?? make("tr", cells("td"));
        rows.set(name, row);
        columns.forEach(([, , content], column) => setContent(row.children[column], content(item)));
        if (body.children[index] !== row) body.insertBefore(row, body.children[index] ?? null);
      });
      setText(message, empty);
      message.hidden = items.length > 0;
    },
  };
}

// A panel with a list of the API, one page at a time.
export function listPanel(page, title, { path, query, columns, key, empty, seconds = 10, above, ...options }) {
  const shown = table(title, columns, key, empty);
  const label = make("span.muted", { role: "status" }, " ");
  const cursors = [null];
  let next;
  const turn = (text, move) => button(text, async () => list.load(move()));
  const [back, forth] = [turn("Previous", () => cursors.pop()), turn("Next", () => cursors.push(next))];
  const list = panel(title, options, above, shown.element, make("div.pager", label, back, forth));
  list.items = [];
  list.isFirst = () => cursors.length === 1;
  list.put = (item) => shown.update(list.items = list.items.map((other) => (key(other) === key(item) ? item : other)));
  list.load = page.every(seconds, list, async () => {
    const answer = await page.get(path, { limit: 50, cursor: cursors.at(-1), ...query?.() });
    shown.update(list.items = answer.items);
    next = answer.nextCursor;
    back.disabled = list.isFirst();
    forth.disabled = next === null;
    const sum = answer.total === undefined ? "" : ` of ${count(answer.total)}`;
    setText(label, `${count(answer.items.length)}${sum}${list.isFirst() ? "" : `, page ${cursors.length}`}`);
  });
  return list;
}

// Names and values, updated in place.
export function facts() {
  const element = make("dl.facts");
  const update = (values) => Object.entries(values).forEach(([name, value], index) => {
    if (!element.children[index]) element.append(make("div", make("dt", name), make("dd")));
    setContent(element.children[index].lastChild, value ?? "–");
  });
  return { element, update };
}

const KINDS = { succeeded: "good", ready: "good", running: "info", pinned: "info", failed: "bad", timedOut: "bad", error: "bad", "not ready": "bad", paused: "warn", waiting: "warn", warning: "warn" };

export const badge = (text, kind = KINDS[text] ?? "") => make("span", { class: `badge ${kind}` }, text);

// A bar; `share` is 0 to 1.
export const meter = (share, kind = "", text = percent(share)) =>
  make("span.share", make("span", { class: `meter ${kind}` }, setStyle(make("i"), "width", `${Math.min(1, share || 0) * 100}%`)), text);

export const link = (hash, text) => make("a", { href: hash }, text);
export const keyLink = (hash, text) => make("a.key", { href: hash, title: text }, text);
export const assetLink = ({ assetId, key }) => keyLink(`#/assets/${assetId}`, key ?? assetId);

// Runs the operation of a control once at a time.
async function run(control, operation) {
  if (control.ariaBusy) return;
  control.ariaBusy = "true";
  try {
    await operation();
  } catch (error) {
    if (error.name !== "AbortError") announce(error.message, "bad");
  }
  control.ariaBusy = null;
}

export const button = (text, operation, kind) => make("button", { type: "button", class: kind, onclick: (event) => run(event.currentTarget, operation) }, text);

// A button for one or several operations of the API, such as "POST /v1/jobs"; null unless the token permits them.
export const action = (needs, ...parts) => (session.can(needs) ? button(...parts) : null);
export const submitButton = (text) => make("button.main", { type: "submit" }, text);

export function announce(text, kind = "good") {
  const item = make(`p.${kind}`, text, make("button.quiet", { type: "button", "aria-label": "Close the message", onclick: () => item.remove() }, "×"));
  messages.append(item);
  setTimeout(() => item.remove(), 10_000);
}

let controls = 0;

export function field(label, control, hint) {
  control.id = `control${(controls += 1)}`;
  return make("div.field", make("label", { for: control.id }, label), control, hint && make("small", hint));
}

export const textField = (label, name, attributes, hint) => field(label, make("input", { name, autocomplete: "off", spellcheck: "false", ...attributes }), hint);

// `options` are texts or pairs [value, text].
export function selectField(label, name, options, value = "") {
  const control = make("select", { name }, options.map((option) => make("option", { value: [option].flat()[0] }, [option].flat().at(-1))));
  if (value) control.value = value;
  return field(label, control);
}

// Accepts digits with a decimal point. The form gets a number.
export const numberField = (label, name, { least = 0, ...attributes } = {}) => textField(label, name, { inputmode: "decimal", "data-least": least, ...attributes });

// The prefixes of a limited token; null without limits.
export function withinField(value) {
  const { assetPrefixes } = session.access;
  return assetPrefixes && selectField("Within the limits", "within", assetPrefixes, value ?? assetPrefixes[0]);
}

export const checkField = (label, name, checked) => make("label.check", make("input", { type: "checkbox", name, checked }), label);
export const pair = (...fields) => make("div.pair", fields);

// A value that a field does not accept, with a sentence for the user.
export class FieldError extends Error {
  constructor(name, message) {
    super(message);
    this.field = name;
  }
}

// The number of a field. Other texts are refused, so that no value is dropped silently.
function readNumber(name, value, least) {
  const number = /^\d+(\.\d+)?$/.test(value) ? Number(value) : NaN;
  if (Number.isFinite(number) && number >= least) return number;
  throw new FieldError(name, `A number of at least ${least} is expected here, with a decimal point, such as 2.5.`);
}

function readValues(element) {
  const values = Object.fromEntries([...new FormData(element)].map(([name, value]) => [name, value.trim()]).filter(([, value]) => value !== ""));
  for (const { name, dataset } of element.querySelectorAll("[data-least]")) if (name in values) values[name] = readNumber(name, values[name], Number(dataset.least));
  return values;
}

// Shows the error at the named field, and focuses it.
function refuse(element, { field: name, message }) {
  const control = element.elements[name];
  control.after(make("p.problem.refused", { role: "alert" }, message));
  control.ariaInvalid = "true";
  control.focus();
}

// `submit` gets the values by name, without empty ones. The browser sends nothing.
export function form(name, submit, ...content) {
  const send = (event) => {
    event.preventDefault();
    const element = event.target;
    for (const each of element.querySelectorAll(".refused")) each.remove();
    for (const control of element.elements) control.ariaInvalid = null;
    run(event.submitter, async () => {
      try {
        await submit(readValues(element));
      } catch (error) {
        if (!(error instanceof FieldError)) throw error;
        refuse(element, error);
      }
    });
  };
  return make(name, { onsubmit: send }, content);
}

// A form whose values become the query of a page.
export const filters = (name, ...fields) => form("form.filters", async (chosen) => { location.hash = `/${name}?${new URLSearchParams(chosen)}`; }, fields, submitButton("Search"));

function modal(page, title, ...content) {
  const element = make("dialog", { "aria-label": title, onclose: () => element.remove() }, content);
  page.signal.addEventListener("abort", () => element.close());
  document.body.append(element);
  element.showModal();
  return element;
}

// A modal dialog. It closes after `submit(values)`, unless that returns false or throws.
export function dialog(page, title, confirm, submit, ...content) {
  const problem = make("p.problem", { role: "alert" });
  const close = () => element.close();
  const body = form("form", async (values) => {
    setText(problem, "");
    await submit(values).then((result) => result ?? close(), (error) => {
      if (error instanceof FieldError) throw error;
      setText(problem, error.message);
    });
  }, make("h2", title), content, problem, make("footer", button("Cancel", async () => close()), submitButton(confirm)));
  const element = modal(page, title, body);
  return { element, body, problem, close };
}

// Asks before `operation`. The focus is on the other button, so that a repeated Enter changes nothing.
export function ask(page, question, detail, keep, confirm, operation) {
  const problem = make("p.problem", { role: "alert" });
  const close = async () => element.close();
  const apply = button(confirm, () => operation().then(close, (error) => setText(problem, error.message)), "commit");
  const element = modal(page, question, make("div.ask", make("h2", question), make("p", detail), problem, make("footer", button(keep, close), apply)));
}
