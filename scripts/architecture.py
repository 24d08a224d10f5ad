"""Checks imports, folders, dependencies and sizes of the Swift sources.

Prints one line for each violation, and exits 1 if there is any.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
ALLOWED = ROOT / "scripts" / "architecture.allow"

# The package's own targets that each target may import.
TARGETS = {
    "CLinux": set(),
    "CCurl": set(),
    "COpenSSL": set(),
    "CacheCore": set(),
    "MediaParsing": {"CacheCore"},
    "CacheSimulation": {"CacheCore"},
    "CCryptography": {"COpenSSL"},
    "Cryptography": {"CCryptography", "COpenSSL"},
    "CacheStore": {"CacheCore", "CLinux", "Cryptography"},
    "CurlUpstream": {"CacheCore", "CCurl"},
    "CacheTracing": {"CacheCore"},
    "EtcdClient": {"CacheCore"},
    "WebTokens": {"CacheCore", "Cryptography"},
    "UpstreamAccounts": {"CacheCore", "Cryptography", "WebTokens"},
    "ReaderAccess": {"CacheCore", "Cryptography", "WebTokens"},
    "CacheEngine": {
        "CacheCore", "CacheSimulation", "CacheStore", "CacheTracing", "Cryptography", "EtcdClient",
        "MediaParsing", "UpstreamAccounts",
    },
    "CacheAPI": {
        "CacheCore", "CacheSimulation", "CacheEngine", "CacheTracing", "Cryptography", "MediaParsing",
        "ReaderAccess", "WebTokens",
    },
    "LarderServer": {
        "CLinux", "CCurl", "CacheCore", "CacheSimulation", "CacheStore", "CacheTracing", "CurlUpstream", "CacheEngine",
        "CacheAPI", "EtcdClient", "MediaParsing", "WebTokens", "UpstreamAccounts", "ReaderAccess",
    },
}

# Modules of other packages, and the only targets that may import them.
OWNERS = {
    r"NIOHTTP1|NIOHTTP2|NIOHTTPTypes\w*|NIOSSL|HTTPTypes|StructuredFieldValues": {"CacheAPI"},
    r"RawStructuredFieldValues": {"CacheCore", "CacheAPI"},
    r"GRDB\w*": {"CacheStore"},
    r"CLinux": {"CacheStore", "LarderServer"},
    r"CCurl": {"CurlUpstream", "LarderServer"},
    r"CCryptography|COpenSSL": {"Cryptography"},
    r"ArgumentParser|Yams": {"LarderServer"},
    r"Crypto|CryptoExtras|Hummingbird\w*|FoundationNetworking|AsyncHTTPClient": set(),
}

# These targets contain values and rules: they import the standard library and these modules only.
PURE_MAY_IMPORT = {
    "CacheCore": {"Synchronization", "DequeModule", "RawStructuredFieldValues"},
    "MediaParsing": {"CacheCore"},
    "CacheSimulation": {"CacheCore"},
}

# Forbidden constructs in Sources by the word for exceptions in architecture.allow: pattern and description.
DOORS = {
    "task": (r"\bTask(<[^>]*>)?\s*(\([^)]*\)\s*)?\{|\bTask\.(init|immediate)\b", "a task outside a service's group"),
    "detached": (r"\bTask\.detached\b", "a detached task"),
    "clock": (
        r"(?<![\\\w)\]}?!])\.now\b|\b[A-Z]\w*\.now\b|\b(Continuous|Suspending)Clock\(\)|\bclock_gettime\(",
        "a direct clock read; use an injected clock, or the event loop's now",
    ),
    "date": (r"\bDate\(\)|\bDate\.now\b", "the wall clock"),
    "uuid": (r"\bUUID\(\)", "randomness"),
    "random": (r"\.random\(|\bSystemRandomNumberGenerator\b|\barc4random", "randomness"),
    "getenv": (r"\bgetenv\(|\bprocessInfo\.environment\b", "the environment"),
    "try!": (r"\btry!", "a forced try"),
    "unwrap": (r"(?<!\btry)(?<=[\w)\]}>\"?])!(?=[.,;:)\]\s\[(]|$)(?!=)|\bas!", "a forced unwrap"),
    "sleep": (r"\bTask\.sleep\b|(?<![.\w])(u|nano)?sleep\(|Clock\(\)\.sleep\(", "a sleep without an injected clock"),
    "fatal": (r"\bfatalError\(", "a crash"),
    "lock": (
        r"(?<![\w.])Mutex\b|\bNIOLock(edValueBox)?\b|\bNSLock\b|\bpthread_(mutex|rwlock|spin)_",
        "a lock without a rank; use OrderedMutex and docs/internals/locks.md",
    ),
    "inlinable": (
        r"@inlinable\s+package\b",
        "an inlinable function with package access, which the compiler does not specialize in other modules; use public",
    ),
}
# Only the composition root reads clocks directly.
CLOCK_OWNER = "Sources/LarderServer/"
UNCHECKED = re.compile(r"@unchecked\s+Sendable|nonisolated\(unsafe\)")

# For each folder, the folders that declare types it may not use.
FOLDER_RULES = {
    "Sources/CacheCore/HTTP": ["Sources/CacheCore/Fills", "Sources/CacheCore/Eviction", "Sources/CacheCore/Jobs"],
    "Sources/CacheCore/Text": [f"Sources/CacheCore/{name}" for name in ("Fills", "Eviction", "HTTP", "Jobs", "Transfers")],
    "Sources/CacheCore/Eviction": ["Sources/CacheCore/Fills", "Sources/CacheCore/Transfers"],
    "Sources/CacheStore": ["Sources/CacheCore/Fills"],
}

FUNCTION_LINES = 60
FILE_LINES = 600
FOLDER_FILES = 30


def blanked(source):
    """The source with comments and the text of string literals replaced by blanks; lines and columns are unchanged."""
    out, index, depth = [], 0, 0
    length = len(source)

    def blank(text):
        out.append(re.sub(r"[^\n]", " ", text))

    while index < length:
        if source.startswith("//", index):
            end = source.find("\n", index)
            end = length if end < 0 else end
            blank(source[index:end])
        elif source.startswith("/*", index):
            end, depth = index + 2, 1
            while end < length and depth:
                if source.startswith("/*", end):
                    depth, end = depth + 1, end + 2
                elif source.startswith("*/", end):
                    depth, end = depth - 1, end + 2
                else:
                    end += 1
            blank(source[index:end])
        elif match := re.compile(r'(#*)("""|")').match(source, index):
            end = literal_end(source, match)
            out.append('"')
            blank(source[index + 1 : end - 1])
            out.append('"' if end - 1 > index else "")
        else:
            out.append(source[index])
            index += 1
            continue
        index = end
    return "".join(out)


def literal_end(source, opening):
    """The index after the string literal that begins at `opening`; interpolations can contain literals."""
    hashes, quotes = opening.groups()
    closing, escape = quotes + hashes, "\\" + hashes
    index = opening.end()
    while index < len(source):
        if source.startswith(closing, index):
            return index + len(closing)
        if source.startswith(escape + "(", index):
            index, depth = index + len(escape) + 1, 1
            while index < len(source) and depth:
                if inner := re.compile(r'(#*)("""|")').match(source, index):
                    index = literal_end(source, inner)
                    continue
                depth += {"(": 1, ")": -1}.get(source[index], 0)
                index += 1
        elif source.startswith(escape, index):
            index += len(escape) + 1
        elif quotes == '"' and source[index] == "\n":
            return index
        else:
            index += 1
    return len(source)


def functions(code):
    """(name, first line, number of lines) of each function, initializer, subscript and computed property with a body."""
    start = re.compile(
        r"^[ \t]*(?:@\w+(?:\([^)]*\))?\s+)*(?:\w+(?:\(\w+\))?\s+)*?"
        r"(?:func\s+([^\s(<]+)|(init)[?]?(?=[(<])|(deinit)\b|(subscript)\b|var\s+(\w+)(?=[^={\n]*\{))",
        re.M,
    )
    for match in start.finditer(code):
        opening = body_opening(code, match.end())
        if opening is None:
            continue
        depth = 0
        for index in range(opening, len(code)):
            depth += {"{": 1, "}": -1}.get(code[index], 0)
            if depth == 0:
                name = next(group for group in match.groups() if group)
                first = code.count("\n", 0, match.start(match.lastindex)) + 1
                yield name, first, code.count("\n", 0, index) + 2 - first
                break


def body_opening(code, index):
    """The index of the body's opening brace; None if the declaration has no body."""
    depth = 0
    while index < len(code):
        letter = code[index]
        if letter in "([":
            depth += 1
        elif letter in ")]":
            depth -= 1
            if depth < 0:
                return None
        elif depth == 0 and letter == "{":
            return index
        elif depth == 0 and letter == "}":
            return None
        elif depth == 0 and letter == "\n":
            following = code[index:].lstrip()
            if not re.match(r"\{|where\b|->|throws\b|async\b|\)", following):
                if not re.search(r"(->|where|,|&|:)\s*$", code[:index]):
                    return None
        index += 1
    return None


def allowances():
    """{(path, word): reason} of architecture.allow; a line has the form `path word reason…`."""
    allowed = {}
    for number, line in enumerate(ALLOWED.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        parts = line.split(None, 2)
        if len(parts) < 3:
            sys.exit(f"scripts/architecture.allow:{number}: the line must have the form `path word reason`")
        allowed[parts[0], parts[1]] = parts[2]
    return allowed


class Report:
    """Collects violations and applies the exceptions of architecture.allow."""

    def __init__(self):
        self.allowed = allowances()
        self.used = set()
        self.breaches = []

    def breach(self, path, line, word, sentence):
        if (path, word) in self.allowed:
            self.used.add((path, word))
        else:
            self.breaches.append(f"{path}:{line}: {sentence} [{word}]")

    def finish(self):
        for path, word in sorted(set(self.allowed) - self.used):
            self.breaches.append(f"scripts/architecture.allow: {path} {word}: unused exception; remove the line")
        for breach in self.breaches:
            print(breach)
        return 1 if self.breaches else 0


def check_imports(report, path, target, code):
    pattern = re.compile(
        r"^\s*(?:@\w+(?:\([^)]*\))?\s+)*(?:(?:public|package|internal|private|fileprivate)\s+)?"
        r"import\s+(?:(?:struct|class|enum|func|protocol|typealias|var|let)\s+)?(\w+)",
        re.M,
    )
    for match in pattern.finditer(code):
        module, line = match.group(1), code.count("\n", 0, match.start(1)) + 1
        if module not in PURE_MAY_IMPORT.get(target, {module}):
            report.breach(path, line, f"import-{module}", f"{target} imports {module}")
        elif module in TARGETS:
            if module not in TARGETS[target]:
                report.breach(path, line, f"import-{module}", f"{target} imports {module}")
        else:
            for names, owners in OWNERS.items():
                if re.fullmatch(names, module) and target not in owners:
                    report.breach(path, line, f"import-{module}", f"{target} imports {module}")


def check_doors(report, path, source, code):
    lines = source.splitlines()
    for number, line in enumerate(code.splitlines(), 1):
        for word, (pattern, what) in DOORS.items():
            if re.search(pattern, line) and not (word == "clock" and path.startswith(CLOCK_OWNER)):
                report.breach(path, number, word, f"{what}: {lines[number - 1].strip()}")
        if UNCHECKED.search(line):
            nearby = "\n".join(lines[max(0, number - 4) : number])
            if "//" not in nearby:
                report.breach(path, number, "unchecked", "unchecked Sendable without a comment that gives the reason")


def check_sizes(report, path, source, code):
    total = source.count("\n")
    if total > FILE_LINES:
        report.breach(path, total, "file", f"{total} lines; the limit is {FILE_LINES}")
    for name, line, count in functions(code):
        if count > FUNCTION_LINES:
            report.breach(path, line, f"function-{name}", f"{name} has {count} lines; the limit is {FUNCTION_LINES}")


def check_folders(report):
    """Checks the number of files in each folder, and the types that it may not use."""
    for folder in sorted(path for root in ("Sources", "Tests") for path in (ROOT / root).rglob("*") if path.is_dir()):
        count = len(list(folder.glob("*.swift")))
        if count > FOLDER_FILES:
            path = folder.relative_to(ROOT).as_posix()
            report.breach(path, 1, "folder", f"{count} files; the limit is {FOLDER_FILES}")
    declaration = re.compile(r"^(?:package |public )?(?:final )?(?:struct|enum|class|protocol|actor) (\w+)", re.M)
    for folder, others in FOLDER_RULES.items():
        own = sorted((ROOT / folder).rglob("*.swift"))
        foreign = {
            name
            for other in others
            for file in (ROOT / other).rglob("*.swift")
            if file not in own
            for name in declaration.findall(blanked(file.read_text()))
        }
        used = re.compile(r"\b(" + "|".join(sorted(foreign)) + r")\b")
        for file in own:
            code = blanked(file.read_text())
            for match in used.finditer(code):
                line = code.count("\n", 0, match.start()) + 1
                path = file.relative_to(ROOT).as_posix()
                report.breach(path, line, f"folder-{match[1]}", f"{folder} may not use {match[1]}")


def check_manifest(report):
    """Checks the targets of Package.swift and their dependencies against `TARGETS`."""
    manifest = (ROOT / "Package.swift").read_text()
    body = manifest[manifest.index("targets:", manifest.index("dependencies:")) :]
    found = {}
    for match in re.finditer(r"\.(target|executableTarget|systemLibrary|testTarget)\(\s*name:\s*\"(\w+)\"", body):
        kind, name = match.groups()
        depth, index = 1, match.start() + len(kind) + 2
        while depth and index < len(body):
            depth += {"(": 1, ")": -1}.get(body[index], 0)
            index += 1
        declaration = re.sub(r"\.product\([^)]*\)", "", body[match.start() : index])
        if kind != "testTarget" and not re.search(r'path: "(Tests|Benchmarks)/', declaration):
            found[name] = set(re.findall(r'"(\w+)"', declaration)) & set(TARGETS) - {name}
    for name in sorted(set(found) ^ set(TARGETS)):
        where = "is in Package.swift and not in TARGETS" if name in found else "is in TARGETS and not in Package.swift"
        report.breach("Package.swift", 1, f"target-{name}", f"{name} {where}")
    for name in sorted(set(found) & set(TARGETS)):
        for module in sorted(found[name] ^ TARGETS[name]):
            verb = "depends on" if module in found[name] else "does not depend on"
            report.breach("Package.swift", 1, f"target-{name}-{module}", f"{name} {verb} {module}")


def main():
    report = Report()
    check_manifest(report)
    check_folders(report)
    counts = {}
    for file in sorted((ROOT / "Sources").rglob("*.swift")):
        path = file.relative_to(ROOT).as_posix()
        target = path.split("/")[1]
        source = file.read_text()
        code = blanked(source)
        counts[target] = counts.get(target, 0) + source.count("\n")
        if target not in TARGETS:
            report.breach(path, 1, "target", f"{target} is not in TARGETS of architecture.py")
            continue
        check_imports(report, path, target, code)
        check_doors(report, path, source, code)
        check_sizes(report, path, source, code)
    for file in sorted((ROOT / "Tests").rglob("*.swift")):
        source = file.read_text()
        check_sizes(report, file.relative_to(ROOT).as_posix(), source, blanked(source))
    status = report.finish()
    sizes = ", ".join(f"{target} {counts[target]}" for target in TARGETS if target in counts)
    print(f"architecture: {'kept' if status == 0 else f'{len(report.breaches)} breaches'} (lines: {sizes})")
    return status


if __name__ == "__main__":
    sys.exit(main())
