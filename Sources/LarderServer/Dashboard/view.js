// Parts of pages: panels, tables, forms, dialogs, messages.
import { session } from "./api.js";
import { make, setContent, setStyle, setText } from "./dom.js";
import { count, decoded, label as fieldLabel, percent, show, some } from "./format.js";

const messages = document.getElementById("messages");
const [SHORT, TAIL] = [34, 22];

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

// Columns for fields of the API, named with spaces between them. They sort by the field.
export const numbers = (names, kind = "number") => names.split(" ").map((name) => [fieldLabel(name), kind, (item) => show(name, item[name]), name]);
export const words = (names) => numbers(names, "");

// Columns are [title, class, content of an item, sort]; a click on the title of one with `sort` calls `turn(title)`. An update writes only the
// cells that differ.
export function table(label, columns, key, empty, turn) {
  const rows = new Map();
  const body = make("tbody");
  const message = make("p.empty", "Loading…");
  const heads = columns.map(([name, kind, , sort, head]) => make("th", { class: kind, scope: "col" }, head ?? (turn && sort ? make("button.sort", { type: "button", onclick: () => turn(name) }, name) : name)));
  const cells = () => columns.map(([name, kind]) => make("td", { class: kind, "data-title": name }));
  return {
    element: make("div.table", make("table", { "aria-label": label }, make("thead", make("tr", heads)), body), message),
    update(items) {
      const wanted = new Map(items.map((item) => [key(item), item]));
      for (const [name, row] of rows) if (!wanted.has(name) && rows.delete(name)) row.remove();
      [...wanted].forEach(([name, item], index) => {
        const row = rows.get(name) ?? make("tr", cells());
        rows.set(name, row);
        columns.forEach(([, , content], column) => setContent(row.children[column], content(item)));
        if (body.children[index] !== row) body.insertBefore(row, body.children[index] ?? null);
      });
      setText(message, empty);
      message.hidden = items.length > 0;
    },
    // Marks the column that the rows are sorted by.
    mark: (title, order) => columns.forEach(([name], index) => { heads[index].ariaSort = title && name === title ? `${order}ending` : null; }),
  };
}

const [PAGE, MOST_PAGES] = [50, 100];
const compare = (left, right) => (typeof left === "number" ? left - right : String(left).localeCompare(right, "en", { numeric: true }));

// Items without a value come last.
function sorted(items, sort, order) {
  const value = (item) => (typeof sort === "function" ? sort(item) : item[sort] ?? item[`${sort}At`]) ?? null;
  const known = items.filter((item) => value(item) !== null).sort((left, right) => compare(value(left), value(right)));
  return [...(order === "asc" ? known : known.reverse()), ...items.filter((item) => value(item) === null)];
}

// A panel with a list: pages of a list of the API (`path`, `query`), or of all items that `read` returns. Order, page and
// search are in the URL, with the prefix `name`. `find` is the text of an item for the search among all items. Unless the API
// sorts (`isSorted`), its lists are sorted by page. `actions` are [text, needs, function of the selected items, class].
export function listPanel(page, title, { path, query, read, find, columns, key, empty, name = "", isSorted, actions = [], live, seconds = 10, above, tools, size, told }) {
  const param = (text) => (name ? `${name}-${text}` : text);
  const get = (text) => page.query.get(param(text));
  const set = (values, isReplaced) => page.set(Object.fromEntries(Object.entries(values).map(([text, value]) => [param(text), value])), isReplaced);
  const [chosen, state] = [new Set(), make("span.muted", { role: "status" }, " ")];
  const usable = actions.filter(([, needs]) => session.can(needs));
  const all = make("input", { type: "checkbox", "aria-label": "Select all rows", onchange: () => choose(all.checked ? rows : []) });
  const box = (item) => make("input", { type: "checkbox", "aria-label": "Select the row", onchange: ({ target }) => { chosen[target.checked ? "add" : "delete"](key(item)); showChosen(); } });
  const column = (wanted) => columns.find(([text]) => text === wanted) ?? [];
  const turn = (wanted) => {
    const isDown = get("sort") === wanted ? get("order") === "asc" : /number/.test(column(wanted)[1]);
    set({ sort: wanted, order: isDown ? "desc" : "asc", page: null, cursor: null });
    return refresh();
  };
  const shown = table(title, [...(usable.length ? [["", "pick", box, null, all]] : []), ...columns], key, empty, turn);
  const toolbar = make("div.chosen", { hidden: true }, make("span"), usable.map(([text, , operation, kind]) => button(text, () => operation(rows.filter((item) => chosen.has(key(item)))), kind)));
  const number = () => Number(get("page") ?? 1);
  const cursors = page.memory;
  const place = (at) => [name, at, ...[...page.query].filter(([text]) => !/page$|cursor$/.test(text))].join(" ");
  const go = (at, cursor) => { set({ page: at > 1 ? at : null, cursor: at > 1 ? cursor : null }); return refresh(); };
  const refresh = () => (read ? render() : list.load());
  const back = button("Previous", async () => { const before = cursors.get(place(number() - 1)); return go(before || read ? number() - 1 : 1, before); });
  const forth = button("Next", async () => go(number() + 1, next));
  const pause = live && button("Pause", async () => { setText(pause, (list.isPaused = !list.isPaused) ? "Continue" : "Pause"); if (!list.isPaused) list.load(); });
  const search = find && make("input", { type: "search", "aria-label": `Search ${title.toLowerCase()}`, placeholder: "Search", value: get("find"), oninput: ({ target }) => { set({ find: target.value, page: null }, true); render(); } });
  const list = panel(title, { tools: [search, pause, tools], size }, above, toolbar, shown.element, make("div.pager", state, back, forth));
  let [rows, next, total] = [[], null];

  function choose(items) {
    chosen.clear();
    items.forEach((item) => chosen.add(key(item)));
    for (const each of shown.element.querySelectorAll("td.pick input")) each.checked = items.length > 0;
    showChosen();
  }
  function showChosen() {
    for (const each of chosen) if (!rows.some((item) => key(item) === each)) chosen.delete(each);
    toolbar.hidden = !chosen.size;
    setText(toolbar.firstChild, `${count(chosen.size)} selected`);
    all.checked = chosen.size > 0 && chosen.size === rows.length;
  }
  // Shows the items in the order of the URL, of a list that is read as a whole those of the page.
  function render() {
    const [sort, order, text] = [column(get("sort"))[3], get("order"), find && get("find")?.toLowerCase()];
    let items = text ? list.items.filter((item) => find(item).toLowerCase().includes(text)) : list.items;
    if (sort && !isSorted) items = sorted(items, sort, order);
    const most = Math.max(1, Math.ceil(items.length / PAGE));
    const at = read ? Math.min(number(), most) : number();
    rows = read ? items.slice((at - 1) * PAGE, at * PAGE) : items;
    shown.update(rows);
    shown.mark(sort && get("sort"), order);
    back.disabled = at === 1;
    forth.disabled = read ? at === most : next === null;
    const [sum, more] = [read ? (items.length > PAGE ? items.length : undefined) : total, sort && !isSorted && !read && (next !== null || at > 1)];
    setText(state, `${count(rows.length)}${sum === undefined ? "" : ` of ${count(sum)}`}${at === 1 ? "" : `, page ${count(at)}`}${more ? "; only this page is sorted" : ""}`);
    back.hidden = forth.hidden = back.disabled && forth.disabled;
    showChosen();
    told?.(rows);
  }
  list.items = [];
  list.isFirst = () => number() === 1;
  list.put = (item) => { list.items = list.items.map((other) => (key(other) === key(item) ? item : other)); render(); };
  // Shows other items, such as events.
  list.fill = (items) => { if (list.isPaused) return; list.items = items; render(); };
  list.load = page.every(seconds, list, async () => {
    if (read) return list.fill(await read() ?? list.items);
    cursors.set(place(number()), get("cursor"));
    const order = isSorted && { sort: column(get("sort"))[3], order: get("order") };
    const answer = await page.get(path, { limit: PAGE, cursor: get("cursor"), ...order, ...(await query?.()) });
    [next, total, list.items] = [answer.nextCursor, answer.total, answer.items];
    render();
  });
  return list;
}

// All items of a list of the API that `match`, at most `most` of them.
export async function scan(page, path, query, match, most = 1000) {
  const found = [];
  let [cursor, number] = [undefined, 0];
  for (; cursor !== null && number < MOST_PAGES && found.length < most; number += 1) {
    const answer = await page.get(path, { ...query, limit: 1000, cursor });
    found.push(...answer.items.filter(match));
    cursor = answer.nextCursor;
  }
  return found.slice(0, most);
}

export async function forEach(items, noun, done, operation) {
  let [number, failure] = [0];
  for (const item of items) await operation(item).then(() => { number += 1; }, (error) => { failure = error; });
  if (number) announce(`${some(number, noun)} ${done}.`);
  if (failure) announce(`${some(items.length - number, noun)} not ${done}: ${failure.message}`, "bad");
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
// A key, decoded; a long one is cut in the middle, at the width of its place.
export function keyText(text, kind = "span.key", attributes = {}) {
  const letters = [...decoded(text)];
  const parts = letters.length <= SHORT ? letters.join("") : [make("span", letters.slice(0, -TAIL).join("")), make("span", letters.slice(-TAIL).join(""))];
  return make(kind, { title: text, ...attributes }, parts);
}
export const keyLink = (hash, text) => keyText(text, "a.key", { href: hash });
export const assetLink = ({ assetId, key }) => keyLink(`#/assets/${assetId}`, key ?? assetId);
// A long text on one line, which a click unfolds.
export const oneLine = (text) => (text ? make("details.line", make("summary", text)) : null);

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
// `value` is told to the form, in which Enter presses the first of several such buttons.
export const submitButton = (text, value = "") => make(value ? "button" : "button.main", { type: "submit", value }, text);

// A message ends with its page; `isNext`: with the page that opens now.
export function announce(text, kind = "good", isNext = false) {
  const item = make(`p.${kind}`, { "data-next": isNext }, text, make("button.quiet", { type: "button", "aria-label": "Close the message", onclick: () => item.remove() }, "×"));
  messages.append(item);
  if (kind === "good") setTimeout(() => item.remove(), 10_000);
}

export function endMessages() {
  for (const item of [...messages.children]) {
    if (!("next" in item.dataset)) item.remove();
    delete item.dataset.next;
  }
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

// Actions on tokens ask for the token again, so that an unattended tab gives no rights away. The service checks it.
export const proofField = () => session.token && textField("Your access token again", "proof", { type: "password", required: true });
export const proof = (values) => (values.proof ? { Authorization: `Bearer ${values.proof}` } : undefined);

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
  const group = control.closest("details");
  if (group) group.open = true;
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
        await submit(readValues(element), event.submitter.value);
      } catch (error) {
        if (!(error instanceof FieldError)) throw error;
        refuse(element, error);
      }
    });
  };
  return make(name, { onsubmit: send }, content);
}

// A form whose values become the query of a page; the order of its list stays.
export const filters = (page, name, ...fields) => form("form.filters", async (chosen) => {
  const order = ["sort", "order"].filter((each) => page.query.has(each)).map((each) => [each, page.query.get(each)]);
  location.hash = `/${name}?${new URLSearchParams([...Object.entries(chosen), ...order])}`;
}, fields, submitButton("Search"));

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
  const body = form("form", async (values, chosen) => {
    setText(problem, "");
    await submit(values, chosen).then((result) => result ?? close(), (error) => {
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
