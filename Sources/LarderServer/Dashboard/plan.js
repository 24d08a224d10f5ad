// Purges in two steps: a dry run, and its commit by another control.
import { session } from "./api.js";
import { make, replace, setText } from "./dom.js";
import { bytes, count, some } from "./format.js";
import { action, announce, button, dialog } from "./view.js";

const SHOWN = 100;
export const PURGE = ["POST /v1/purges", "GET /v1/purges/{planId}", "POST /v1/purges/{planId}/commit"];

// The button that opens a dialog for a purge; null unless the token permits purges.
export const purgeAction = (operation) => action(PURGE, "Purge…", operation, "danger");

// `request(values)` is the body of the dry run.
export function planDialog(page, title, request, ...content) {
  const report = make("div", { role: "status" });
  let plan = null;
  const discard = () => {
    if (plan && session.can("DELETE /v1/purges/{planId}")) page.send("DELETE", `/v1/purges/${plan}`).catch(() => {});
    plan = null;
    replace(report);
  };
  const commit = async () => {
    const { soft, state, assets, assetsDone, freedBytes } = await page.send("POST", `/v1/purges/${plan}/commit`);
    plan = null;
    close();
    // A large purge has taken effect when it is answered, and deletes its assets in the background.
    if (state === "running") announce(`${some(assets, "asset")} purged. Their bytes are being removed.`);
    else announce(soft ? `${some(assetsDone, "asset")} marked as stale.` : `${bytes(freedBytes)} of ${some(assetsDone, "asset")} removed.`);
    page.update();
  };
  const prepare = async (values) => {
    discard();
    const { planId, entries, assets } = await page.send("POST", "/v1/purges", { ...request(values), dryRun: true });
    plan = planId;
    const found = await page.get(`/v1/purges/${plan}`);
    replace(report, planReport(found, entries), assets > 0 && commitButton(found, () => commit().catch((error) => setText(problem, error.message))));
    return false;
  };
  const { element, body, problem, close } = dialog(page, title, "Plan (dry run)", prepare, content, report);
  body.addEventListener("input", discard);
  element.addEventListener("close", discard);
}

const numbers = ({ assets, bytes: size, pinnedAssets }) => `${some(assets, "asset")}, ${bytes(size)}, ${count(pinnedAssets)} pinned`;

// Neither the default button of the form nor focused: Enter in the form repeats the dry run.
const commitButton = (plan, commit) => button(`${plan.soft ? "Mark as stale" : "Remove"} ${numbers(plan)}`, commit, "commit");

function planReport(plan, entries) {
  if (plan.assets === 0) return make("p", "The dry run selected no asset.");
  const items = entries.slice(0, SHOWN).map(({ key, bytes: size }) => make("li", make("span.mono", key), ` ${bytes(size)}`));
  const rest = plan.assets - items.length;
  return [make("p", `The dry run selected ${numbers(plan)}. Nothing is removed yet.`),
    make("ul.scroll", { tabindex: 0 }, items, rest > 0 && make("li", `and ${count(rest)} more`))];
}
