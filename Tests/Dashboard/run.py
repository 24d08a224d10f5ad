#!/usr/bin/env python3
"""Tests the dashboard of a Larder in Chromium: each page and each action, outages, hostile names and contents.

    run.py --larder .build/debug/larder
    run.py --larder .build/debug/larder --brief
    run.py --larder .build/debug/larder --only outage,jobs --screenshots /tmp/shots
    run.py --larder .build/debug/larder --picture docs/dashboard.png
    run.py --larder .build/debug/larder --contact-sheet /tmp/pages.png

--files serves the page from a directory instead of from the program, for changes without a build. The console must stay
empty, the content security policy must not be violated, and no request may leave the service.
"""

import io
import os
import pathlib
import re
import shutil
import statistics
import sys
import time
import urllib.parse

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from harness import checks, venv  # noqa: E402

if __name__ == "__main__":
    is_ready = venv.has_programs("chromium", "nginx")
    if not is_ready and "--brief" not in sys.argv:
        venv.packages("chromium", "nginx-light", "ffmpeg")
        is_ready = True
    if not is_ready or not venv.enter("ui", HERE / "requirements.txt", "--brief" not in sys.argv):
        checks.skip_all("ui", "Chromium, Playwright or nginx is missing; `scripts/ui PROGRAM` installs them")

from playwright.sync_api import expect, sync_playwright  # noqa: E402

import forms  # noqa: E402
import lists  # noqa: E402
import tasks  # noqa: E402
from stage import ADMIN, HOSTILE, LIMITED_READ, LIMITED_WRITE, POLICY, PREFIXES, READ, WRITE, Fleet, Stage, Visit, button, panel, row  # noqa: E402

ROUTES = {
    "": "Overview", "assets": "Assets", "jobs": "Jobs", "fills": "Fills", "policy": "Policy", "origins": "Origins",
    "problems": "Problems", "requests": "Requests", "readers": "Readers",
}  # fmt: skip
BYTES_LIMIT = 144 << 10
PICTURE_LIMIT = 100_000
PURGE = ["POST /v1/purges", "GET /v1/purges/{planId}", "POST /v1/purges/{planId}/commit"]
PATCH = ["PATCH /v1/assets/{assetId}"]
#: The buttons of each page with the operations that they need.
ACTIONS = {
    "assets": {"Purge…": PURGE}, "jobs": {"New job…": ["POST /v1/jobs"]},
    "assets/ASSET": {
        "Pin": PATCH, "Tags…": PATCH, "Prefetch…": ["POST /v1/jobs"], "Purge…": PURGE,
        "Read the media index": ["GET /v1/assets/{assetId}/media"],
    },
    "jobs/JOB": {"Retry": ["POST /v1/jobs/{jobId}/retry"], "Cancel": ["DELETE /v1/jobs/{jobId}"]},
    "readers": {"New token…": ["POST /v1/tokens"]}, "origins": {"Reload the configuration": ["POST /v1/configuration/reload"]}, "fills": {"Stop": ["DELETE /v1/fills/{fillId}"], "Explain": ["GET /v1/explain"]},
}  # fmt: skip
SCOPES = {
    READ: "read only", WRITE: "write", ADMIN: "admin", LIMITED_READ: "read only, limited", LIMITED_WRITE: "write, limited",
}  # fmt: skip


def check_files(stage, _):
    """The files are small, compressed, revalidated by ETag, and carry the content security policy."""
    status, fields, body = stage.call("GET", "/ui/", token="wrong")
    assert status == 200 and fields["content-security-policy"] == POLICY, fields.items()
    assert fields["x-content-type-options"] == "nosniff" and fields["referrer-policy"] == "no-referrer"
    names, sizes = ["index.html"], {}
    while names:
        name = names.pop()
        status, fields, body = stage.call("GET", f"/ui/{name}")
        assert status == 200 and fields["etag"], f"{name}: {status}"
        sizes[name] = len(body)
        names += {found for found in re.findall(r'"(?:\./)?([\w-]+\.(?:js|css))"', body.decode()) if found not in sizes}
        status = stage.call("GET", f"/ui/{name}", If_None_Match=fields["etag"])[0]
        assert status == 304, f"{name} with its ETag: {status}"
        fields = stage.call("GET", f"/ui/{name}", Accept_Encoding="gzip")[1]
        assert len(body) < 2048 or fields.get("content-encoding") == "gzip", f"{name} is not compressed"
    assert sum(sizes.values()) <= BYTES_LIMIT, f"{sum(sizes.values())} bytes: {sizes}"
    status, fields, _ = stage.call("GET", "/", Accept="text/html")
    assert (status, fields["location"]) == (302, "/ui/")


def check_tokens(stage, visit):
    """A wrong token is rejected; a token stays until the user signs out."""
    with visit() as view:
        view.expect_message("401 (Unauthorized)")
        page = view.page
        expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        expect(page.get_by_label("Access token")).to_be_focused()
        view.enter("wrong")
        expect(page.get_by_role("alert").filter(has_text="does not accept")).to_be_visible()
        assert page.evaluate("sessionStorage.getItem('larder.token')") in (None, "", "wrong")
        view.sign_in(READ)
        expect(page.locator("#scope")).to_have_text("read only")
        page.reload()
        expect(page.locator("#scope")).to_have_text("read only")
        button(page, "Sign out").click()
        expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        assert not page.evaluate("sessionStorage.getItem('larder.token')"), "the token is still stored"
        view.sign_in(ADMIN)
        expect(page.locator("#scope")).to_have_text("admin")


def check_permissions(stage, visit):
    """Each token sees exactly its actions and pages; the page sends no other request, and none is refused."""
    asset, job = stage.asset("part00.bin"), stage.job("part00.bin")
    fills = stage.job("slowest/large.bin")
    everything = stage.operations(ADMIN)
    used = set(re.findall(r'"((?:GET|POST|PUT|PATCH|DELETE) /[^"]*)"', scripts(stage)))
    assert used and used <= everything, f"the page names unknown operations: {used - everything}"
    for token, shown in SCOPES.items():
        permitted = stage.operations(token)
        with visit(token) as view:
            page = view.page
            expect(page.locator("#scope")).to_have_text(shown)
            expect(page.locator("#state")).to_have_text("Live")
            names = [name.lower() for name in page.get_by_role("navigation").get_by_role("link").all_inner_texts()]
            assert {"assets", "jobs", "fills"} <= set(names), names
            assert ("overview" in names) == ("GET /v1/stats" in permitted), names
            routes = [route for route in ROUTES if (route or "overview") in names]
            for route in [*routes, f"assets/{asset}", f"jobs/{job}"]:
                view.go(route, ROUTES.get(route))
                expect(page.locator("main tbody tr, main figure, main .facts, main .empty, main form").first).to_be_attached()
                expect(page.get_by_text("Loading…").locator("visible=true")).to_have_count(0)
                for name, needs in ACTIONS.get(route.replace(asset, "ASSET").replace(job, "JOB"), {}).items():
                    if name == "Stop" and "limited" in shown:
                        continue  # the fill is outside the limits
                    expect(button(page, name), f"{name} with {token}").to_have_count(1 if permitted.issuperset(needs) else 0)
                expect(page.locator("#outage")).to_be_hidden()
            called = {(method, urllib.parse.urlsplit(url).path) for method, url, _ in view.calls}
            foreign = [call for call in called if not call[1].startswith("/ui/") and not is_listed(call, permitted)]
            assert not foreign, f"{token} does not permit {foreign}"
            assert not [call for call in view.calls if call[2] == 403], f"{token}: {view.calls}"
    stage.call("DELETE", f"/v1/jobs/{fills}")


def scripts(stage):
    """The scripts of the page."""
    index = stage.call("GET", "/ui/main.js")[2].decode()
    names = ["main.js", *re.findall(r'"\./([\w-]+\.js)"', index)]
    return "".join(stage.call("GET", f"/ui/{name}")[2].decode() for name in [*names, "plan.js", "settings.js"])


def is_listed(call, operations):
    """Whether a call is one of these operations."""
    method, path = call
    patterns = (re.sub(r"\\{\w+\\}", "[^/]+", re.escape(each)) for each in operations)
    return any(re.fullmatch(pattern, f"{method} {path}") for pattern in patterns)


def check_limits(stage, visit):
    """A limited token lists, reads, prefetches and purges inside its limits; a refusal is a sentence, no outage."""
    for name in ("part00.bin", "part01.bin", "part10.bin", "other.bin"):
        stage.read(name)
    with visit(LIMITED_READ) as view:
        page = view.page
        expect(page.get_by_role("heading", level=1)).to_have_text("Assets")
        assets = panel(page, "Assets")
        expect(row(assets, "part00.bin")).to_be_visible()
        expect(row(assets, "part10.bin")).to_have_count(0)
        page.get_by_label("Within the limits").select_option(PREFIXES[1])
        button(page, "Search").click()
        expect(row(assets, "other.bin")).to_be_visible()
        expect(row(assets, "part00.bin")).to_have_count(0)
        view.go("assets?find=/o/media/film", "Assets")
        expect(panel(page, "Assets").locator(".note")).to_contain_text("does not permit")
        view.go(f"assets/{stage.asset('film.mp4')}")
        expect(panel(page, "Properties").locator(".note")).to_contain_text("does not permit")
        view.go("policy")
        expect(page.locator("main")).to_contain_text("does not permit this page")
        expect(page.locator("#outage")).to_be_hidden()
        view.expect_message("403 (Forbidden)")
    with visit(LIMITED_WRITE) as view:
        page = view.go("jobs", "Jobs")
        button(page, "New job…").click()
        page.get_by_label("Origin and path").fill("media/film.mp4")
        button(page, "Create the job").click()
        expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("does not permit")
        page.get_by_label("Origin and path").fill("media/part02.bin")
        button(page, "Create the job").click()
        expect(panel(page, "Progress").locator(".badge", has_text="succeeded")).to_be_visible()
        view.expect_message("403 (Forbidden)")
        if stage.operations(LIMITED_WRITE).issuperset(PURGE):
            view.go(f"assets?within={PREFIXES[1]}", "Assets")
            button(page, "Purge…").click()
            expect(page.get_by_label("Key prefix", exact=True)).to_have_value(PREFIXES[1])
            button(page, "Plan (dry run)").click()
            page.get_by_role("dialog").get_by_role("button", name=re.compile("^Remove 1 asset, ")).click()
            expect(page.locator("#messages")).to_contain_text("of 1 asset removed")


def check_repetition(stage, visit):
    """Enter pressed twice in each dialog removes nothing; numbers that are none are refused at their field."""
    for number in range(10):
        stage.read(f"part0{number}.bin")
    asset, job = stage.asset("part00.bin"), stage.job("slowest/large.bin")
    stage.call("PATCH", f"/v1/assets/{asset}", {"pinned": True})
    with visit(WRITE) as view:
        page, dialog = view.page, view.page.get_by_role("dialog")

        def is_unchanged():
            found = stage.call("GET", "/v1/assets?prefix=/o/media/part0&total=true")[2]["total"]
            assert found == 10, f"{found} of 10 assets are left"
            assert stage.call("GET", f"/v1/jobs/{job}")[2]["state"] == "running", "the job was cancelled"
            assert stage.call("GET", "/v1/fills")[2]["items"], "the fill was stopped"

        for route, place, name in [
            ("assets?find=/o/media/part0", "Assets", "Purge…"), (f"assets/{asset}", "Properties", "Purge…"),
            (f"assets/{asset}", "Properties", "Tags…"), (f"assets/{asset}", "Properties", "Prefetch…"),
            (f"jobs/{job}", "Progress", "Cancel"), ("fills", "Running fills", "Stop"), ("jobs", "Jobs", "New job…"),
        ]:  # fmt: skip
            for pause in (0, 700):
                view.go("problems", "Problems")
                view.go(route)
                control = button(panel(page, place), name).first
                expect(control).to_be_enabled()
                control.focus()
                page.keyboard.press("Enter")
                for _ in range(2):
                    page.wait_for_timeout(pause)
                    page.keyboard.press("Enter")
                page.wait_for_timeout(300)
                is_unchanged()
                page.keyboard.press("Escape")
                expect(dialog).to_have_count(0)

        view.go("assets?find=/o/media/part0&origin=media", "Assets")
        button(page, "Purge…").click()
        expect(dialog.get_by_label("Key prefix", exact=True)).to_have_value("/o/media/part0")
        expect(dialog.get_by_label("Origin")).to_have_value("media")
        page.keyboard.press("Enter")
        commit = dialog.get_by_role("button", name=re.compile(r"^Remove 10 assets, 640 KiB, 1 pinned$"))
        expect(commit).to_be_visible()
        expect(commit).not_to_be_focused()
        button(dialog, "Cancel").click()

        for route, place, name, label, values in [
            ("jobs", "Jobs", "New job…", "Maximum rate, MiB/s", ["fast", "1,5", "0", "-1", "1e3"]),
            ("jobs", "Jobs", "New job…", "From, seconds", ["x"]),
            ("jobs", "Jobs", "New job…", "Or play for, seconds", ["1,5"]),
            ("assets", "Assets", "Purge…", "Minimum age, days", ["1,5"]),
            ("fills", "Explain a read", None, "From, seconds", ["fast"]),
            ("policy", "Miss ratio and simulation", None, "Capacity, GiB", ["1,5"]),
        ]:  # fmt: skip
            view.go(route, ROUTES[route])
            expect(page.get_by_text("Loading…").locator("visible=true")).to_have_count(0)
            form = dialog if name else panel(page, place)
            if name:
                button(page, name).click()
            if route == "jobs":
                form.get_by_label("Origin and path").fill("media/part00.bin")
            control = form.get_by_label(label)
            for value in values:
                sent = [call for call in view.calls if call[0] == "POST"]
                control.fill(value)
                control.press("Enter")
                expect(form.get_by_role("alert").filter(has_text="A number")).to_be_visible()
                expect(control).to_be_focused()
                assert sent == [call for call in view.calls if call[0] == "POST"], f"{label}: {value} was sent"
            page.keyboard.press("Escape")
    stage.call("PATCH", f"/v1/assets/{asset}", {"pinned": False})
    stage.call("DELETE", f"/v1/jobs/{job}")


def check_overview(stage, visit):
    """The overview follows the traffic, second by second, and nothing moves."""
    with visit(ADMIN) as view, stage.traffic(2):
        page = view.page
        tiles = page.locator(".tile")
        expect(tiles).to_have_count(6)
        expect(page.locator("#state")).to_have_text("Live")
        expect(tiles.nth(0)).to_contain_text(re.compile(r"[1-9][\d.]* .iB/s"))
        expect(tiles.nth(2)).to_contain_text(re.compile(r"\d %.*since the start"))
        expect(tiles.nth(3)).to_contain_text("per GB")
        expect(panel(page, "Problems")).to_contain_text(re.compile("no problems|error|warning"))
        expect(panel(page, "Disk")).to_contain_text("of 64 MiB")
        expect(row(panel(page, "Most requested assets"), "/o/media/").first).to_be_visible()
        page.evaluate(SHIFTS)
        shape = page.locator("path.area").first
        for _ in range(3):
            before = shape.get_attribute("d")
            expect(shape).not_to_have_attribute("d", before)
        assert page.evaluate("shifts") == [], f"these elements move: {page.evaluate('shifts')}"
        button(page, "24 h").click()
        expect(button(page, "24 h")).to_have_attribute("aria-pressed", "true")
        expect(page.get_by_role("img", name="Bytes per second, one day")).to_be_visible()


#: Records the elements that move without an action of the user.
SHIFTS = """() => {
  window.shifts = [];
  const moved = ({ sources }) => sources.map(({ node }) => node?.outerHTML ?? node?.data);
  const record = (list) => shifts.push(...list.getEntries().flatMap(moved));
  new PerformanceObserver(record).observe({ type: "layout-shift" });
}"""


def check_assets(stage, visit):
    """Search, filters, pages, the strip by bytes and by seconds, pin, tags, prefetch, purge by plan and commit."""
    for number in range(60):
        stage.read(f"part{number:02}.bin")
    stage.read("film.mp4", 0, 300_000)
    asset = stage.asset("film.mp4")
    with visit(ADMIN) as view:
        page = view.go("assets", "Assets")
        assets = panel(page, "Assets")
        expect(assets.locator("tbody tr")).to_have_count(50)
        button(assets, "Next").click()
        expect(assets.locator(".pager")).to_contain_text("page 2")
        button(assets, "Previous").click()
        expect(button(assets, "Previous")).to_be_disabled()
        page.get_by_label("Name, part of a name, URL or ID").fill("/o/media/part0")
        button(page, "Search").click()
        button(assets, "Key").click()
        expect(assets.locator("tbody tr")).to_have_count(10)
        expect(assets.locator("tbody tr").first).to_contain_text("part00.bin")
        page.get_by_label("Name, part of a name, URL or ID").fill(asset)
        button(page, "Search").click()
        expect(page.get_by_role("heading", name="/o/media/film.mp4")).to_be_visible()

        strip = page.get_by_role("img", name="Parts of the asset: cached")
        expect(strip.locator("rect").nth(1)).to_be_attached()
        if shutil.which("ffmpeg"):
            button(page, "Read the media index").click()
            expect(page.locator("#messages")).to_contain_text("mp4")
            expect(page.locator(".axis")).to_contain_text("00:20")
            button(page, "Bytes").click()
            expect(page.locator(".axis")).to_contain_text("iB")
        button(page, "Pin").click()
        expect(button(page, "Unpin")).to_be_visible()
        assert stage.call("GET", f"/v1/assets/{asset}")[2]["pinned"]
        button(page, "Unpin").click()
        expect(button(page, "Pin")).to_be_visible()
        button(page, "Tags…").click()
        page.get_by_label("Tags, separated by commas").fill(f"feature, {HOSTILE}")
        button(page, "Save").click()
        expect(panel(page, "Properties").locator(".badge", has_text=HOSTILE)).to_be_visible()

        button(page, "Prefetch…").click()
        page.get_by_label("Ranges").fill("bytes=0-65535")
        button(page, "Create the job").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("Job")
        expect(panel(page, "Progress").locator(".badge", has_text="succeeded")).to_be_visible()

        view.go(f"assets/{asset}", "/o/media/film.mp4")
        button(page, "Purge…").click()
        dialog = page.get_by_role("dialog")
        button(dialog, "Plan (dry run)").click()
        expect(dialog).to_contain_text("The dry run selected 1 asset")
        button(dialog, "Cancel").click()
        expect(dialog).to_have_count(0)
        assert stage.call("GET", f"/v1/assets/{asset}")[0] == 200, "a plan has removed the asset"

        view.go("assets", "Assets")
        page.get_by_label("Tag", exact=True).fill(HOSTILE)
        button(page, "Search").click()
        expect(assets.locator("tbody tr")).to_have_count(1)
        button(page, "Purge…").click()
        expect(dialog.get_by_label("Tag", exact=True)).to_have_value(HOSTILE)
        dialog.get_by_label("Tag", exact=True).fill("")
        dialog.get_by_label("Key prefix").fill("/o/media/part0")
        button(dialog, "Plan (dry run)").click()
        expect(dialog).to_contain_text("The dry run selected 10 assets")
        dialog.get_by_label("Key prefix").fill("/o/media/part00")
        expect(dialog.get_by_role("button", name="Remove")).to_have_count(0)
        button(dialog, "Plan (dry run)").click()
        dialog.get_by_role("button", name=re.compile("^Remove 1 asset, ")).click()
        expect(page.locator("#messages")).to_contain_text("of 1 asset removed")
        gone = stage.call("GET", "/v1/assets?prefix=/o/media/part00")[2]["items"]
        assert gone == [], gone
        button(page, "Purge…").click()
        dialog.get_by_label("Tag", exact=True).fill("")
        button(dialog, "Plan (dry run)").click()
        expect(dialog.get_by_role("alert")).not_to_be_empty()
        button(dialog, "Cancel").click()
        view.go("assets?find=/o/media/none", "Assets")
        expect(panel(page, "Assets")).to_contain_text("No asset meets the conditions.")
        view.expect_message("422")
        view.expect_message("404")


def check_jobs(stage, visit):
    """A new job with live progress, the causes of its failures, retry, cancellation, a deadline at risk."""
    with visit(ADMIN) as view:
        page = view.go("jobs", "Jobs")
        button(page, "New job…").click()
        page.get_by_label("Origin and path").fill("media/slow/large.bin\nmedia/none.mp4\nmedia/none2.mp4")
        page.get_by_label("Label").fill(HOSTILE)
        button(page, "Create the job").click()
        expect(page.get_by_role("heading", level=1)).to_have_text(f"Job {HOSTILE}")
        bar = panel(page, "Progress").locator(".share")
        before = bar.inner_text()
        expect(bar).not_to_have_text(before)
        causes = panel(page, "Causes of failures")
        expect(row(causes, "status 404")).to_contain_text("2")
        expect(row(panel(page, "Items"), "none2.mp4")).to_contain_text("status 404")
        button(page, "Cancel").click()
        expect(button(page, "Keep fetching")).to_be_focused()
        button(page, "Stop fetching").click()
        expect(panel(page, "Progress").locator(".badge", has_text="cancelled")).to_be_visible()
        expect(button(page, "Cancel")).to_be_disabled()
        button(page, "Retry").click()
        expect(panel(page, "Progress").locator(".badge", has_text="running")).to_be_visible()
        button(page, "Cancel").click()
        button(page, "Stop fetching").click()
        expect(panel(page, "Progress").locator(".badge", has_text="cancelled")).to_be_visible()

        view.go("jobs?state=cancelled", "Jobs")
        expect(row(page, HOSTILE)).to_be_visible()
        view.go("jobs", "Jobs")
        late = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 20))
        stage.job("slow/film.mp4", "slow/large.bin", label="late", deadlineAt=late, maxBytesPerSecond=100_000)
        expect(row(page, "late")).to_contain_text("deadline at risk")
        row(page, "late").get_by_role("link").click()
        button(page, "Cancel").click()
        button(page, "Stop fetching").click()
        expect(panel(page, "Progress").locator(".badge", has_text="cancelled")).to_be_visible()
        view.go("jobs", "Jobs")
        button(page, "New job…").click()
        page.get_by_label("Origin and path").fill("nowhere/one.mp4")
        button(page, "Create the job").click()
        expect(page.get_by_role("dialog").get_by_role("alert")).not_to_be_empty()
        view.expect_message("422")
        view.expect_message("404")


def check_fills(stage, visit):
    """Running and ended fills, the end of one by its button, the plan of a read by path, by URL and by identifier."""
    stage.read("plan.bin", 0, 99_999)
    job = stage.job("slow/part07.bin", "slow/large.bin")
    with visit(ADMIN) as view:
        page = view.go("fills", "Fills")
        running = panel(page, "Running fills")
        expect(row(running, "slow/large.bin")).to_contain_text("running")
        button(row(running, "slow/large.bin"), "Stop").click()
        button(page, "Stop fetching").click()
        expect(row(running, "slow/large.bin")).to_have_count(0)
        expect(row(panel(page, "Ended fills"), "cancelled").first).to_be_visible()
        explain = panel(page, "Explain a read")
        for target, range_, text in [
            ("media/plan.bin", "bytes=50000-149999", "partial"),
            ("/o/media/plan.bin", "bytes=0-99", "hit"),
            (stage.asset("plan.bin"), "bytes=0-99", "hit"),
            ("media/unknown.mp4", "", "miss"),
        ]:
            explain.get_by_label("Origin and path").fill(target)
            explain.get_by_label("Range").fill(range_)
            button(explain, "Explain").click()
            expect(explain.locator(".facts")).to_contain_text(text)
        expect(explain.get_by_role("img", name="Plan of the read: fetch")).to_be_visible()
        explain.get_by_label("Origin and path").fill("http://example.com/film.mp4")
        button(explain, "Explain").click()
        expect(page.locator("#messages .bad")).to_be_visible()
        view.expect_message("Failed to load resource")
    stage.call("DELETE", f"/v1/jobs/{job}")


def check_readers(stage, visit):
    """Tokens with their traffic; a new one is shown once and works, and a revoked one does not."""
    with visit(ADMIN) as view:
        page = view.go("readers", "Readers")
        readers = panel(page, "Readers")
        expect(row(readers, "file").first).to_contain_text("active")
        button(readers, "New token…").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Name").fill("page-made")
        dialog.get_by_label("Path prefixes").fill("/o/media/")
        dialog.get_by_label("Validity").fill("30")
        dialog.get_by_label("Your access token").fill("wrong")
        button(dialog, "Create").click()
        expect(dialog.locator(".problem")).not_to_be_empty()
        dialog.get_by_label("Your access token").fill(ADMIN)
        button(dialog, "Create").click()
        secret = page.locator("output.secret").inner_text()
        assert stage.call("GET", "/o/media/part01.bin", token=secret)[0] == 200, "the new token is refused"
        button(page.get_by_role("dialog", name="The token page-made"), "Close").click()
        expect(page.locator("body")).not_to_contain_text(secret)
        made = row(readers, "page-made")
        expect(made).to_contain_text("/o/media/")
        expect(made).to_contain_text("active")
        button(readers, "New token…").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Name").fill("page-made")
        dialog.get_by_label("Your access token").fill(ADMIN)
        button(dialog, "Create").click()
        expect(dialog.locator(".problem")).to_contain_text("choose another id")
        view.expect_message("409")
        view.expect_message("401")
        button(dialog, "Cancel").click()
        stage.call("GET", "/o/media/none.bin", token=secret)
        expect(made.locator("td[data-title=Bytes]")).to_have_text(re.compile(r"^64\S* KiB$"))
        expect(made.locator("td[data-title=Errors]")).to_have_text("1")
        expect(made.locator("td[data-title=Rate]")).to_contain_text("/s")
        button(readers, "Bytes").click()
        expect(readers.get_by_role("columnheader", name=re.compile(r"^Bytes\W*$"))).to_have_attribute("aria-sort", "descending")
        expect(readers.locator("tbody tr").first).to_contain_text("iB")
        button(made, "Revoke…").click()
        button(page.get_by_role("dialog"), "Revoke").click()
        expect(page.get_by_label("Your access token")).to_be_focused()
        page.keyboard.type(ADMIN)
        page.keyboard.press("Enter")
        expect(made).to_have_count(0)
        assert stage.call("GET", "/o/media/part01.bin", token=secret)[0] == 401, "the revoked token is accepted"


def check_usage(stage, visit):
    """The usage of the cache by groups, with links to the assets of a group."""
    stage.read("part01.bin", 0, 9)
    with visit(READ) as view:
        page = view.go("overview", "Overview")
        usage = panel(page, "Usage")
        expect(row(usage, "media").first).to_contain_text("%")
        usage.get_by_label("By").select_option("path")
        expect(row(usage, "/o/media/").first).to_be_visible()
        usage.get_by_label("By").select_option("age")
        expect(row(usage, "1h").first).to_be_visible()
        usage.get_by_label("By").select_option("origin")
        row(usage, "media").first.get_by_role("link").click()
        expect(page.get_by_role("heading", name="Assets", level=1)).to_be_visible()


def check_requests(stage, visit):
    """The last requests, live and paused, with filters, and links to the asset and to the plan of the read."""
    for number in range(60):
        stage.read(f"part{number:02}.bin", 0, 99)
    stage.read("part11.bin", 0, 99)
    with visit(ADMIN) as view:
        page = view.go("requests", "Requests")
        requests = panel(page, "Requests")
        expect(requests.locator("tbody tr")).to_have_count(50)
        expect(requests.locator(".pager")).not_to_contain_text("sorted")
        button(requests, "Total").click()
        expect(requests.locator(".pager")).to_contain_text("only this page is sorted")
        view.go("requests", "Requests")
        expect(row(requests, "part11.bin").first).to_contain_text("127.0.0.1")
        expect(requests).not_to_contain_text("/v1/stats")
        button(requests, "Pause").click()
        stage.call("GET", "/o/media/gone.bin")
        calls = len(view.calls)
        page.wait_for_timeout(4500)
        assert not [call for call in view.calls[calls:] if "/v1/requests" in call[1]], "the paused list was read"
        expect(row(requests, "gone.bin")).to_have_count(0)
        button(requests, "Continue").click()
        expect(row(requests, "gone.bin").first).to_contain_text("404")
        page.get_by_label("Status").fill("2xx")
        page.get_by_label("Key prefix").fill("/o/media/part11")
        button(page, "Search").click()
        expect(row(requests, "part11.bin").first).to_be_visible()
        expect(row(requests, "gone.bin")).to_have_count(0)
        row(requests, "part11.bin").first.get_by_role("link", name="bytes=0-99").click()
        explain = panel(page, "Explain a read")
        expect(explain.get_by_label("Range")).to_have_value("bytes=0-99")
        button(explain, "Explain").click()
        expect(explain.locator(".facts")).to_contain_text("hit")
        view.go("requests?prefix=/o/media/part11", "Requests")
        row(panel(page, "Requests"), "part11.bin").first.get_by_role("link", name="part11.bin").click()
        expect(page.get_by_role("heading", name="/o/media/part11.bin")).to_be_visible()
        view.go("requests?status=9xx", "Requests")
        expect(panel(page, "Requests").locator(".note")).to_contain_text("5xx")
        view.expect_message("422")
    with visit(LIMITED_READ) as view:
        requests = panel(view.go("requests", "Requests"), "Requests")
        stage.read("part01.bin", 0, 9)
        expect(row(requests, "part01.bin").first).to_be_visible()
        expect(row(requests, "part11.bin")).to_have_count(0)
        expect(requests).not_to_contain_text("127.0.0.1")
    with visit(READ) as view:
        page = view.go("requests")
        expect(page.locator("main")).to_contain_text("does not permit this page")


def check_fleet(stage, visit):
    """The nodes with their shares, a sum with a missing node, the node of a job, the state in etcd; nothing without a fleet."""
    with visit(ADMIN) as view:
        expect(view.page.get_by_role("navigation")).not_to_contain_text("Fleet")
        job = stage.job("part00.bin")
        expect(panel(view.go(f"jobs/{job}"), "Progress").locator(".facts")).not_to_contain_text("Node")
    fleet = Fleet(stage)
    try:
        first, second = fleet.nodes
        for number in range(8):
            assert first.send("GET", f"/o/media/part0{number}.bin").status == 200
        assert second.send("GET", "/o/media/part00.bin").status == 200
        for scheme in ("light", "dark"):
            with visit(ADMIN, at=fleet, viewport={"width": 360, "height": 800}, color_scheme=scheme) as view:
                page = view.go("fleet", "Fleet")
                expect(panel(page, "Nodes").locator("tbody tr")).to_have_count(2)
                expect(panel(page, "All nodes")).to_contain_text("9")
                check_view(page, "fleet", 360, scheme)
        with visit(ADMIN, at=fleet) as view:
            expect(view.page.get_by_role("navigation")).to_contain_text("Fleet")
            check_nodes(view, fleet)
        with visit(LIMITED_READ, at=fleet) as view:
            expect(view.page.get_by_role("navigation")).to_contain_text("Fills")
            expect(view.page.get_by_role("navigation")).not_to_contain_text("Fleet")
    finally:
        fleet.stop()


def check_nodes(view, fleet):
    """The page of a fleet before and after the death of a node."""
    first, second = fleet.nodes
    names = ("one", "two") if fleet.members else (first.get("/v1/fleet")["node"], second.url)
    page = view.go("fleet", "Fleet")
    nodes, sums = panel(page, "Nodes"), panel(page, "All nodes")
    expect(row(nodes, f"{names[0]} (this)")).to_contain_text(re.compile("ready.*88.9 %"))
    expect(row(nodes, names[1])).to_contain_text("11.1 %")
    expect(sums).to_contain_text(re.compile(r"Requests\s*9\D"))
    expect(sums).to_contain_text(re.compile(r"Between nodes\s*64 KiB"))
    expect(sums.get_by_text("partial")).to_have_count(0)
    expect(row(panel(page, "Requests to other nodes"), second.url)).to_be_visible()
    state = panel(page, "State in etcd")
    if fleet.members:
        expect(row(nodes, names[1])).to_contain_text(re.compile(r"ready.*of 64 MiB"))
        expect(row(nodes, names[1])).to_contain_text(first.get("/version")["version"])
        expect(state).to_contain_text("reached")
        items = [{"origin": "media", "path": "slowest/large.bin"}]
        made = second.call("POST", "/v1/jobs", {"items": items, "label": "elsewhere"})
        view.go("jobs", "Jobs")
        expect(row(page, "elsewhere")).to_contain_text("two")
        view.go(f"jobs/{made.json['jobId']}")
        expect(panel(page, "Progress").locator(".facts")).to_contain_text("Nodetwo")
        second.call("DELETE", f"/v1/jobs/{made.json['jobId']}")
        view.go("fleet", "Fleet")
    else:
        expect(state).to_be_hidden()
    second.kill()
    expect(sums).to_contain_text("partial 1 node did not answer")
    expect(sums).to_contain_text(second.url)
    expect(row(nodes, names[0])).to_contain_text("100 %")
    if fleet.members:
        fleet.members[0].kill()
        expect(state).to_contain_text("lost")


def check_policy(stage, visit):
    """Settings, the curve, a simulation, candidates, evictions, quotas."""
    for _ in range(2):
        for number in range(20):
            stage.read(f"part{number:02}.bin")
    with visit(ADMIN) as view:
        page = view.go("policy", "Policy")
        expect(panel(page, "In force")).to_contain_text("64 MiB")
        curve = panel(page, "Miss ratio and simulation")
        expect(curve.locator("svg:not(.sample) path.line")).to_have_count(1)
        curve.get_by_label("sieve").check()
        curve.get_by_label("Capacity, GiB").fill("0.0625")
        button(curve, "Simulate").click()
        expect(curve.locator("svg:not(.sample) path.line")).to_have_count(3)
        expect(row(curve, "sieve")).to_contain_text("%")
        expect(row(panel(page, "Next to be evicted"), "/o/media/").first).to_be_visible()
        expect(row(panel(page, "Quotas"), "media")).to_contain_text("32 MiB")
        stage.call("POST", "/v1/evictions", {"freeBytes": 100_000})
        expect(row(panel(page, "Evictions of the last day"), "request").first).to_be_visible()
    with visit(ADMIN) as view:
        points = [{"capacityBytes": 0, "requestMissRatio": 0, "byteMissRatio": 0}] * 3
        view.page.route("**/v1/policy/curve", lambda route: route.fulfill(json={"algorithm": "s3fifo", "capacityBytes": 1, "windowSeconds": 0, "reads": 0, "points": points}))
        expect(panel(view.go("policy", "Policy"), "Miss ratio and simulation")).to_contain_text("no reads")


def check_origins(stage, visit):
    """Settings, latencies and circuits; a failure of an origin appears among the problems, too."""
    stage.read("slow/part33.bin")
    with visit(ADMIN) as view:
        page = view.go("origins", "Origins")
        origins = panel(page, "Origins")
        expect(row(origins, "media")).to_contain_text("closed")
        for number in range(4):
            stage.call("GET", f"/o/dead/{number}.mp4")
        expect(row(origins, "dead")).to_contain_text("open")
        expect(row(origins, "dead")).to_contain_text("upstreamUnreachable")
        row(origins, "media").get_by_role("link").click()
        expect(page.get_by_role("heading", name="media", level=1)).to_be_visible()
        expect(panel(page, "State")).to_contain_text("circuit closed")
        expect(panel(page, "State")).to_contain_text(re.compile(r"First byte, p95\s*\d"))
        expect(panel(page, "Settings")).to_contain_text("Read ahead16 MiB")
        button(view.go("origins", "Origins"), "Reload the configuration").click()
        expect(page.locator("#messages")).to_contain_text("Changed: nothing")
        view.go("", "Overview")
        expect(panel(page, "Problems")).to_contain_text("the circuit is open")
        view.go("problems", "Problems")
        expect(row(page, "dead").first).to_be_visible()


def check_names(stage, visit):
    """Names with HTML are shown as text."""
    asset = stage.read_as(HOSTILE)
    stage.call("PATCH", f"/v1/assets/{asset}", {"tags": [HOSTILE]})
    job = stage.job("film.mp4", HOSTILE, label=HOSTILE)
    with visit(ADMIN) as view:
        page = view.page
        for route in ["assets", f"assets/{asset}", "jobs", f"jobs/{job}", "policy"]:
            if route == "policy":
                stage.call("POST", "/v1/purges", {"assetIds": [asset]})
            view.go(route)
            expect(page.locator("main").get_by_text(HOSTILE).first, route).to_be_visible()
            assert page.locator("main img").count() == 0, f"{route} contains an image"


def check_contents(stage, visit):
    """HTML, XHTML and SVG from the cache get neither the token nor the API, in the same tab and in frames."""
    stage.point_frames()
    files = ["attack.html", "attack.svg", "attack.xhtml"]
    upstream = f"http://127.0.0.1:{stage.upstream.port}"
    with visit() as view:  # The attack works if the cache does not contain it.
        view.page.goto(f"{upstream}/attack.html")
        expect(view.page).to_have_title(re.compile("attack ran"))
        view.page.wait_for_load_state("networkidle")
        assert "ran" in stage.reports(), stage.reports()
        view.messages.clear()
        view.requests.clear()
    stage.forget_reports()
    for name in files:
        stage.read(name)
    with visit(ADMIN) as view:
        page = view.page
        asset = stage.asset("attack.html")
        for path in [*(f"/o/media/{name}" for name in files), f"/v1/assets/{asset}/content"]:
            response = page.goto(stage.base + path)
            if response.status != 401:  # a call below /v1/ without the token
                assert response.headers.get("content-security-policy") == "sandbox", f"{path}: {response.headers}"
                assert response.headers.get("x-content-type-options") == "nosniff", f"{path}: {response.headers}"
            assert "attack" not in page.title(), f"{path} runs code"
            page.go_back()
            expect(page.locator("#scope")).to_have_text("admin")
        page.goto(f"{upstream}/frames.html")
        assert page.frame(name="html").title() == "page", "the frame is empty or runs code"
        expect(page.frame(name="svg").locator("svg")).to_be_attached()
        assert "attack" not in page.frame(name="svg").title(), "the frame runs code"
        assert page.evaluate("document.images[0].naturalWidth") == 9, "the image is not shown"
        assert page.frame(name="dashboard").locator("#main").count() == 0, (
            "a foreign page shows the dashboard in a frame"
        )
        page.go_back()
        expect(page.locator("#scope")).to_have_text("admin")
        page.go_forward()
        page.wait_for_load_state()
        page.go_back()
        view.expect_message("sandbox")
        view.expect_message("frame-ancestors")
        view.expect_message("404 (Not Found)")  # the icon of a page without one
        view.expect_message("401 (Unauthorized)")
        view.requests = [url for url in view.requests if not url.startswith(f"{upstream}/frames.html")]
    assert stage.reports() == [], f"a hostile asset reports {stage.reports()}"


def check_outage(stage, visit):
    """The page says that the service is stopped, keeps its values, and continues by itself."""
    with visit(ADMIN) as view:
        page = view.go("assets", "Assets")
        expect(page.locator("#state")).to_have_text("Live")
        rows = panel(page, "Assets").locator("tbody tr")
        expect(rows.first).to_be_visible()
        stage.larder.kill()
        expect(page.get_by_role("alert").filter(has_text="does not answer")).to_be_visible()
        expect(page.locator("#state")).to_have_text("Reconnecting…")
        expect(rows.first).to_be_visible()
        view.go("", "Overview")
        stage.larder.start()
        expect(page.locator("#state")).to_have_text("Live", timeout=30_000)
        expect(page.locator("#outage")).to_be_hidden()
        expect(panel(page, "Problems")).to_contain_text(re.compile("no problems|error|warning"))
        stage.larder.stop()
        expect(page.locator("#outage")).to_be_visible()
        stage.larder.start()
        button(page, "Connect now").click()
        expect(page.locator("#state")).to_have_text("Live")
        view.expect_message("Failed to load resource")
        view.expect_message("net::ERR")


def check_access(stage, visit):
    """A token that becomes invalid leads to the sign-in; without tokens, the page opens at once with all actions."""
    with visit(ADMIN) as view:
        page = view.page
        expect(page.locator("#state")).to_have_text("Live")
        stage.restart("access.token=other")
        expect(page.get_by_role("alert").filter(has_text="no longer accepts")).to_be_visible()
        view.expect_message("Failed to load resource")
        view.expect_message("net::ERR")
    stage.restart()
    with visit() as view:
        expect(view.page.locator("#state")).to_have_text("Live")
        expect(button(view.page, "Sign out")).to_be_hidden()
        view.go("jobs", "Jobs")
        expect(button(view.page, "New job…")).to_be_visible()
    stage.restart(*stage.tokens)


#: The name of the focused element, and the style of its outline.
FOCUS = """() => {
  const element = document.activeElement;
  return [element.textContent || element.labels?.[0]?.textContent || "", getComputedStyle(element).outlineStyle];
}"""


def check_keyboard(stage, visit):
    """Each step works with keys alone, and the focus is visible."""
    stage.read("film.mp4", 0, 9)
    with visit() as view:
        page, press = view.page, view.page.keyboard.press
        expect(page.get_by_label("Access token")).to_be_focused()
        page.keyboard.type(ADMIN)
        press("Enter")
        expect(page.get_by_role("navigation")).to_contain_text("Problems")
        view.messages.clear()

        def walk(name, most=60):
            """Presses Tab until the element with this name has the focus."""
            for _ in range(most):
                press("Tab")
                text, outline = page.evaluate(FOCUS)
                if text.strip() == name:
                    assert outline != "none", f"the focus on {name} is invisible"
                    return
            raise AssertionError(f"Tab does not reach {name}")

        page.evaluate("document.activeElement.blur()")
        walk("Skip to the content")
        expect(page.locator(".skip")).to_be_in_viewport()
        press("Enter")
        expect(page.locator("#main")).to_be_focused()
        walk("Sign out")
        page.reload()
        walk("Assets")
        press("Enter")
        expect(page.get_by_role("heading", level=1)).to_have_text("Assets")
        expect(page.locator("#main")).to_be_focused()
        walk("Name, part of a name, URL or ID")
        page.keyboard.type("/o/media/film")
        press("Enter")
        expect(panel(page, "Assets").locator("tbody tr")).to_have_count(1)
        walk("/o/media/film.mp4")
        press("Enter")
        walk("Purge…")
        press("Enter")
        dialog = page.get_by_role("dialog")
        expect(dialog).to_be_visible()
        walk("Plan (dry run)")
        press("Enter")
        expect(dialog).to_contain_text("1 asset")
        press("Escape")
        expect(dialog).to_have_count(0)
        expect(button(page, "Purge…")).to_be_focused()


def check_views(stage, visit, screenshots=None):
    """Pages fit 360 to 2560 pixels; texts and drawings have contrast in the light and in the dark scheme, and a colour has one meaning."""
    asset, job = stage.asset("film.mp4"), stage.job("film.mp4", "none.mp4", label="tonight")
    for width in (360, 768, 1440, 2560):
        for scheme in ("light", "dark"):
            with visit(ADMIN, viewport={"width": width, "height": 800}, color_scheme=scheme) as view:
                for route in [*ROUTES, f"assets/{asset}", f"jobs/{job}"]:
                    page = view.go(route, ROUTES.get(route))
                    check_view(page, route, width, scheme)
                    if screenshots:
                        name = (route.partition("/")[0] or "overview") + ("-item" if "/" in route else "")
                        page.screenshot(path=screenshots / f"{name}-{width}-{scheme}.png", full_page=True)
                if width == 1440:
                    check_colors(stage, view, asset)


def check_colors(stage, view, asset):
    """The style sheet states the meaning of each colour, no two are equal, and bars have the colour of their meaning."""
    style = view.page.evaluate("fetch('style.css').then((response) => response.text())")
    table = re.findall(r"^([a-z](?:, [a-z])*): .*$", style.partition("*/")[0], re.M)
    names = [name for line in table for name in line.split(", ")]
    assert names == sorted(re.findall(r"--([a-z]):", style)), f"the table of colours has {names}"
    colors = dict(zip(names, view.page.evaluate(COLORS, names)))
    assert len(set(colors.values())) == len(names), f"colours are equal: {colors}"

    def bar(route, place):
        found = panel(view.go(route), place).locator(".meter:not(.bad) i").first
        return found.evaluate("(element) => getComputedStyle(element).backgroundColor")

    job = stage.job("film.mp4", label="whole")
    assert bar(f"assets/{asset}", "Properties") == bar("assets", "Assets") == colors["a"], "cached bytes have another colour"
    for route, place in [(f"jobs/{job}", "Progress"), ("jobs", "Jobs"), ("policy", "Quotas"), ("overview", "Usage")]:
        assert bar(route, place) == colors["l"], f"{place} has another colour than progress and shares"


#: The values of these colours in the scheme of the page.
COLORS = """(names) => names.map((name) => {
  const sample = document.body.appendChild(document.createElement("i"));
  sample.style.color = `var(--${name})`;
  const { color } = getComputedStyle(sample);
  sample.remove();
  return color;
})"""


def check_view(page, route, width, scheme):
    """The page on the screen fits its width, and its texts have contrast."""
    expect(page.get_by_text("Loading…").locator("visible=true")).to_have_count(0)
    excess = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert excess <= 0, f"{route or 'overview'} is {excess} pixels wider than {width}: {page.evaluate(WIDE)}"
    small = page.evaluate(TARGETS)
    assert not small, f"{route or 'overview'}, {width}: targets below 24 by 24 pixels: {small}"
    faint = page.evaluate(CONTRAST)
    assert not faint, f"{route or 'overview'}, {scheme}: low contrast of {faint}"


WIDE = """() => [...document.querySelectorAll("body *")]
  .filter((element) => element.getBoundingClientRect().right > innerWidth)
  .map((element) => element.outerHTML.slice(0, 80)).slice(0, 5)"""

#: Controls that are smaller than 24 by 24 pixels, and closer than that to another one (WCAG 2.2, 2.5.8); links in sentences
#: may be so.
TARGETS = """() => {
  const controls = [...document.querySelectorAll("a, button, input, select, textarea, summary")].filter((element) => element.checkVisibility() && !element.closest(".skip"));
  const boxes = controls.map((element) => [element, element.getBoundingClientRect()]).filter(([, box]) => box.width && box.height);
  const isSmall = (box) => box.width < 23.5 || box.height < 23.5;
  const center = (box) => [box.x + box.width / 2, box.y + box.height / 2];
  const gap = ([x, y], box) => Math.hypot(Math.max(box.left - x, 0, x - box.right), Math.max(box.top - y, 0, y - box.bottom));
  return boxes.filter(([element, box]) => isSmall(box) && !element.closest("p, li") && boxes.some(([other, near]) => {
    if (other === element || other.contains(element) || element.contains(other)) return false;
    const [one, two] = [center(box), center(near)];
    return gap(one, near) < 12 || (isSmall(near) && Math.hypot(one[0] - two[0], one[1] - two[1]) < 24);
  })).map(([element, box]) => `${element.outerHTML.slice(0, 70)} ${box.width.toFixed()}x${box.height.toFixed()}`).slice(0, 5);
}"""

#: Texts with a contrast below 4.5 to the background of the closest element that has one.
CONTRAST = """() => {
  const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
  const context = canvas.getContext("2d", { willReadFrequently: true });
  const pixel = (...colors) => {
    context.clearRect(0, 0, 1, 1);
    for (const color of colors) { context.fillStyle = color; context.fillRect(0, 0, 1, 1); }
    return [...context.getImageData(0, 0, 1, 1).data];
  };
  const linear = (part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
  const weights = [0.2126, 0.7152, 0.0722];
  const luminance = (color) => weights.reduce((sum, weight, index) => sum + weight * linear(color[index] / 255), 0);
  const ground = (element) => {
    for (let place = element; place; place = place.parentElement) {
      const color = getComputedStyle(place).backgroundColor;
      if (pixel(color)[3] === 255) return color;
    }
    return "white";
  };
  const faint = new Set();
  for (const element of document.querySelectorAll("main *, header *")) {
    const hasText = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!hasText || !element.checkVisibility() || element.closest("svg, :disabled")) continue;
    const [text, back] = [getComputedStyle(element).color, ground(element)].map((color) => luminance(pixel(color)));
    if ((Math.max(text, back) + 0.05) / (Math.min(text, back) + 0.05) < 4.5) faint.add(element.innerText.slice(0, 30));
  }
  // Borders of controls, and inks of drawings: at least 3.
  const ratio = (one, two) => (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
  for (const element of document.querySelectorAll("main input:not([type=checkbox]), main select, main textarea, main path.line, main path.area, main path.below, main .meter i, main .disk i")) {
    const style = getComputedStyle(element);
    const ink = element.tagName === "I" ? style.backgroundColor : element.closest("svg") ? (style.fill === "none" ? style.stroke : style.fill) : style.borderTopColor;
    if (ratio(luminance(pixel(ink)), luminance(pixel(ground(element.parentElement)))) < 3) faint.add(`${element.tagName} ${element.getAttribute("class") ?? element.name} ${ink}`);
  }
  return [...faint];
}"""


def check_memory(stage, visit):
    """Memory, elements and handlers stay flat while the user changes pages."""
    asset, job = stage.asset("film.mp4"), stage.job("film.mp4")
    with visit(ADMIN) as view, stage.traffic():
        page = view.page
        session = view.context.new_cdp_session(page)
        session.send("Performance.enable")

        def figures():
            session.send("HeapProfiler.collectGarbage")
            metrics = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
            return [metrics[name] for name in ("JSHeapUsedSize", "Nodes", "JSEventListeners")]

        def tour(rounds):
            for _ in range(rounds):
                for route in [*ROUTES, f"assets/{asset}", f"jobs/{job}"]:
                    view.go(route, ROUTES.get(route))
                    expect(page.locator("main .panel, main .grid").first).to_be_visible()
            view.go("problems", "Problems")
            return figures()

        tour(5)
        before = tour(5)
        after = tour(20)
        assert after[0] < before[0] * 1.25 + (1 << 20), f"the heap grows from {before[0]} to {after[0]} bytes"
        assert after[1] < before[1] * 1.25 + 200, f"the number of nodes grows from {before[1]} to {after[1]}"
        assert after[2] < before[2] * 1.25 + 50, f"the number of handlers grows from {before[2]} to {after[2]}"


CHECKS = {
    "files": check_files, "tokens": check_tokens, "permissions": check_permissions, "limits": check_limits,
    "repetition": check_repetition, "overview": check_overview, "assets": check_assets,
    "jobs": check_jobs, "fills": check_fills, "requests": check_requests, "readers": check_readers, "usage": check_usage, "fleet": check_fleet, "policy": check_policy, "origins": check_origins, "names": check_names,
    "contents": check_contents, "keyboard": check_keyboard, "views": check_views, "memory": check_memory,
    "outage": check_outage, "access": check_access,
}  # fmt: skip
CHECKS.update(forms.CHECKS | lists.CHECKS, tasks=tasks.perform)
BRIEF = ["search", "tabs", "settings", "quota", "tasks", "files", "tokens", "permissions", "limits", "repetition", "overview", "fleet", "names", "contents", "outage"]


#: Waits for a number of seconds in the memory of the page.
SECONDS_ARRIVE = """async (number) => {
  const { live } = await import("/ui/live.js");
  while (live.seconds.length < number) await new Promise((resolve) => setTimeout(resolve, 500));
}"""


def take_picture(stage, visit, path, seconds):
    """Writes a picture of the overview after some minutes of traffic, at most PICTURE_LIMIT bytes."""
    from PIL import Image

    with stage.traffic(4), visit(ADMIN, viewport={"width": 1440, "height": 940}) as view:
        page = view.page
        expect(page.locator("#state")).to_have_text("Live")
        page.evaluate(SECONDS_ARRIVE, seconds)
        image = Image.open(io.BytesIO(page.screenshot()))
    for colors in (256, 128, 64):
        image.convert("RGB").quantize(colors, dither=Image.Dither.NONE).save(path, optimize=True)
        if os.path.getsize(path) <= PICTURE_LIMIT:
            print(f"{path}: {os.path.getsize(path)} bytes")
            return
    raise SystemExit(f"{path} is larger than {PICTURE_LIMIT} bytes")


def soak(stage, visit, minutes):
    """Prints the memory of service and tab each minute while a page is open; both must stay flat."""
    process = stage.larder.process.pid
    rows = []
    with visit(ADMIN) as view, stage.traffic():
        session = view.context.new_cdp_session(view.page)
        session.send("Performance.enable")
        start = time.monotonic()
        while time.monotonic() < start + 60 * minutes:
            # The page shows 900 seconds; the state before that still grows.
            view.page.wait_for_timeout(60_000)
            session.send("HeapProfiler.collectGarbage")
            metrics = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
            status = pathlib.Path(f"/proc/{process}/status").read_text()
            service = int(re.search(r"VmRSS:\s*(\d+) kB", status)[1]) << 10
            rows.append((service, metrics["JSHeapUsedSize"], metrics["Nodes"]))
            print(f"{len(rows)} min: service {service >> 20} MiB, tab {rows[-1][1] / (1 << 20):.1f} MiB, {rows[-1][2]:.0f} nodes", flush=True)
    settled = rows[min(16, len(rows) // 2) :]
    half = len(settled) // 2
    for column, name in enumerate(("service", "tab", "nodes")):
        before = statistics.median(row[column] for row in settled[:half])
        after = statistics.median(row[column] for row in settled[half:])
        print(f"{name}: {before:.0f} in the first half after the start, {after:.0f} in the second ({after / before - 1:+.1%})")
        assert after < before * 1.1, f"{name} grows"


def main():
    parser = checks.arguments(__doc__, CHECKS)
    parser.add_argument("--chromium", default="chromium")
    parser.add_argument("--files", help="directory with the files of the page")
    parser.add_argument("--screenshots", help="directory for pictures of all pages")
    parser.add_argument("--picture", help="write a picture of the overview to this file instead")
    parser.add_argument("--contact-sheet", help="write one picture of all pages to this file instead")
    parser.add_argument("--soak", type=int, help="keep the overview open for this number of minutes instead")
    parser.add_argument("--seconds", type=int, default=840, help="traffic before --picture")
    options = parser.parse_args()
    program = checks.program_of(parser, options)
    names = checks.chosen(CHECKS, options.only, BRIEF if options.brief else None)
    results = checks.Checks("ui")
    if names == ["tasks"] or options.contact_sheet:
        stage = tasks.Crowd(program)
    else:
        stage = Stage(program)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which(options.chromium), args=["--no-sandbox"])

        def visit(token=None, at=stage, **more):
            return Visit(at, browser, token, files=options.files, **more)

        if options.picture:
            take_picture(stage, visit, options.picture, options.seconds)
            return 0
        if options.contact_sheet:
            items = [f"assets/{stage.asset('film.mp4')}", f"jobs/{stage.job('film.mp4', 'none.mp4', label='tonight')}", "origins/media", f"assets/{'0' * 32}"]
            tasks.contact_sheet(stage, visit, [*ROUTES, *items], options.contact_sheet)
            return 0
        if options.soak:
            soak(stage, visit, options.soak)
            return 0
        for name in names:
            if name == "tasks":
                continue
            with results.part(name, CHECKS[name].__doc__) as part:
                examine(name, stage, visit, options.screenshots, part)
        if "tasks" in names:
            if names != ["tasks"]:
                stage.stop()
                stage = tasks.Crowd(program, *((2, 0) if options.brief else ()))
            tasks.perform(results, stage, visit, tasks.SHORT if options.brief else tasks.TASKS, tasks.RUNS[:1] if options.brief else tasks.RUNS)
        browser.close()
    stage.stop()
    return results.finish()


def examine(name, stage, visit, screenshots, part):
    more = {}
    if name == "views" and screenshots:
        more["screenshots"] = pathlib.Path(screenshots)
        more["screenshots"].mkdir(parents=True, exist_ok=True)
    try:
        CHECKS[name](stage, visit, **more)
        part.check(True, name)
    except Exception as error:  # a failed expectation, a time limit, or a crash of the page
        part.check(False, str(error).partition("Aria snapshot")[0])


if __name__ == "__main__":
    sys.exit(main())
