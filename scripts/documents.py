"""Checks the documents: links lead to files and headings, and the names in code spans exist: types and their members,
functions, files, folders, settings and metrics.

    documents.py

Prints one line for each breach and exits 1 if there is one.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCUMENTS = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", ROOT / "deploy" / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
#: These documents name parts of the code.
INTERNAL = [ROOT / "docs" / "glossary.md", ROOT / "docs" / "http.md", ROOT / "docs" / "internals", ROOT / "docs" / "decisions", ROOT / "CONTRIBUTING.md"]

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+\s+(.*)$", re.M)
BLOCK = re.compile(r"^```.*?^```", re.M | re.S)
SPAN = re.compile(r"`([^`\n]+)`")
#: `Type`, `Type.member`, `Type.member(label:)`, `function()` and `function(label:)`.
SYMBOL = re.compile(r"(?:([A-Z][A-Za-z0-9]+[a-z][A-Za-z0-9]*)(?:\.\w+)*?(?:\.(\w+))?|([a-z]\w*[A-Z]\w*))(?:\([\w:]*\))?")
PATH = re.compile(r"\.?[\w@-][\w+.@-]*(?:/[\w+.@-]+)+/?|[\w+-]+(?:\+\w+)?\.(?:swift|py|js|c|h|yaml|md|sql)")
METRIC = re.compile(r"larder_([a-z_]+?)(?:\{.*\})?")
SETTING = re.compile(r"([a-z]\w*)((?:\.[a-z]\w*)+)")
VARIABLE = re.compile(r"LARDER_[A-Z0-9_]+")
DECLARATION = re.compile(r"\b(?:struct|class|enum|protocol|actor|typealias|associatedtype|func|var|let|case|def|macro) `?(\w+)")
#: Names of other projects, formats and standards.
FOREIGN = set("""
    AVPlayer Package.resolved ByteBuffer Clock ContinuousClock DatabasePool DispatchQueue ETag EventSource HTTP1ToHTTPServerCodec
    HTTPConnectionStateHandler HTTPResponseCompressor HTTPResponseEncoder NIOSSLServerHandler OpenSSL SwiftNIO Task TaskGroup WebM
""".split())
#: Header fields; those with a hyphen need no exception.
FIELDS = set("Age Allow Cookie Connection Date Digest Expect Expires Forwarded From Host Location Pragma Range Referer Server TE Upgrade Vary Via Warning".split())
#: Claims of tokens, which look like metrics.
CLAIMS = {"larder_max_signature_seconds", "larder_shared_cache"}


def anchor(heading):
    """The fragment that GitHub gives to a heading."""
    text = re.sub(r"[`*]", "", heading.strip()).lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def links(document, text):
    for target in LINK.findall(BLOCK.sub("", text)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, fragment = target.partition("#")
        file = (document.parent / name).resolve() if name else document
        if not file.exists():
            yield f"the link {target} leads to no file"
        elif fragment and file.suffix == ".md":
            if fragment not in map(anchor, HEADING.findall(BLOCK.sub("", file.read_text()))):
                yield f"the link {target} leads to no heading"


class Repository:
    """The names that code spans can mean."""

    def __init__(self):
        places = [ROOT / name for name in ("Sources", "Tests", "Benchmarks", "scripts", "Plugins", "monitoring", "examples")]
        self.files = [file for place in places for file in place.rglob("*") if file.is_file() and "__pycache__" not in file.parts]
        self.files += [file for file in ROOT.iterdir() if file.is_file()] + [*(ROOT / "docs").rglob("*.md")]
        self.texts = {}
        for file in self.files:
            if file.suffix in (".swift", ".py", ".js", ".c", ".h", ".yaml", "") and file.stat().st_size < 1 << 20:
                self.texts[file] = file.read_text(errors="replace")
        swift = "\n".join(text for file, text in self.texts.items() if file.suffix == ".swift")
        self.declared = set(DECLARATION.findall(swift))
        for line in re.findall(r"^\s*(?:indirect )?case ([^\n:]*)$", swift, re.M):
            self.declared.update(re.findall(r"\w+", line))
        #: The protocols and executors, which the overview lists.
        sources = "\n".join(text for file, text in self.texts.items() if ROOT / "Sources" in file.parents)
        self.interfaces = set(re.findall(r"^(?:package |public )?protocol (\w+)|\bclass (\w+): TaskExecutor", sources, re.M))
        self.interfaces = {name or other for name, other in self.interfaces}
        self.words = set(re.findall(r"\w+", "\n".join(self.texts.values())))
        self.literals = set(re.findall(r'"([\w.]+)"', swift))
        rows = (ROOT / "docs" / "configuration.md").read_text()
        self.settings = set(re.findall(r"^\| `([\w.<>\[\]]+)`", rows, re.M))
        interface = (ROOT / "openapi.yaml").read_text()
        self.members = set(re.findall(r"(\w+):", interface))
        self.declared.update(re.findall(r"^    (\w+):", interface, re.M))
        self.groups = {key.split(".")[0] for key in self.settings if "." in key}
        self.paths = {file.relative_to(ROOT).as_posix() for file in self.files}
        self.paths |= {parent.as_posix() for path in list(self.paths) for parent in pathlib.PurePath(path).parents}

    def has_path(self, path):
        path = path.rstrip("/")
        return path in self.paths or any(known.endswith("/" + path) for known in self.paths)

    def has_setting(self, name):
        return any(key == name or key.startswith(name + ".") or key.endswith("." + name) for key in self.settings)

    def breaches(self, span, is_internal):
        """The reasons for which a code span means nothing in this repository."""
        if span in FOREIGN or span in FIELDS or span in CLAIMS:
            return
        if match := METRIC.fullmatch(span):
            name = re.sub(r"_(bucket|sum|count)$", "", match[1])
            if not {name, match[1]} & self.literals:
                yield f"`{span}` is no metric"
        elif VARIABLE.fullmatch(span):
            pass  # ConfigurationDocumentTests compares variables with the settings.
        elif match := SETTING.fullmatch(span):
            # Members of documents have the same form.
            if match[1] in self.groups and not self.has_setting(span) and not self.members.issuperset(span.split(".")):
                yield f"`{span}` is no setting"
        elif PATH.fullmatch(span) and is_internal:
            if re.match(r"(Sources|Tests|scripts|docs|examples|Benchmarks|monitoring|Cache[A-Z]\w+|CurlUpstream)\b", span) or "/" not in span:
                if not self.has_path(span):
                    yield f"there is no {span}"
        elif is_internal and (match := SYMBOL.fullmatch(span)):
            kind, member, function = match.groups()
            if kind and kind not in FOREIGN | FIELDS and kind not in self.declared and not self.has_path(kind):
                yield f"`{kind}` is not declared"
            if kind in self.declared and member and member not in self.declared | {"init"}:
                yield f"`{span}` has no member `{member}`"
            if function and function not in self.words:
                yield f"`{function}` is not in the sources"


def main():
    repository = Repository()
    breaches = []
    for document in DOCUMENTS:
        text = document.read_text()
        found = list(links(document, text))
        is_internal = any(document == place or place in document.parents for place in INTERNAL)
        for span in sorted(set(SPAN.findall(BLOCK.sub("", text)))):
            found += repository.breaches(span, is_internal)
        if document.name == "overview.md":
            found += [f"`{name}` is missing" for name in sorted(repository.interfaces) if f"`{name}`" not in text]
        breaches += [f"{document.relative_to(ROOT)}: {breach}" for breach in found]
    for breach in breaches:
        print(breach)
    print(f"documents: {len(DOCUMENTS)} checked, {len(breaches)} breaches")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
