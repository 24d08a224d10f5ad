import CacheCore
import Testing
import TestChance

@Suite struct RFC3339Tests {
    @Test("Writes milliseconds in UTC")
    func writesMillisecondsInUTC() {
        #expect(RFC3339.format(Timestamp(milliseconds: 1_795_248_000_123)) == "2026-11-21T08:00:00.123Z")
        #expect(RFC3339.format(Timestamp(milliseconds: -1)) == "1969-12-31T23:59:59.999Z")
        #expect(RFC3339.format(Timestamp(milliseconds: .max)) == "9999-12-31T23:59:59.000Z")
    }

    private static let examples: [(String, Int64)] = [
        ("1985-04-12T23:20:50.52Z", Int64(482_196_050_520)), ("1996-12-19T16:39:57-08:00", 851_042_397_000),
        ("1990-12-31T23:59:60Z", 662_688_000_000), ("1937-01-01T12:00:27.87+00:20", -1_041_337_172_130),
        ("2026-11-21t08:00:00.123456z", 1_795_248_000_123), ("2026-11-21 08:00:00Z", 1_795_248_000_000),
    ]

    @Test("Parses the examples of the specification", arguments: examples)
    func readsTheExamplesOfTheSpecification(text: String, milliseconds: Int64) {
        #expect(RFC3339.parse(text) == Timestamp(milliseconds: milliseconds))
    }

    @Test(
        "Rejects malformed timestamps",
        arguments: [
            "", "2026-11-21", "2026-11-21T08:00:00", "2026-02-29T08:00:00Z", "2026-11-21T25:00:00Z",
            "2026-11-21T08:00:00.Z",
            "2026-11-21T08:00:00+24:00", "2026-11-21T08:00:00+0100", "2026-11-21T08:00:00Zx", "26-11-21T08:00:00Z",
            "0000-01-01T00:00:00+00:01", "9999-12-31T23:59:60Z",
        ])
    func refusesWhatIsNone(text: String) {
        #expect(RFC3339.parse(text) == nil)
    }

    @Test("A written timestamp parses to the same time")
    func readsWhatItWrites() {
        var (random, seed) = SeededRandom.announced()
        for _ in 0..<2000 {
            let time = Timestamp(
                milliseconds: Int64.random(in: -62_167_219_200_000...253_402_300_799_999, using: &random))
            #expect(RFC3339.parse(RFC3339.format(time)) == time, "seed \(seed)")
        }
    }
}
