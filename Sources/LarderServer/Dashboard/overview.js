// Overview: problems, traffic by second, hit ratio, disk, most requested assets.
import { make, setStyle, setText } from "./dom.js";
import { seriesChart } from "./draw.js";
import { bytes, count, dated, duration, percent, rate, some } from "./format.js";
import { live } from "./live.js";
import { problemPanel } from "./problems.js";
import { usagePanel } from "./usage.js";
import { assetLink, button, grid, heading, meter, numbers, panel, table } from "./view.js";

const DAY = { seconds: 86_400, step: 300 };
const TRAFFIC = [["clients, from the cache", "a", "area"], ["clients, after a fetch", "b", "area"], ["from upstreams", "c", "below"]];
const RESULTS = [["hit", "a", "area"], ["partial", "d", "area"], ["miss", "b", "area"], ["other", "e", "area"], ["error", "f", "area"]];
const PERCENTILES = [["p50", "h", "line"], ["p95", "i", "line"], ["p99", "j", "line"]];

export function overviewPage(page) {
  const tiles = ["To clients", "From upstreams", "Byte hit ratio, 15 min", "Upstream traffic saved", "Requests", "First byte, p95"].map(makeTile);
  const chart = (label, height, series, format, more) => seriesChart({ label, height, format, series, signal: page.signal, ...more });
  const traffic = chart("Bytes per second, 15 minutes", 220, TRAFFIC, rate, { base: 1024 });
  const day = chart("Bytes per second, one day", 220, TRAFFIC, rate, { base: 1024, ...DAY, timeText: dated });
  const requests = chart("Requests per second", 140, RESULTS, count);
  const firstByte = chart("Time to first byte", 140, PERCENTILES, duration, { isLogarithmic: true });
  const spans = [["15 min", traffic], ["24 h", day]].map(([name, shown]) => button(name, () => choose(shown)));
  const choose = async (shown) => [traffic, day].forEach((each, index) => {
    each.element.hidden = each !== shown;
    spans[index].ariaPressed = each === shown;
  });
  choose(traffic);
  const trafficPanel = panel("Traffic", { tools: spans }, traffic.element, day.element);
  const disk = diskView();
  const diskPanel = panel("Disk", { size: "half" }, disk.element);
  const top = table("Most requested assets", [
    ["Asset", "wide", assetLink], ...numbers("requests servedBytes"),
    ["From the cache", "", ({ byteHitRatio }) => meter(byteHitRatio, "cached")],
  ], (item) => item.assetId, "No asset was requested since the start.");
  const topPanel = panel("Most requested assets", {}, top.element);

  const showSeconds = () => {
    const { seconds } = live;
    const draw = (target, values) => target.update(seconds.map((second) => ({ time: second.time, values: values(second) })));
    draw(traffic, (second) => [second.clientBytesFromCache, second.clientBytesFromUpstream, second.upstreamBytes]);
    draw(requests, ({ requests: { hit, revalidated, stale, partial, miss, negative, bypass, error } }) => [hit + revalidated + stale, partial, miss, negative + bypass, error]);
    draw(firstByte, ({ firstByteSeconds }) => PERCENTILES.map(([name]) => firstByteSeconds?.[name] ?? null));
    const { activeReaders = 0, activeFills = 0, last5Seconds: mean, last15Minutes: span } = seconds.at(-1) ?? {};
    const slow = seconds.findLast((second) => second.firstByteSeconds)?.firstByteSeconds;
    tiles[0].show(rate(mean?.clientBytesPerSecond ?? 0), some(activeReaders, "active reader"));
    tiles[1].show(rate(mean?.upstreamBytesPerSecond ?? 0), some(activeFills, "active fill"));
    tiles[2].show(percent(span?.byteHitRatio));
    tiles[4].show(`${count(mean?.requestsPerSecond ?? 0)}/s`, `${some(span?.requests.error ?? 0, "error")} in 15 min`);
    tiles[5].show(duration(slow?.p95), slow && `p50 ${duration(slow.p50)}, p99 ${duration(slow.p99)}`);
  };
  page.on("stats", showSeconds);
  page.every(5, diskPanel, async () => {
    const [stats, policy] = await Promise.all([page.get("/v1/stats"), page.get("/v1/policy")]);
    const { bytes: { saved }, savedCost, pricePerGigabyte: price } = stats;
    tiles[2].show(undefined, `${percent(stats.byteHitRatio)} since the start`);
    if (!price) tiles[3].show(bytes(saved), `in ${duration(stats.uptimeSeconds)}`);
    else tiles[3].show(savedCost.toFixed(2), `${bytes(saved)} at ${price} per GB`);
    showSeconds();
    disk.update(stats.store, policy);
  });
  page.every(60, trafficPanel, async () => {
    const { items } = await page.get("/v1/stats/history", { windowSeconds: DAY.seconds, stepSeconds: DAY.step });
    day.update(items.map(({ at, bytes: { servedFromCache, servedAfterFill, upstream } }) => ({ time: Date.parse(at), values: [servedFromCache, servedAfterFill, upstream].map((value) => value / DAY.step) })));
  });
  page.every(10, topPanel, async () => top.update((await page.get("/v1/stats/top", { limit: 8 })).items));
  return [heading("Overview"), grid(problemPanel(page), { element: make("dl.tiles", tiles.map(({ element }) => element)) }, trafficPanel,
    panel("Requests per second", { size: "half" }, requests.element), panel("Time to first byte", { size: "half" }, firstByte.element), topPanel, diskPanel, usagePanel(page))];
}

function makeTile(name) {
  const [value, note] = [make("dd", "–"), make("small", " ")];
  return {
    element: make("div.tile", make("dt", name), value, note),
    show(text, detail) {
      setText(value, text ?? value.textContent);
      setText(note, detail ?? note.textContent);
    },
  };
}

function diskView() {
  const [used, low, high, text, rest] = [make("i"), make("span", "low"), make("span", "high"), make("p", "–"), make("p.muted", " ")];
  return {
    element: make("div", make("div.disk", used, low, high), text, rest),
    update({ capacityBytes, diskBytes, freeDiskBytes, usedRatio, assets, extents }, { lowWatermark, highWatermark }) {
      setStyle(used, "width", `${Math.min(1, usedRatio) * 100}%`);
      setStyle(low, "left", `${lowWatermark * 100}%`);
      setStyle(high, "left", `${highWatermark * 100}%`);
      low.hidden = high.hidden = capacityBytes === null;
      setText(text, `${bytes(diskBytes)} of ${capacityBytes === null ? "the disk" : bytes(capacityBytes)} (${percent(usedRatio)})`);
      setText(rest, `${some(assets, "asset")}, ${some(extents, "range")}, ${bytes(freeDiskBytes)} free on the disk`);
    },
  };
}
