"""Checks of the form of an origin: its fields, members that are JSON, and the plan of a quota."""

import re

from harness import checks
from playwright.sync_api import expect
from stage import ADMIN, button, panel, row

#: Members of a read document that can be sent back, and are ignored.
IGNORED = {"name", "from", "observations", "addresses"}
#: Fields of the form that are no members of an origin.
OTHERS = {"name", "path"}


def members(schema, document=None):
    """The paths of the members of a schema of openapi.yaml; those of its objects with properties are `member.name`."""
    document = document or (checks.ROOT / "openapi.yaml").read_text()
    _, found, text = document.partition(f"\n    {schema}:\n")
    assert found, f"openapi.yaml has no schema {schema}"
    _, _, text = re.split(r"^ {0,4}\S", text, maxsplit=1, flags=re.M)[0].partition("\n      properties:\n")
    names = set()
    for name, more in re.findall(r"^        (\w+):(.*)$", re.split(r"^ {0,6}\S", text, maxsplit=1, flags=re.M)[0], re.M):
        other = re.search(r"\$ref: '#/components/schemas/(\w+)'", more)
        inner = members(other[1], document) if other else set()
        names |= {f"{name}.{each}" for each in inner} or {name}
    return names


def check_settings(stage, visit):
    """The form of an origin has a field for each setting, sets members that are JSON, and shows errors at their field."""
    upstream = f"http://127.0.0.1:{stage.upstream.port}"
    origin = f"{upstream}/films"
    stage.call("PUT", "/v1/origins/formed", {"baseURL": origin, "allowPrivateAddresses": True, "headers": {"X-One": "1", "X-Two": "2"}})
    settings = {each for each in members("OriginChange") if each.partition(".")[0] not in IGNORED}
    assert {"baseURL", "tls.caFile", "auth.scheme", "resolve.list.cursor"} <= settings, settings
    with visit(ADMIN) as view:
        page, dialog = view.go("origins/formed", "formed"), view.page.get_by_role("dialog")

        def change():
            button(panel(page, "Settings"), "Change…").click()
            expect(dialog).to_be_visible()
            dialog.locator("details:not([open]) summary").evaluate_all("(all) => all.forEach((each) => each.click())")

        def save():
            button(dialog, "Save").click()
            expect(dialog).to_have_count(0)
            return stage.call("GET", "/v1/origins/formed")[2]

        change()
        fields = set(dialog.locator("[name]").evaluate_all("(all) => all.map(({ name }) => name)")) - OTHERS
        # A field for an object has its members as JSON.
        missing = {each for each in settings if each not in fields and each.partition(".")[0] not in fields}
        assert not missing, f"the form has no fields for {sorted(missing)}"
        unknown = {each for each in fields if not any(each == known or known.startswith(f"{each}.") for known in settings)}
        assert not unknown, f"openapi.yaml has no settings {sorted(unknown)}"

        before = stage.call("GET", "/v1/origins/formed")[2]
        assert save() == before, "a form without changes changes the origin"
        change()
        dialog.get_by_label("Resolve").fill(f'{{"url": "{upstream}/link?{{path}}", "pointer": "/href", "list": {{"url": "{upstream}/list", "size": "/length"}}}}')
        dialog.get_by_label("Key query").fill('{"include": ["version"]}')
        dialog.get_by_label("Hedging").check()
        dialog.get_by_label("Trust validators").select_option("immutable")
        dialog.get_by_label("Redirect hosts").fill("*.example.com\nother.example.com")
        dialog.get_by_label("Headers").fill("X-One: •••")
        changed = save()
        assert (changed["keyQuery"], changed["hedging"], changed["trustValidators"]) == ({"include": ["version"]}, True, "immutable"), changed
        assert changed["redirectHosts"] == ["*.example.com", "other.example.com"] and list(changed["headers"]) == ["X-One"], changed
        resolve = changed["resolve"]
        assert (resolve["pointer"], resolve["list"]["size"], resolve["list"]["url"]) == ("/href", "/length", f"{upstream}/list"), resolve
        change()
        expect(dialog.get_by_label("Resolve")).to_have_value(re.compile(r'"pointer": "/href"'))
        expect(dialog.get_by_label("Resolve")).not_to_have_value(re.compile("null"))
        dialog.get_by_label("Resolve").fill(f'{{"url": "{upstream}/link?{{path}}", "list": {{"url": "{upstream}/list"}}}}')
        dialog.get_by_label("Key query").fill('{"exclude": ["time"]}')
        dialog.get_by_label("Circuit breaker").fill("false")
        changed = save()
        assert (changed["keyQuery"], changed["circuitBreaker"]) == ({"exclude": ["time"]}, False), changed
        assert (changed["resolve"]["pointer"], changed["resolve"]["list"]["size"]) == (None, None), "removed members are kept"
        change()
        calls = len(view.calls)
        dialog.get_by_label("Fallback").fill('{"file": ')
        dialog.locator("summary", has_text="Keys and responses").click()
        button(dialog, "Save").click()
        expect(dialog.get_by_role("alert").filter(has_text="not JSON")).to_be_visible()
        expect(dialog.get_by_label("Fallback")).to_be_focused()
        assert not [call for call in view.calls[calls:] if call[0] == "PATCH"], "a text that is not JSON was sent"
        dialog.get_by_label("Fallback").fill("")
        dialog.get_by_label("Resolve").fill("")
        assert "resolve" not in save(), "the member of an empty field is kept"
    stage.call("DELETE", "/v1/origins/formed")


def check_quota(stage, visit):
    """A quota that would evict assets shows its plan before it is saved."""
    for number in range(5):
        stage.read(f"part0{number}.bin")
    with visit(ADMIN) as view:
        page, dialog = view.go("origins/media", "media"), view.page.get_by_role("dialog")

        def change(text):
            button(panel(page, "Settings"), "Change…").click()
            dialog.locator("summary", has_text="Storage").click()
            dialog.get_by_label("Quota: maximum, MiB").fill(text)

        def quota():
            return stage.call("GET", "/v1/origins/media")[2]["quota"]["maxBytes"]

        change("0.125")
        for name in ("Save", "Show the plan"):
            button(dialog, name).click()
            expect(dialog).to_contain_text("would leave the cache")
            expect(dialog.locator(".scroll li").first).to_contain_text("/o/media/")
            assert quota() == 32 << 20, "the plan has changed the quota"
            dialog.get_by_label("Quota: maximum, MiB").fill("0.25")
            expect(button(dialog, "Apply")).to_have_count(0)
        button(dialog, "Show the plan").click()
        button(dialog, "Apply").click()
        expect(dialog).to_have_count(0)
        expect(page.locator("#messages")).to_contain_text("was changed")
        assert quota() == 256 << 10, quota()
        view.go("policy", "Policy")
        expect(row(panel(page, "Quotas"), "media")).to_contain_text("256 KiB")
        view.go("origins/media", "media")
        change("32")
        button(dialog, "Save").click()
        expect(dialog).to_have_count(0)
        assert quota() == 32 << 20, quota()


CHECKS = {"settings": check_settings, "quota": check_quota}
