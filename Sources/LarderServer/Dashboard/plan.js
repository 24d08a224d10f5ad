// Changes in two steps: a plan or a dry run, and its commit by another control.
import { session } from "./api.js";
import { make, replace, setText } from "./dom.js";
import { bytes, count, decoded, some } from "./format.js";
import { action, announce, button, dialog } from "./view.js";

const SHOWN = 100;
export const PLAN = "POST /v1/policy/plans";
export const PURGE = ["POST /v1/purges", "GET /v1/purges/{planId}", "POST /v1/purges/{planId}/commit"];

// The button that opens a dialog for a purge; null unless the token permits purges.
export const purgeAction = (operation) => action(PURGE, "Purge…", operation, "danger");

// A dialog for a change in two steps. `prepare(values, button)` returns the report of the plan and, if it can be carried out, the
// text of the button that does so, or nothing: the dialog closes. `commit` does it, and `discard` drops a plan.
export function twoSteps(page, title, confirm, { prepare, commit, discard = () => {} }, ...content) {
  const report = make("div", { role: "status" });
  const drop = () => {
    discard();
    replace(report);
  };
  const carryOut = () => commit().then(close, (error) => setText(problem, error.message));
  // Neither the default button of the form nor focused: Enter in the form repeats the plan.
  const plan = async (values, chosen) => {
    drop();
    const prepared = await prepare(values, chosen);
    if (prepared) replace(report, prepared.lines, prepared.text && button(prepared.text, carryOut, "commit"));
    return prepared && false;
  };
  const { element, body, problem, close } = dialog(page, title, confirm, plan, content, report);
  body.addEventListener("input", drop);
  element.addEventListener("close", drop);
}

// `request(values)` is the body of the dry run.
export function planDialog(page, title, request, ...content) {
  let plan = null;
  const discard = () => {
    if (plan && session.can("DELETE /v1/purges/{planId}")) page.send("DELETE", `/v1/purges/${plan}`).catch(() => {});
    plan = null;
  };
  const commit = async () => {
    const { soft, state, assets, assetsDone, freedBytes } = await page.send("POST", `/v1/purges/${plan}/commit`);
    plan = null;
    // A large purge has taken effect when it is answered, and deletes its assets in the background.
    if (state === "running") announce(`${some(assets, "asset")} purged. Their bytes are being removed.`);
    else announce(soft ? `${some(assetsDone, "asset")} marked as stale.` : `${bytes(freedBytes)} of ${some(assetsDone, "asset")} removed.`);
    page.update();
  };
  const prepare = async (values) => {
    const { planId, entries, assets } = await page.send("POST", "/v1/purges", { ...request(values), dryRun: true });
    plan = planId;
    const found = await page.get(`/v1/purges/${plan}`);
    return { lines: planReport(found, entries), text: assets > 0 && `${found.soft ? "Mark as stale" : "Remove"} ${numbers(found)}` };
  };
  twoSteps(page, title, "Plan (dry run)", { prepare, commit, discard }, content);
}

const numbers = ({ assets, bytes: size, pinnedAssets }) => `${some(assets, "asset")}, ${bytes(size)}, ${count(pinnedAssets)} pinned`;

function planReport(plan, entries) {
  if (plan.assets === 0) return make("p", "The dry run selected no asset.");
  return [make("p", `The dry run selected ${numbers(plan)}. Nothing is removed yet.`), keyList(entries, plan.assets)];
}

// The assets that would leave under other settings of the policy or other quotas.
export async function policyPlan(page, settings) {
  const { freedBytes, assets, usedBytes, items } = await page.send("POST", "/v1/policy/plans", settings);
  const text = assets ? `${bytes(freedBytes)} of ${some(assets, "asset")} would leave the cache; ${bytes(usedBytes)} are used now.` : "No asset would leave the cache.";
  return { assets, lines: [make("p", `${text} Nothing is changed yet.`), assets > 0 && keyList(items, assets)] };
}

function keyList(entries, total) {
  const items = entries.slice(0, SHOWN).map(({ key, bytes: size }) => make("li", make("span.mono", { title: key }, decoded(key)), ` ${bytes(size)}`));
  return make("ul.scroll", { tabindex: 0 }, items, total > items.length && make("li", `and ${count(total - items.length)} more`));
}
