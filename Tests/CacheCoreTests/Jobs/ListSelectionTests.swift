import CacheCore
import Testing

@Suite struct ListSelectionTests {
    private static let now = Timestamp(seconds: 1_800_000_000)
    private static let entries = [
        ListingEntry(reference: "films/a%20b.mp4", bytes: 100, modifiedAt: now - .seconds(60)),
        ListingEntry(reference: "films/c.mkv", bytes: 200, modifiedAt: now - .seconds(3600)),
        ListingEntry(reference: "films/more/d.mp4?t=1"),
        ListingEntry(reference: "films/more/", isFolder: true),
    ]

    private func selected(_ change: (inout ListSelection) -> Void) -> [String] {
        var selection = ListSelection()
        change(&selection)
        return Self.entries.filter(selection.filter(below: "films/", at: Self.now)).map(\.reference)
    }

    @Test("Without conditions all files are selected, and no folder")
    func all() { #expect(selected { _ in } == Self.entries.dropLast().map(\.reference)) }

    @Test("Patterns match decoded paths relative to the folder")
    func patterns() {
        #expect(selected { $0.include = ["* b.mp4"] } == ["films/a%20b.mp4"])
        #expect(selected { $0.include = ["*.mp4"] } == ["films/a%20b.mp4"])
        #expect(selected { $0.include = ["**/*.mp4"] } == ["films/a%20b.mp4", "films/more/d.mp4?t=1"])
        #expect(selected { $0.include = ["films/*"] } == [])
        #expect(selected { $0.include = ["*.mkv", "more/*"] } == ["films/c.mkv", "films/more/d.mp4?t=1"])
    }

    @Test("Limits for length and age select only files whose listing states them")
    func limits() {
        #expect(selected { $0.minBytes = 0 } == ["films/a%20b.mp4", "films/c.mkv"])
        #expect(selected { ($0.minBytes, $0.maxBytes) = (101, 200) } == ["films/c.mkv"])
        #expect(selected { $0.maxBytes = 100 } == ["films/a%20b.mp4"])
        #expect(selected { $0.maxAgeSeconds = 60 } == ["films/a%20b.mp4"])
        #expect(selected { $0.minAgeSeconds = 61 } == ["films/c.mkv"])
        #expect(selected { $0.minAgeSeconds = 0 } == ["films/a%20b.mp4", "films/c.mkv"])
    }
}
