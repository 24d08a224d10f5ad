import CacheCore
import Testing
import TestChance

@Suite struct HTTPDateTests {
    private let now = Timestamp(seconds: 1_795_248_000)  // 2026-11-21

    @Test(
        "Parses all three date formats",
        arguments: [
            "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
            "sun, 06 nov 1994 08:49:37 gmt", "SUNDAY, 06-NOV-94 08:49:37 GMT", "sun nov  6 08:49:37 1994",
        ])
    func readsAllThreeForms(text: String) {
        #expect(HTTPDate.parse(text, now: now) == Timestamp(seconds: 784_111_777))
    }

    private static let moments: [(Int64, String)] = [
        (Int64(0), "Thu, 01 Jan 1970 00:00:00 GMT"), (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
        (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"), (-1, "Wed, 31 Dec 1969 23:59:59 GMT"),
        (253_402_300_799, "Fri, 31 Dec 9999 23:59:59 GMT"), (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
    ]

    @Test("Writes the IMF-fixdate format", arguments: moments)
    func writesTheFixedForm(seconds: Int64, text: String) {
        #expect(HTTPDate.format(Timestamp(seconds: seconds)) == text)
        #expect(HTTPDate.parse(text, now: now) == Timestamp(seconds: seconds))
    }

    @Test(
        "A two-digit year is at most fifty years ahead",
        arguments: [("94", 1994), ("26", 2026), ("76", 2076), ("77", 1977), ("00", 2000)])
    func takesTwoDigitsForAYearAtMostFiftyAhead(digits: String, year: Int) {
        let short = HTTPDate.parse("Sunday, 06-Nov-\(digits) 08:49:37 GMT", now: now)
        let long = HTTPDate.parse("Sun, 06 Nov \(year) 08:49:37 GMT", now: now)

        #expect(short != nil)
        #expect(short == long)
    }

    @Test(
        "Rejects malformed dates",
        arguments: [
            "", "0", "-1", "Sun, 31 Feb 2021 00:00:00 GMT", "Sun, 06 Nov 1994 24:00:00 GMT",
            "Sun, 06 Nov 1994 08:49:37 CET",
            "Sun, 06 Nov 1994 08:49:37 GMT ,", "Sun, 6 Nov 1994 08:49:37 GMT", "Xyz, 06 Nov 1994 08:49:37 GMT",
            "1994-11-06T08:49:37Z", "Thu, 29 Feb 1900 00:00:00 GMT", "Sun, 00 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:60:37 GMT", "Sun Nov 06", "Sunday, 06-Nov-1994 08:49:37 GMT",
        ])
    func refusesWhatIsNoDate(text: String) {
        #expect(HTTPDate.parse(text, now: now) == nil)
    }

    @Test("A written date parses to the same time")
    func readsWhatItWrites() {
        var (random, seed) = SeededRandom.announced()
        for _ in 0..<2000 {
            let time = Timestamp(seconds: Int64.random(in: -62_167_219_200...253_402_300_799, using: &random))
            #expect(HTTPDate.parse(HTTPDate.format(time), now: now) == time, "seed \(seed)")
        }
    }

    @Test("Times beyond the calendar are clamped to its limits")
    func movesMomentsBeyondTheCalendarToItsEdge() {
        #expect(HTTPDate.format(Timestamp(milliseconds: .max)) == "Fri, 31 Dec 9999 23:59:59 GMT")
        #expect(HTTPDate.format(Timestamp(milliseconds: .min + 1000)) == "Sat, 01 Jan 0000 00:00:00 GMT")
    }
}
