// Problems: warnings, errors and changes of the readiness.
import { badge, grid, heading, panel, table, words } from "./view.js";

// Other events of this topic are log entries, too.
const shown = ({ type }) => ["warning", "error", "readiness"].includes(type);
const level = ({ type, ready }) => (type !== "readiness" ? type : ready ? "ready" : "not ready");

export function problemsPage(page) {
  const list = table("Warnings and errors", [
    ...words("at"), ["Level", "", (event) => badge(level(event))], ["Message", "text", ({ message, reasons }) => message ?? (reasons.join(" ") || "The service accepts requests.")],
    ["Details", "text mono", (event) => Object.entries(event.metadata ?? {}).map(([name, value]) => `${name}=${value}`).join(" ")],
  ], (event) => event.id, "There are no warnings and no errors.");
  const listPanel = panel("Warnings and errors", {}, list.element);
  page.events("health", listPanel, (events) => list.update(events.filter(shown)));
  return [heading("Problems"), grid(listPanel)];
}
