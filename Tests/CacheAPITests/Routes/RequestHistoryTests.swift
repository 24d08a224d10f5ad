import CacheCore
import CacheEngine
import CacheTestKit
import Logging
import NIOCore
import ReaderAccess
import Testing

@testable import CacheAPI

/// The ended requests in memory, their filters, and the events of their stream.
@Suite struct RequestHistoryTests {
    private let log = EventLog(wallClock: ManualWallClock())

    /// An ended request.
    private static func line(
        _ path: String = "/o/media/a", status: Int = 206, result: ReadOutcome.Class? = .hit, token: String? = nil,
        kind: RequestKind = .content, seconds: Int = 1, id: String = "r"
    ) -> AccessLog.Line {
        var figures = RequestLogContext.Content()
        (figures.result, figures.outcome) = (result, result?.rawValue)
        let asset = kind == .content ? AssetName(id: Samples.id, key: path, origin: "media") : nil
        return AccessLog.Line(
            LoggedRequest(kind: kind, method: "GET", path: path, asset: asset, token: token), client: "192.0.2.1",
            startedAt: Samples.time, requestID: .text(id), status: status, figures, duration: .seconds(seconds))
    }

    @Test("The last 10,000 requests are kept, in the order of their ends")
    func theLastRequestsAreKept() {
        let history = RequestHistory(events: log)
        for number in 0..<10_500 { history.add(Self.line("/o/media/\(number)")) }
        let part = history.part(upTo: log.lastID)
        #expect(part.entries.count == RequestHistory.capacity && part.total == 10_500)
        #expect(part.entries.map(\.line.request.path) == (500..<10_500).map { "/o/media/\($0)" })
        #expect(part.lastDiscarded.map { $0 < part.entries[0].id } == true)
        let after = history.part(after: part.entries[9_989].id, upTo: part.entries[9_994].id)
        #expect(after.entries.map(\.id) == part.entries[9_990...9_994].map(\.id) && after.total == 10_495)
    }

    @Test("Long texts shorten the history, so that its memory has a limit")
    func theMemoryHasALimit() {
        let history = RequestHistory(events: log)
        let long = String(repeating: "x", count: 8000)
        // A line is made once, because the check of its path takes long without optimization.
        let line = Self.line("/o/media/0000/\(long)")
        for _ in 0..<8999 { history.add(line) }
        history.add(Self.line("/o/media/8999/\(long)"))
        let entries = history.part(upTo: log.lastID).entries
        let bytes = entries.reduce(0) { $0 + $1.line.request.textBytes }
        #expect(bytes <= RequestHistory.textLimit && bytes > RequestHistory.textLimit * 9 / 10, "\(bytes)")
        #expect(entries.last?.line.request.path.hasPrefix("/o/media/8999/") == true)
    }

    @Test("Concurrent requests have different identifiers, and none is lost")
    func concurrentRequestsAreKept() async {
        let history = RequestHistory(events: log)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 { group.addTask { for _ in 0..<1000 { history.add(Self.line()) } } }
        }
        let entries = history.part(upTo: log.lastID).entries
        #expect(Set(entries.map(\.id)).count == 8000 && entries.map(\.id) == entries.map(\.id).sorted())
    }

    @Test("The path and the range of a request have no query, no token and a bounded length")
    func textsAreBounded() {
        let request = LoggedRequest(method: "GET", path: "/o/media/a?sig=s3cret&exp=1")
        #expect(request.path == "/o/media/a")
        #expect(LoggedRange(field: "bytes=" + String(repeating: "0-1,", count: 1000)).text.utf8.count == 64)
        #expect(LoggedRange.bytes(5..<10).text == "bytes=5-9")
    }

    @Test(
        "A filter selects by each condition",
        arguments: [
            ("", 4), ("origin=media", 3), ("origin=other", 0), ("prefix=/o/media/b", 1), ("prefix=/v1", 1),
            ("token=player", 1), ("status=404", 1), ("status=2xx", 3), ("status=5xx", 0), ("result=miss", 1),
            ("minSeconds=9.5", 1), ("kind=api", 1), ("kind=content&result=hit", 1),
            ("assetId=9f86d081884c7d659a2feaa0c55ad015", 3), ("assetId=00000000000000000000000000000000", 0),
        ])
    func filtersSelect(query: String, count: Int) throws {
        let lines = [
            Self.line(token: "player", seconds: 10), Self.line("/o/media/b", result: .miss),
            Self.line("/o/media/c", status: 404, result: .error),
            Self.line("/v1/jobs", status: 200, result: nil, kind: .api),
        ]
        let filter = try RequestFilter(QueryFields(query, accepting: RequestFilter.parameters), for: nil)
        #expect(lines.filter(filter.matches).count == count)
    }

    @Test(
        "Other values of conditions are refused",
        arguments: ["status=9xx", "status=2x", "status=99", "result=won", "kind=health", "minSeconds=-1", "assetId=1"])
    func invalidFiltersAreRefused(query: String) {
        #expect(throws: CacheError.self) {
            try RequestFilter(QueryFields(query, accepting: RequestFilter.parameters), for: nil)
        }
    }

    @Test("A limited reader sees the requests for assets inside its limits only")
    func limitsAreApplied() throws {
        let reader = Reader(id: "team", scope: .admin, prefixes: ["/o/media/a"])
        let filter = try RequestFilter(QueryFields(nil, accepting: []), for: reader)
        let lines = [Self.line("/o/media/a1"), Self.line("/o/media/b"), Self.line("/v1/jobs", kind: .api)]
        #expect(lines.filter(filter.matches).map(\.request.path) == ["/o/media/a1"])
        #expect(!reader.seesClients && Reader(id: "x", scope: .admin).seesClients)
        #expect(!Reader(id: "x", scope: .write).seesClients)
    }

    // MARK: Events

    private func renderer(_ history: RequestHistory, _ topics: Set<CacheEvent.Topic> = [.requests], last: Int64? = nil)
        -> RequestEventRenderer
    {
        RequestEventRenderer(topics: topics, filter: RequestFilter(), showsClients: true, history: history, last: last)
    }

    private func texts(_ renderer: inout RequestEventRenderer, _ feed: EventFeed) -> [String] {
        String(buffer: renderer.part(.events, feed)).split(separator: "\n\n").map(String.init)
    }

    @Test("A stream has the requests and the other events in the order of their identifiers")
    func requestsAndEventsAreOrdered() {
        let history = RequestHistory(events: log)
        let feed = EventFeed(log: log, clock: ContinuousClock(), requests: history)
        var renderer = renderer(history, [.requests, .health])
        history.add(Self.line("/before"))
        #expect(texts(&renderer, feed) == [])
        history.add(Self.line("/one"))
        log.publish(.readiness(isReady: true, reasons: []))
        history.add(Self.line("/two"))
        let found = texts(&renderer, feed)
        #expect(found.count == 3 && found[0].contains("\"/one\"") && found[2].contains("\"/two\""), "\(found)")
        #expect(found[1].contains("event: health"))
        #expect(found[2].hasPrefix("id: \(log.lastID)\nevent: requests\n"))
        #expect(texts(&renderer, feed) == [])

        var again = self.renderer(history, last: log.lastID - 1)
        #expect(texts(&again, feed).count == 1)
    }

    @Test("At most 1,000 requests are sent in a second; the number of the others is an event")
    func manyRequestsAreCounted() {
        let history = RequestHistory(events: log)
        let feed = EventFeed(log: log, clock: ContinuousClock(), requests: history)
        var renderer = renderer(history)
        _ = texts(&renderer, feed)
        for _ in 0..<12_000 { history.add(Self.line()) }
        let found = texts(&renderer, feed)
        // 2,000 are no longer kept, and 9,000 exceed the rate.
        #expect(found.count == 1001)
        #expect(found.last?.contains("\"type\":\"omitted\",\"omitted\":11000") == true, "\(found.last ?? "")")

        var rate = RequestEventRenderer.RateLimit()
        #expect(rate.claim(700, at: .milliseconds(100)) == 700)
        #expect(rate.claim(700, at: .milliseconds(999)) == 300 && rate.claim(1, at: .milliseconds(999)) == 0)
        #expect(rate.claim(5000, at: .milliseconds(1000)) == 1000)
    }

    // MARK: Failures

    @Test("Ten failures of an origin are logged in a second, the others are counted")
    func failuresAreLimited() {
        var limiter = FailureLimiter()
        #expect((0..<15).filter { _ in limiter.admits("a") }.count == 10)
        #expect((0..<3).filter { _ in limiter.admits("b") }.count == 3)
        let rest = limiter.endSecond()
        #expect(rest.map(\.origin) == ["a"] && rest.map(\.count) == [5])
        #expect(limiter.admits("a") && limiter.endSecond().isEmpty)
        for number in 0..<5000 { _ = limiter.admits("o\(number)") }
        #expect(limiter.endSecond().map(\.origin) == ["(other)"])
    }

    @Test("A failure names its origin and its range; states that clients ask for are no failures")
    func failuresAreNamed() {
        let record = LogRecord()
        let failures = FailureLog(logger: record.logger, clock: ContinuousClock())
        var figures = RequestLogContext.Content()
        (figures.result, figures.outcome, figures.range) = (.error, "upstreamRefused", .bytes(0..<10))
        figures.upstreamStatus = 503
        func line(_ kind: RequestKind, _ outcome: String) -> AccessLog.Line {
            figures.outcome = outcome
            return AccessLog.Line(
                LoggedRequest(
                    kind: kind, method: "GET", path: "/o/media/a",
                    asset: AssetName(id: nil, key: nil, origin: "media")), client: nil, startedAt: Samples.time,
                requestID: .text("r"), status: 502, figures, duration: .zero)
        }
        for (kind, outcome): (RequestKind, String) in [
            (.health, "overloaded"), (.peer, "notCached"), (.content, "notCached"), (.content, "upstreamRefused"),
        ] {
            failures.note(line(kind, outcome))
        }
        let lines = record.lines.filter { $0["message"] == "a request failed" }
        #expect(lines.count == 1)
        #expect(lines.first?["origin"] == "media" && lines.first?["range"] == "bytes=0-9")
        #expect(lines.first?["upstreamStatus"] == "503" && lines.first?["code"] == "upstreamRefused")
    }
}
