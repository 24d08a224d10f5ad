import CacheCore
import Testing

@testable import LarderServer

@Suite struct TextOutputTests {
    @Test("Columns are aligned, and lines have no blanks at the end")
    func columnsAreAligned() {
        var table = TextTable(.leading("name"), .trailing("bytes"), .leading("note"))
        table.add("a", "1.5 MiB", "")
        table.add("longer", "3 B", "x")

        #expect(table.text == "name      bytes  note\na       1.5 MiB\nlonger      3 B  x")
    }

    @Test("A table of names and values has no titles")
    func namesAndValuesHaveNoTitles() {
        var table = TextTable()
        table.add("state", "failed")
        table.add("job", "7")

        #expect(table.text == "state  failed\njob    7")
    }

    @Test("Lines that are taken while a list is read have the titles once, and columns that never become narrower")
    func takenLines() {
        var table = TextTable(.leading("name"), .trailing("bytes"), .leading("note"))
        table.add("long name", "1", "a")
        #expect(table.takeLines() == "name       bytes  note\nlong name      1  a")
        table.add("x", "1234567", "b")
        #expect(table.takeLines() == "x          1234567  b")
        table.add("y", "2")
        #expect(table.takeLines() == "y                2")
    }

    @Test("Members of a document on the command line are JSON, sizes or texts, at any depth")
    func assignments() throws {
        let document = try Assignments.document([
            "baseURL=https://up.test/a=b", "retries=3", "timeouts.idleSeconds=30", "quota.maxBytes=2GiB", "tls=null",
            "keyQuery={\"include\":[\"v\"]}", "label=2GiB",
        ])
        #expect(
            document == [
                "baseURL": "https://up.test/a=b", "retries": 3, "timeouts": ["idleSeconds": 30],
                "quota": ["maxBytes": 2_147_483_648], "tls": .null, "keyQuery": ["include": ["v"]], "label": "2GiB",
            ])
        for word in ["retries", "=3", ""] { #expect(throws: (any Error).self) { try Assignments.document([word]) } }
        #expect(Assignments.table(of: ["a": ["b": 1, "c": "x"], "d": []]) == "a.b  1\na.c  x\nd    []")
    }

    @Test("Control characters of other parties do not reach the terminal")
    func controlCharactersAreReplaced() {
        var table = TextTable(.leading("label"))
        table.add("a\u{1B}[2Jb\n\u{9B}c\u{202E}d")

        #expect(table.text == "label\na\u{FFFD}[2Jb\u{FFFD}\u{FFFD}c\u{FFFD}d")
        #expect(PrintableText.of("plain – 日本 👩‍👩‍👧") == "plain – 日本 👩‍👩‍👧")
    }

    @Test(
        "Sizes have a unit and three significant digits",
        arguments: [
            (0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1_048_064, "1.0 MiB"), (1_572_864, "1.5 MiB"),
            (104_857_600, "100 MiB"), (10_737_418_240, "10.0 GiB"), (.max, "8.0 EiB"),
        ] as [(Int64, String)])
    func sizesHaveAUnit(_ bytes: Int64, _ text: String) { #expect(FigureText.bytes(bytes) == text) }

    @Test(
        "Time spans have two units at most",
        arguments: [
            (0, "0 s"), (0.2, "1 s"), (59.5, "1 min"), (200, "3 min 20 s"), (7500, "2 h 5 min"), (90_061, "1 d 1 h"),
            (-3, "0 s"), (.infinity, "11574074074 d 1 h"),
        ] as [(Double, String)])
    func spansHaveTwoUnits(_ seconds: Double, _ text: String) { #expect(FigureText.span(seconds) == text) }

    @Test("Counts, shares, latencies and ages are short")
    func otherFiguresAreShort() {
        #expect([0, 999, 1000, -1_234_567].map { FigureText.count($0) } == ["0", "999", "1,000", "-1,234,567"])
        #expect([1, 2].map { FigureText.count($0, "item") } == ["1 item", "2 items"])
        #expect([nil, 0.97342, 1].map { FigureText.share($0) } == ["–", "97.3 %", "100.0 %"])
        #expect(
            [0.0004, 0.0099, 0.0121, 1.24, 12].map(FigureText.latency) == [
                "0.4 ms", "9.9 ms", "12 ms", "1.2 s", "12 s",
            ])
        #expect([0, 59, 61, 7300].map(FigureText.age) == ["now", "59 s ago", "1 min ago", "2 h ago"])
    }

    @Test("A sparkline is scaled to its largest value, with the newest at the right end")
    func aSparklineIsScaled() {
        #expect(Sparkline.text([0, 1, 4, 8], width: 6) == "  ▁▁▄█")
        #expect(Sparkline.text([9, 9, 0, 2], width: 2) == "▁█")
        #expect(Sparkline.text([0, 0], width: 2) == "▁▁" && Sparkline.text([], width: 2) == "  ")
        #expect(Sparkline.text([0.5], width: 1, top: 1) == "▄" && Sparkline.text([1], width: 0) == "")
    }

    @Test("A progress line has a bar, the share and the figures")
    func aProgressLineHasABar() {
        let line = ProgressLine(share: 0.5, figures: ["5 B of 10 B", "1 B/s"])

        #expect(line.text(columns: 40) == "[█████░░░░░░]   50 %  5 B of 10 B  1 B/s")
        #expect(line.plain == "50 %, 5 B of 10 B, 1 B/s")
    }

    @Test("A progress line fits every terminal", arguments: 0...120)
    func aProgressLineFits(_ columns: Int) {
        for share in [nil, 0, 0.999, 1, 2] {
            let line = ProgressLine(
                share: share, figures: ["12.3 MiB of 27.0 MiB", "4.1 MiB/s", "4 s left", "1 of 3 items"])
            #expect(line.text(columns: columns).count <= columns)
        }
    }

    @Test("A bar is full only at the end, and is empty while the whole is unknown")
    func aBarIsFullAtTheEnd() {
        #expect(ProgressLine.bar(0.999, width: 4) == "███░" && ProgressLine.bar(1, width: 4) == "████")
        #expect(ProgressLine(share: nil, figures: ["5 B"]).text(columns: 80).hasPrefix("[░░░"))
        #expect(ProgressLine(bytes: 0, of: 0, verb: "verified").share == 1)
    }

    @Test("Updates are at most four times a second")
    func updatesAreThrottled() {
        var throttle = Throttle(interval: ProgressMeter.interval)
        let start = ContinuousClock.now
        let shown = (0..<1000).filter { throttle.isDue(at: start + .milliseconds($0)) }

        #expect(shown == [0, 250, 500, 750])
    }
}
