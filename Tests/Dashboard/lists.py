"""Checks of lists: search, order, pages, selection and the state in the URL; of problems, and of a second tab."""

import re
import time
import urllib.parse

from playwright.sync_api import expect
from stage import ADMIN, LIMITED_READ, READ, button, panel, row


def check_search(stage, visit):
    """One field finds decoded names, viewer URLs, upstream URLs and identifiers, and the service parts of names; a token finds its own only."""
    stage.call("POST", "/v1/purges", {"origin": "media"})
    for number in range(60):
        stage.read(f"part{number:02}.bin")
    spaced = stage.files / "part summer night 100%.bin"
    spaced.write_bytes(b"x" * 5000)
    for name in ("part02.bin", "other.bin", spaced.name):
        stage.read(name)
    upstream = f"http://127.0.0.1:{stage.upstream.port}"
    found = {
        "summer NIGHT": "summer night", "/o/media/part summer": "summer night", "/part SUMMER night 100%": "summer night", "part02": "part02.bin",
        f"{stage.base}/o/media/part02.bin?exp=1&sig=x": "part02.bin", f"{upstream}/part02.bin": "part02.bin",
        f"{stage.base}/v1/content?url={urllib.parse.quote(upstream + '/part02.bin', safe='')}": "part02.bin",
    }  # fmt: skip
    with visit(ADMIN) as view:
        page = view.go("assets", "Assets")
        assets, field = panel(page, "Assets"), page.get_by_label("Name, part of a name, URL or ID")
        for text, name in found.items():
            field.fill(text)
            field.press("Enter")
            expect(assets.locator("tbody tr"), text).to_have_count(1)
            expect(row(assets, name), text).to_be_visible()
            expect(field).to_have_value(text)
        field.fill("Part")
        field.press("Enter")
        expect(assets.locator(".pager")).to_contain_text("50 of 61")
        calls = len(view.calls)
        button(assets, "Key").click()
        expect(row(assets, "summer night")).to_be_visible()
        expect(assets.locator("tbody tr").nth(1)).to_contain_text("part00.bin")
        button(assets, "Next").click()
        expect(assets.locator("tbody tr").last).to_contain_text("part59.bin")
        expect(assets.locator("tbody tr")).to_have_count(11)
        lists = [urllib.parse.parse_qs(urllib.parse.urlsplit(url).query) for _, url, _ in view.calls[calls:] if "/v1/assets?" in url]
        assert lists and all(query["contains"] == ["Part"] and query["sort"] == ["key"] and query["limit"] == ["50"] for query in lists), lists
        button(page, "Purge…").click()
        expect(page.get_by_role("dialog")).to_contain_text("cannot select by parts of names")
        page.keyboard.press("Escape")
        for text in (stage.asset("other.bin"), f"{stage.base}/v1/assets/{stage.asset('other.bin')}/content"):
            view.go("assets", "Assets")
            field.fill(text)
            field.press("Enter")
            expect(page.get_by_role("heading", name="/o/media/other.bin", level=1)).to_be_visible()
    with visit(LIMITED_READ) as view:
        page = view.go("assets?find=bin", "Assets")
        expect(row(page, "part02.bin")).to_be_visible()
        expect(row(page, "summer")).to_have_count(0)
    spaced.unlink()
    stage.call("POST", "/v1/purges", {"prefix": "/o/media/part%20"})


def check_order(stage, visit):
    """A title sorts, the state is in the URL, and Back returns to the order, the page and the search before."""
    stage.call("POST", "/v1/purges", {"origin": "media"})
    for number in range(60):
        stage.read(f"part{number:02}.bin")
    with visit(ADMIN) as view:
        page = view.go("assets?find=/o/media/part", "Assets")
        assets = panel(page, "Assets")
        first = assets.locator("tbody tr").first
        button(assets, "Key").click()
        expect(first).to_contain_text("part00.bin")
        expect(assets.get_by_role("columnheader", name="Key")).to_have_attribute("aria-sort", "ascending")
        button(assets, "Next").click()
        expect(first).to_contain_text("part50.bin")
        assert "page=2" in page.url and "sort=Key" in page.url and "find=" in page.url, page.url
        page.reload()
        expect(first).to_contain_text("part50.bin")
        page.go_back()
        expect(first).to_contain_text("part00.bin")
        expect(assets.locator(".pager")).to_contain_text("50 of 6")
        page.go_back()
        expect(assets.get_by_role("columnheader", name="Key")).not_to_have_attribute("aria-sort", re.compile("."))
        page.go_forward()
        expect(first).to_contain_text("part00.bin")
        button(assets, "Next").click()
        expect(first).to_contain_text("part50.bin")
        button(assets, "Previous").click()
        expect(first).to_contain_text("part00.bin")
        button(assets, "Key").click()
        expect(first).not_to_contain_text("part00.bin")


def check_selection(stage, visit):
    """Selected assets, jobs and fills get one action together."""
    for number in range(5):
        stage.read(f"part0{number}.bin")
    jobs = [stage.job("slowest/large.bin", label=f"chosen{number}") for number in range(3)]
    with visit(ADMIN) as view:
        page = view.go("assets?find=/o/media/part0&sort=Key&order=asc", "Assets")
        assets, dialog = panel(page, "Assets"), page.get_by_role("dialog")
        expect(assets.locator(".chosen")).to_be_hidden()
        for name in ("part00.bin", "part01.bin"):
            row(assets, name).get_by_role("checkbox").check()
        expect(assets.locator(".chosen")).to_contain_text("2 selected")
        button(assets, "Pin").click()
        expect(page.locator("#messages")).to_contain_text("2 assets pinned.")
        expect(row(assets, "part01.bin").locator(".badge")).to_have_text("pinned")
        button(assets, "Unpin").click()
        expect(row(assets, "part01.bin").locator(".badge")).to_have_count(0)
        button(assets, "Purge selected…").click()
        button(dialog, "Plan (dry run)").click()
        dialog.get_by_role("button", name=re.compile("^Remove 2 assets, ")).click()
        expect(row(assets, "part01.bin")).to_have_count(0)
        expect(assets.locator(".chosen")).to_be_hidden()
        view.go("jobs", "Jobs")
        page_jobs = panel(page, "Jobs")
        for number in (0, 1):
            row(page_jobs, f"chosen{number}").get_by_role("checkbox").check()
        button(page_jobs.locator(".chosen"), "Pause").click()
        expect(row(page_jobs, "chosen1")).to_contain_text("paused")
        expect(row(page_jobs, "chosen2")).not_to_contain_text("paused")
        page_jobs.get_by_label("Select all rows").check()
        page_jobs.get_by_label("Select all rows").uncheck()
        for number in (0, 1, 2):
            row(page_jobs, f"chosen{number}").get_by_role("checkbox").check()
        button(page_jobs, "Cancel").click()
        button(dialog, "Stop fetching").click()
        expect(page.locator("#messages")).to_contain_text("3 jobs cancelled.")
        assert all(stage.call("GET", f"/v1/jobs/{job}")[2]["state"] == "cancelled" for job in jobs)


def check_problems(stage, visit):
    """The problems of now come first, each with a link to its cause, a short version on the first page."""
    stage.call("PATCH", "/v1/origins/media", {"quota": {"maxBytes": 66_000}})
    for number in range(4):
        stage.call("GET", f"/o/dead/{number}.mp4")
    job = stage.job("none.mp4", label="broken")
    for number in range(3):
        stage.read(f"part4{number}.bin")
    end = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3 * 86_400))
    stage.call("POST", "/v1/tokens", {"id": "ending", "scope": "read", "expiresAt": end})
    with visit(ADMIN) as view:
        page = view.go("", "Overview")
        short = page.locator("main .panel").first
        expect(short.get_by_role("heading", name="Problems")).to_be_visible()
        expect(short).to_contain_text("Origin dead")
        view.go("problems", "Problems")
        now = panel(page, "Problems now")
        expect(row(now, "Origin dead").first).to_contain_text(re.compile("upstreamUnreachable.*http://127.0.0.1:9: .*in a row.*ago", re.S))
        expect(row(now, "broken")).to_contain_text("failed")
        expect(row(now, "Token ending")).to_contain_text("expires in")
        expect(row(now, "Quota of media")).to_contain_text("%")
        now.get_by_label("Search").fill("broken")
        expect(now.locator("tbody tr")).to_have_count(1)
        now.get_by_role("link", name="Job broken").click()
        expect(page.get_by_role("heading", name="Job broken")).to_be_visible()
        error = row(panel(page, "Items"), "none.mp4").locator("details")
        assert error.bounding_box()["height"] < 40, "the error takes several lines"
        error.locator("summary").click()
        page.wait_for_timeout(6000)
        expect(error).to_have_attribute("open", "")
        view.go("problems", "Problems")
        now.get_by_role("link", name="Origin dead").first.click()
        expect(page.get_by_role("heading", name="dead", level=1)).to_be_visible()
    with visit(READ) as view:
        expect(row(panel(view.go("problems", "Problems"), "Problems now"), "Origin dead").first).to_be_visible()
    stage.call("DELETE", "/v1/tokens/ending")
    stage.call("DELETE", f"/v1/jobs/{job}")
    stage.call("PATCH", "/v1/origins/media", {"quota": {"maxBytes": 32 << 20}})


def check_gone(stage, visit):
    """An evicted asset has a page with its evictions, and can be fetched again; a message ends with its page."""
    stage.read("part33.bin")
    asset = stage.asset("part33.bin")
    with visit(ADMIN) as view:
        page = view.go(f"assets/{asset}", "/o/media/part33.bin")
        stage.call("POST", "/v1/evictions", {"targetBytes": 0})
        gone = panel(page, "Not in the cache")
        expect(gone).to_contain_text("evicted, purged or never fetched")
        expect(row(panel(page, "Evictions of the last day"), "part33.bin").first).to_contain_text("request")
        expect(panel(page, "Properties")).to_be_hidden()
        button(gone, "Prefetch again…").click()
        button(page.get_by_role("dialog"), "Create the job").click()
        expect(panel(page, "Progress").locator(".badge", has_text="succeeded")).to_be_visible()
        expect(page.locator("#messages")).to_contain_text("was created")
        view.go("assets", "Assets")
        expect(page.locator("#messages")).to_be_empty()
        view.go(f"assets/{'0' * 32}", "Asset")
        expect(gone).to_be_visible()
        view.expect_message("404")


def check_tabs(stage, visit):
    """A second tab of a session gets the token from the first one; signing out ends both."""
    with visit(ADMIN) as view:
        expect(view.page.locator("#state")).to_have_text("Live")
        second = view.context.new_page()
        second.goto(f"{stage.base}/ui/")
        expect(second.locator("#scope")).to_have_text("admin")
        assert ADMIN not in second.url and second.evaluate("localStorage.length") == 0
        second.evaluate("location.hash = '#/readers'")
        button(second, "New token…").click()
        expect(second.get_by_label("Your access token again")).to_be_visible()
        second.keyboard.press("Escape")
        button(second, "Sign out").click()
        expect(view.page.get_by_role("heading", name="Sign in")).to_be_visible()
        third = view.context.new_page()
        third.goto(f"{stage.base}/ui/")
        expect(third.get_by_role("heading", name="Sign in")).to_be_visible()
        view.expect_message("401 (Unauthorized)")


def check_many(stage, visit):
    """200 origins are searched, sorted and paged on one screen."""
    for number in range(200):
        body = {"baseURL": f"http://127.0.0.1:{stage.upstream.port}/many{number}", "allowPrivateAddresses": True}
        status = stage.call("PUT", f"/v1/origins/many-{number:03}", body)[0]
        assert status == 201, status
    with visit(ADMIN) as view:
        page = view.go("origins", "Origins")
        origins = panel(page, "Origins")
        expect(origins.locator("tbody tr")).to_have_count(50)
        expect(origins.locator(".pager")).to_contain_text("50 of 202")
        height = page.evaluate("document.documentElement.scrollHeight")
        assert height < 3000, f"the page is {height} pixels tall"
        button(origins, "Name").click()
        for _ in range(4):
            button(origins, "Next").click()
        expect(origins.locator("tbody tr").last).to_contain_text("media")
        origins.get_by_label("Search").fill("many-19")
        expect(origins.locator("tbody tr")).to_have_count(10)
        row(origins, "many-195").get_by_role("link").click()
        expect(page.get_by_role("heading", name="many-195", level=1)).to_be_visible()
        page.go_back()
        expect(origins.get_by_label("Search")).to_have_value("many-19")
    for number in range(200):
        stage.call("DELETE", f"/v1/origins/many-{number:03}")


CHECKS = {
    "search": check_search, "order": check_order, "selection": check_selection, "problems": check_problems, "gone": check_gone,
    "tabs": check_tabs, "many": check_many,
}  # fmt: skip
