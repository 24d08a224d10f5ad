import CacheCore
import Testing
import TestChance

/// Parsers of untrusted text: none traps, and every accepted value survives a round trip.
@Suite struct TotalParsersTests {
    private static let now = Timestamp(seconds: 1_795_248_000)
    private static let seeds = [
        "bytes=0-499,-5,9223372036854775807-", "bytes 0-9223372036854775807/*", "Sun, 06 Nov 1994 08:49:37 GMT",
        "2026-11-21T08:00:00.123+23:59", "max-age=\"60\", s-maxage=1", "W/\"a\", \"b\"", "20GiB", "250ms",
        "a/%2e%2E/..%2f",
    ]

    /// A valid text with random insertions, repetitions and deletions.
    private static func mangled(_ random: inout SeededRandom) -> String {
        var bytes = Array(seeds[Int.random(in: 0..<seeds.count, using: &random)].utf8)
        let alphabet = Array("0123456789-=,/*\"\\ %:;.\t+TZWGé\u{0}\r\n".utf8)
        for _ in 0..<Int.random(in: 0..<6, using: &random) {
            let place = Int.random(in: 0...bytes.count, using: &random)
            switch Int.random(in: 0..<3, using: &random) {
            case 0 where place < bytes.count: bytes.remove(at: place)
            case 1: bytes += bytes.prefix(place)
            default: bytes.insert(alphabet[Int.random(in: 0..<alphabet.count, using: &random)], at: place)
            }
        }
        return String(decoding: bytes.prefix(2000), as: UTF8.self)
    }

    @Test("An accepted text parses the same after being written")
    func whatIsAcceptedReadsTheSameAfterBeingWritten() {
        var (random, seed) = SeededRandom.announced()
        for _ in 0..<20_000 {
            let text = Self.mangled(&random)
            if let range = ContentRange.parse(text) {
                #expect(ContentRange.parse(range.description) == range, "\(text), seed \(seed)")
            }
            if let tag = EntityTag(text) { #expect(EntityTag(tag.description) == tag, "\(text), seed \(seed)") }
            if let time = HTTPDate.parse(text, now: Self.now) {
                #expect(HTTPDate.parse(HTTPDate.format(time), now: Self.now) == time, "\(text), seed \(seed)")
            }
            if let path = PercentEncoding.normalized(path: text) {
                #expect(PercentEncoding.normalized(path: path) == path, "\(text), seed \(seed)")
            }
            let query = PercentEncoding.normalized(query: text)
            #expect(PercentEncoding.normalized(query: query) == query, "\(text), seed \(seed)")
        }
    }

    @Test("Every request has a plan with the length of its body")
    func everyRequestHasAPlanWhoseLengthIsItsBodys() {
        var (random, seed) = SeededRandom.announced()
        let names = ["Range", "If-Range", "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since"]
        for _ in 0..<20_000 {
            var headers: HeaderList = [:]
            for name in names where Bool.random(using: &random) { headers.append(name, Self.mangled(&random)) }
            let length = [0, 1, 1000, Int64.max].randomElement(using: &random)
            let generation = Generation(
                length: length, validators: Validators(entityTag: EntityTag("\"b\"")), receivedAt: Self.now)

            let plan = ContentPlan.make(
                ContentRequest(headers: headers), generation: generation, now: Self.now, boundary: "B")

            let sum = plan.body.reduce(Int64(0)) { sum, segment in
                switch segment {
                case .bytes(let run): sum + run.length
                case .text(let text): sum + Int64(text.count)
                }
            }
            #expect([200, 206, 304, 412, 416].contains(plan.status), "seed \(seed)")
            #expect(plan.contentLength == sum, "\(headers), seed \(seed)")
            #expect(plan.neededRanges.allSatisfy { $0.upperBound <= length ?? 0 }, "\(headers), seed \(seed)")
        }
    }

    @Test("Every head gets a verdict, and a window never exceeds the request")
    func everyHeadHasAJudgementAndAWindowIsNeverMoreThanWasAsked() {
        var (random, seed) = SeededRandom.announced()
        let names = [
            "Content-Range", "Content-Length", "ETag", "Last-Modified", "Date", "Age", "Cache-Control", "Expires",
        ]
        for _ in 0..<20_000 {
            var headers: HeaderList = ["Content-Range": "bytes 0-9/10"]
            for name in names where Bool.random(using: &random) { headers.append(name, Self.mangled(&random)) }
            let head = UpstreamHead(
                status: [200, 206, 206, 206, 304, 416].randomElement(using: &random) ?? 206, headers: headers)
            let expectation = WindowExpectation(
                window: .closed(0..<100), known: nil, now: Self.now, freshness: .respect, path: "a.mp4")

            if case .window(let run, let generation) = ResponseVerdict.judge(head, expecting: expectation) {
                #expect(run.lowerBound == 0 && run.upperBound <= 100, "\(headers), seed \(seed)")
                #expect(run.upperBound == 100 || run.upperBound == generation.length, "\(headers), seed \(seed)")
            }
        }
    }

    @Test("Sizes and durations never trap")
    func sizesAndDurationsNeverTrap() {
        var (random, seed) = SeededRandom.announced()
        var refused = 0
        for _ in 0..<20_000 {
            let text = Self.mangled(&random)
            do {
                #expect(try ByteSize.parse(text) >= 0, "\(text), seed \(seed)")
            } catch { refused += 1 }
            do {
                #expect(try DurationText.parse(text) >= .zero, "\(text), seed \(seed)")
            } catch { refused += 1 }
            if let time = RFC3339.parse(text) {
                #expect(RFC3339.parse(RFC3339.format(time)) == time, "\(text), seed \(seed)")
            }
            _ = CacheControl.parse([text])
        }
        #expect(refused > 0)
    }
}
