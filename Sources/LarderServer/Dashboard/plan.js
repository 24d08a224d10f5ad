// Purges and evictions in two steps: a dry run, and its commit.
import { make, replace, setText } from "./dom.js";
import { bytes, count, some } from "./format.js";
import { announce, dialog } from "./view.js";

const SHOWN = 100;
const PLAN = "Plan (dry run)";

// `request(values)` is the body of the dry run.
export function planDialog(page, title, path, request, ...content) {
  const report = make("div", { role: "status" });
  let plan = null;
  const discard = () => {
    if (plan) page.send("DELETE", `/v1/purges/${plan}`).catch(() => {});
    plan = null;
  };
  const commit = async () => {
    const done = await page.send("POST", `/v1/purges/${plan}/commit`);
    plan = null;
    announce(done.soft ? `${some(done.assetsDone, "asset")} marked as stale.` : `${bytes(done.freedBytes)} of ${some(done.assetsDone, "asset")} removed.`);
    page.update();
  };
  const prepare = async (values) => {
    const result = await page.send("POST", path, { ...request(values), dryRun: true });
    plan = result.planId;
    replace(report, planReport(result));
    if (result.assets) offer(`Commit: ${some(result.assets, "asset")}`, "commit");
    else discard();
    return false;
  };
  const { apply, body, element } = dialog(page, title, PLAN, (values) => (plan ? commit() : prepare(values)), content, report);
  const offer = (text, kind) => {
    setText(apply, text);
    apply.className = kind;
  };
  body.addEventListener("input", () => {
    discard();
    replace(report);
    offer(PLAN, "main");
  });
  element.addEventListener("close", discard);
}

function planReport({ assets, freedBytes, pinnedAssets, entries }) {
  if (assets === 0) return make("p", "The dry run selected no asset.");
  const items = entries.slice(0, SHOWN).map(({ key, bytes: size }) => make("li", make("span.mono", key), ` ${bytes(size)}`));
  const rest = assets - items.length;
  return [make("p", `The dry run selected ${some(assets, "asset")} with ${bytes(freedBytes)}, ${count(pinnedAssets)} pinned. Nothing is removed yet.`),
    make("ul.scroll", { tabindex: 0 }, items, rest > 0 && make("li", `and ${count(rest)} more`))];
}
