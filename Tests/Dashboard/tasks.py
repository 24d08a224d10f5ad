"""Tasks of operators with clicks and keys alone, among 200 origins and 100,000 assets."""

import os
import re
import secrets
import sys
import urllib.parse

from harness import checks
from harness.process import origin
from playwright.sync_api import expect
from stage import ADMIN, LIMITED_WRITE, PREFIXES, READ, Stage, button, panel, row

FILMS = 50
TASKS = []


def task(function):
    TASKS.append(function)
    return function


class Crowd(Stage):
    """A stage with many origins and many small assets, whose rows are written without the service."""

    def __init__(self, program, origins=200, assets=100_000):
        more = ["policy.lowWatermark=0.94", *(each for number in range(origins) for each in origin(f"site-{number:03}", f"http://127.0.0.1:9/{number}"))]
        super().__init__(program, "none", more)
        self.larder.settings.append(f"telemetry.traces.endpoint=http://127.0.0.1:{self.upstream.port}/v1/traces")
        (self.files / "many").mkdir()
        (self.files / "many" / "pattern").write_bytes(b"x" * (64 << 10))
        (self.files / "films").mkdir()
        for number in range(FILMS):
            os.link(self.files / "film.mp4", self.files / "films" / f"film {number:02}.mp4")
        self.read("many/pattern")
        self.larder.stop()
        if assets:
            sys.path.insert(0, str(checks.ROOT / "Benchmarks"))
            from sidebyside.stock import Stock

            Stock(self.directory, assets, 1, 0)
        self.larder.start()
        self.assets = assets


class Operator:
    """Moves through the page with clicks and keys; `number` tells several runs of a task apart."""

    def __init__(self, stage, view, number):
        self.stage, self.view, self.page, self.number = stage, view, view.page, number

    @property
    def dialog(self):
        return self.page.get_by_role("dialog")

    def open(self, name):
        """Follows a link of the navigation."""
        self.page.get_by_role("navigation").get_by_role("link", name=name, exact=True).click()
        expect(self.page.get_by_role("heading", name=name, level=1)).to_be_visible()

    def click(self, name, place=None):
        button(place or self.page, name).first.click()

    def fill(self, **values):
        """Fills fields by the beginnings of their labels, with underscores for spaces."""
        for label, value in values.items():
            place = self.dialog if self.dialog.count() else self.page
            place.get_by_label(re.compile("^" + label.replace("_", " "))).first.fill(value)

    def told(self, text):
        expect(self.page.locator("#messages")).to_contain_text(text)


@task
def slow_viewer(it):
    """Why is this viewer slow: its slowest requests, and the plan of such a read."""
    part = f"slow/films/film {it.number:02}.mp4"
    it.stage.call("GET", f"/o/media/{urllib.parse.quote(part)}", token=READ, Range="bytes=0-786431")
    it.open("Requests")
    it.fill(Token="read", Least_seconds="0.3")
    it.click("Search")
    requests = panel(it.page, "Requests")
    expect(row(requests, part)).to_be_visible()
    it.click("Total", requests)
    slowest = row(requests, part)
    expect(slowest).to_contain_text("miss")
    slowest.get_by_role("link", name=re.compile("^bytes=")).click()
    it.click("Explain")
    expect(panel(it.page, "Explain a read").locator(".facts")).to_contain_text("Fetch")


@task
def disk_usage(it):
    """The cause of the disk usage: the directory with most bytes, down to its assets."""
    it.open("Overview")
    usage = panel(it.page, "Usage")
    usage.get_by_label("By").select_option("path")
    usage.get_by_role("link", name="/o/media/", exact=True).click()
    largest = row(panel(it.page, "Usage"), "/o/media/many/")
    expect(largest).to_contain_text("%")
    largest.get_by_role("link", name="Assets").click()
    expect(panel(it.page, "Assets").locator(".pager")).to_contain_text(re.compile(r"of [\d,]+"))


@task
def part_of_name(it):
    """Find a part of a name among all assets, in the order of their keys, and go to its second page."""
    it.open("Assets")
    it.fill(Name="MANY/")
    it.page.keyboard.press("Enter")
    assets = panel(it.page, "Assets")
    expect(assets.locator(".pager")).to_contain_text(re.compile(r"^50 of [\d,]{5,}"))
    it.click("Key", assets)
    expect(assets.get_by_role("columnheader", name="Key")).to_have_attribute("aria-sort", "ascending")
    first = assets.locator("tbody tr").first
    before = first.inner_text()
    it.click("Next", assets)
    expect(assets.locator(".pager")).to_contain_text(re.compile(r"^50 of [\d,]{5,}, page 2"))
    expect(first).not_to_have_text(before)
    expect(first).to_contain_text("/o/media/many/")


@task
def purge_prefix(it):
    """Purge a prefix: the plan, then its commit."""
    it.stage.read(f"part1{it.number}.bin")
    it.open("Assets")
    it.fill(Name=f"/o/media/part1{it.number}")
    it.page.keyboard.press("Enter")
    expect(row(panel(it.page, "Assets"), f"part1{it.number}.bin")).to_be_visible()
    it.click("Purge…")
    it.click("Plan (dry run)")
    it.dialog.get_by_role("button", name=re.compile("^Remove 1 asset, ")).click()
    it.told("of 1 asset removed")


@task
def prefetch_films(it):
    """Prefetch two seconds of fifty films."""
    it.open("Jobs")
    it.click("New job…")
    names = [urllib.parse.quote(f"films/film {number:02}.mp4?{it.number}") for number in range(FILMS)]
    it.fill(Origin_and_path="\n".join(f"media/{name.replace('%3F', '?')}" for name in names), Or_play_for="2", Label=f"films {it.number}")
    it.click("Create the job")
    it.told("was created")
    progress = panel(it.page, "Progress")
    expect(progress.locator(".badge", has_text="succeeded")).to_be_visible(timeout=60_000)
    expect(progress).to_contain_text(re.compile(rf"Items done\s*{FILMS}"))


@task
def failing_origin(it):
    """Which of the origins fails, and why."""
    for number in range(3):
        it.stage.call("GET", f"/o/dead/{it.number}-{number}.mp4")
    it.open("Overview")
    it.page.locator("main .panel").first.get_by_role("link", name="Origin dead").first.click()
    expect(it.page.get_by_role("heading", name="dead", level=1)).to_be_visible()
    expect(panel(it.page, "State")).to_contain_text("upstreamUnreachable")


@task
def control_jobs(it):
    """Pause, resume, cancel and retry jobs together."""
    for name in ("one", "two"):
        it.stage.job("slowest/large.bin", label=f"{name} {it.number}")
    it.open("Jobs")
    jobs = panel(it.page, "Jobs")

    def choose():
        for name in ("one", "two"):
            row(jobs, f"{name} {it.number}").get_by_role("checkbox").check()

    choose()
    it.click("Pause", jobs.locator(".chosen"))
    for name in ("one", "two"):
        expect(row(jobs, f"{name} {it.number}")).to_contain_text("paused")
    choose()
    it.click("Resume")
    it.told("2 jobs resumed")
    choose()
    it.click("Cancel")
    it.click("Stop fetching")
    for name in ("one", "two"):
        expect(row(jobs, f"{name} {it.number}")).to_contain_text("cancelled")
    choose()
    it.click("Retry")
    it.told("2 jobs retried")
    choose()
    it.click("Cancel")
    it.click("Stop fetching")
    expect(row(jobs, f"one {it.number}")).to_contain_text("cancelled")


@task
def cost_of_url(it):
    """The cost of a URL: the bytes that a read would fetch, at the price of the upstream."""
    it.open("Fills")
    it.fill(Origin_and_path=f"http://127.0.0.1:{it.stage.upstream.port}/large.bin", Range="bytes=0-4194303")
    it.click("Explain")
    expect(panel(it.page, "Explain a read").locator(".facts")).to_contain_text(re.compile(r"Cost\s*0\.000\d+ at 0\.09 per GB"))


@task
def capacity(it):
    """Change the capacity: the assets that would leave, then the change."""
    size = f"{6 - it.number / 10:g}"
    it.open("Policy")
    it.click("Change…")
    expect(it.dialog).to_be_visible()
    it.fill(Capacity=size)
    it.click("Show the plan")
    expect(it.dialog).to_contain_text("would leave the cache")
    it.click("Apply")
    it.told("The policy was changed.")
    expect(panel(it.page, "In force")).to_contain_text(f"{size} GiB")


@task
def new_origin(it):
    """Add an origin: settings, a test, and its first read."""
    it.open("Origins")
    it.click("New origin…")
    it.fill(Name=f"new-{it.number}", Base_URL=f"http://127.0.0.1:{it.stage.upstream.port}", Path_for_the_test="part01.bin")
    it.dialog.get_by_label("Allow private addresses").check()
    it.click("Test")
    expect(it.dialog).to_contain_text("succeeded")
    it.click("Save")
    it.told("was mounted")
    expect(it.page.get_by_role("heading", name=f"new-{it.number}", level=1)).to_be_visible()
    assert it.stage.call("GET", f"/o/new-{it.number}/part01.bin")[0] == 200


@task
def rotate_credentials(it):
    """Rotate the credentials of an origin among hundreds: find it, test the new ones, save them."""
    name = f"locked-{it.number}"
    base = f"http://127.0.0.1:{it.stage.upstream.port}/locked"
    it.stage.call("PUT", f"/v1/origins/{name}", {"baseURL": base, "allowPrivateAddresses": True, "headers": {"X-Key": "one"}})
    it.open("Origins")
    it.page.get_by_label("Search origins").fill(name)
    it.page.get_by_role("link", name=name).click()
    it.click("Rotate…")
    it.fill(Path_for_the_test="part02.bin")
    it.click("Test")
    expect(it.dialog).to_contain_text("403")
    it.fill(Headers="X-Key: two")
    it.click("Test")
    expect(it.dialog).to_contain_text("succeeded")
    it.click("Save")
    it.told("was changed")
    assert it.stage.call("GET", f"/o/{name}/part02.bin")[0] == 200


@task
def largest_reader(it):
    """The token with most bytes, and its requests."""
    for number in range(3):
        it.stage.call("GET", f"/o/media/part3{number}.bin", token=READ)
    it.open("Readers")
    readers = panel(it.page, "Readers")
    expect(readers.locator("tbody tr").filter(has=it.page.get_by_role("link", name="read", exact=True))).to_contain_text("iB")
    it.click("Bytes", readers)
    first = readers.locator("tbody tr").first
    expect(first).to_contain_text("iB")
    first.get_by_role("link").click()
    expect(it.page.get_by_role("heading", name="Requests", level=1)).to_be_visible()


@task
def slow_trace(it):
    """The request behind a slow trace."""
    trace = secrets.token_hex(16)
    fields = {"traceparent": f"00-{trace}-{secrets.token_hex(8)}-01"}
    it.stage.call("GET", f"/o/media/slow/part4{it.number}.bin", **fields)
    it.open("Requests")
    it.fill(Trace=trace)
    it.page.keyboard.press("Enter")
    found = panel(it.page, "Requests").locator("tbody tr")
    expect(found).to_have_count(1)
    expect(found).to_contain_text(f"slow/part4{it.number}.bin")
    expect(found.locator("td[data-title=Total]")).to_contain_text(re.compile(r"\d"))


def limited(stage, visit):
    """A limited token searches, purges and prefetches inside its limits; it sees no other action."""
    stage.read("part01.bin")
    with visit(LIMITED_WRITE) as view:
        it = Operator(stage, view, 0)
        it.open("Assets")
        expect(row(panel(it.page, "Assets"), "part01.bin")).to_be_visible()
        it.fill(Name="part01")
        it.click("Search")
        expect(panel(it.page, "Assets").locator("tbody tr")).to_have_count(1)
        it.page.get_by_label("Select all rows").check()
        it.click("Prefetch…")
        it.click("Create the job")
        expect(panel(it.page, "Progress").locator(".badge", has_text="succeeded")).to_be_visible()
        assert PREFIXES[0].endswith("part0")
        navigation = it.page.get_by_role("navigation")
        for name in ("Policy", "Origins", "Readers"):
            expect(navigation.get_by_role("link", name=name, exact=True)).to_have_count(0)


#: Runs of all tasks: width, scheme.
RUNS = [(1280, "light"), (360, "dark"), (2560, "light")]
#: Those of a brief run; they need neither many assets nor other programs.
SHORT = [slow_viewer, disk_usage, purge_prefix, failing_origin, control_jobs, cost_of_url, new_origin, largest_reader, slow_trace]


def perform(results, stage, visit, tasks, runs):
    """Performs tasks, each from a fresh page; a part of the report for each run."""
    for number, (width, scheme) in enumerate(runs):
        with results.part(f"tasks {width} {scheme}", f"{len(tasks)} tasks with clicks and keys") as part:
            for each in tasks:
                options = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
                try:
                    with visit(ADMIN, at=stage, **options) as view:
                        view.expect_message("Failed to load resource")
                        each(Operator(stage, view, number))
                    part.check(True, each.__name__)
                except Exception as error:  # a failed expectation, a time limit, or a crash of the page
                    part.check(False, f"{each.__name__}: {str(error).partition('Aria snapshot')[0]}")
    with results.part("tasks limited", limited.__doc__) as part:
        part.attempt(limited, stage, lambda token: visit(token, at=stage))


def contact_sheet(stage, visit, routes, path):
    """Writes one picture of all pages."""
    import io

    from PIL import Image, ImageDraw

    width, height, columns = 640, 500, 4
    with stage.traffic(2), visit(ADMIN, at=stage, viewport={"width": 1280, "height": 1000}) as view:
        pictures = []
        for route in routes:
            view.go(route)
            expect(view.page.get_by_text("Loading…").locator("visible=true")).to_have_count(0)
            view.page.wait_for_timeout(1500)
            pictures.append((route or "overview", Image.open(io.BytesIO(view.page.screenshot())).convert("RGB").resize((width, height))))
        view.expect_message("Failed to load resource")
    rows = -(-len(pictures) // columns)
    sheet = Image.new("RGB", (columns * (width + 10), rows * (height + 30)), "white")
    for index, (name, picture) in enumerate(pictures):
        left, top = index % columns * (width + 10), index // columns * (height + 30)
        sheet.paste(picture, (left, top + 20))
        ImageDraw.Draw(sheet).text((left + 4, top + 4), name[:60], fill="black")
    sheet.save(path)
    print(f"{path}: {len(pictures)} pages, {os.path.getsize(path)} bytes")
