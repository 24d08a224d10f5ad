import CacheCore
import Testing
import TestChance

@Suite struct ByteSizeTests {
    @Test(
        "Parses sizes",
        arguments: [
            ("20GiB", 20 << 30), ("512KiB", 512 << 10), ("10MB", 10_000_000), ("123", 123), ("0", 0), ("1TiB", 1 << 40),
            ("2tb", 2_000_000_000_000), ("3gb", 3_000_000_000), ("7kB", 7000), ("8mib", 8 << 20), ("5B", 5),
        ] as [(String, Int64)])
    func readsSizes(text: String, bytes: Int64) throws {
        #expect(try ByteSize.parse(text) == bytes)
    }

    @Test(
        "Rejects a malformed size and names the field",
        arguments: [
            "", "GiB", "1.5GiB", "-1", "+1", "1 GiB", "1GiBs", "1K", "99999999999999999999", "9000000TiB", "0x10", "１",
        ])
    func refusesWhatIsNoSizeAndNamesTheField(text: String) {
        AssetKeyTests.expect(.invalidField("store.capacity")) { () throws(CacheError) in
            _ = try ByteSize.parse(text, field: "store.capacity")
        }
    }

    @Test("Writes the shortest exact size")
    func writesTheShortestExactText() throws {
        #expect(ByteSize.format(20 << 30) == "20GiB")
        #expect(ByteSize.format(1536) == "1536")
        #expect(ByteSize.format(1 << 20) == "1MiB")
        #expect(ByteSize.format(0) == "0")
        var (random, seed) = SeededRandom.announced()
        for _ in 0..<1000 {
            let bytes = Int64.random(in: 0..<1 << 20, using: &random) << Int64.random(in: 0..<40, using: &random)
            #expect(try ByteSize.parse(ByteSize.format(bytes)) == bytes, "seed \(seed)")
        }
    }
}

@Suite struct DurationTextTests {
    @Test(
        "Parses and writes durations",
        arguments: [
            ("5s", .seconds(5)), ("250ms", .milliseconds(250)), ("10m", .seconds(600)), ("1h", .seconds(3600)),
            ("2d", .seconds(172_800)), ("0s", .zero),
        ] as [(String, Duration)])
    func readsAndWritesDurations(text: String, duration: Duration) throws {
        #expect(try DurationText.parse(text) == duration)
        #expect(DurationText.format(duration) == text)
    }

    @Test(
        "Rejects a malformed duration and names the field",
        arguments: ["", "5", "s", "5 s", "5S", "-5s", "1.5s", "5sec", "99999999999999999999s", "999999999999999999d"])
    func refusesWhatIsNoneAndNamesTheField(text: String) {
        AssetKeyTests.expect(.invalidField("timeouts.idle")) { () throws(CacheError) in
            _ = try DurationText.parse(text, field: "timeouts.idle")
        }
    }

    @Test("Writes the shortest exact duration")
    func writesTheShortestExactText() {
        #expect(DurationText.format(.seconds(90)) == "90s")
        #expect(DurationText.format(.milliseconds(1500)) == "1500ms")
    }
}
