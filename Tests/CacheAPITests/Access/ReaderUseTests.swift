@testable import CacheAPI
import CacheCore
import CacheEngine
import CacheTestKit
import ReaderAccess
import Testing

/// Expiry, rates and counters of readers.
@Suite(.timeLimit(.minutes(20))) struct ReaderUseTests {
    private static func bearer(_ token: String) -> HeaderList { ["Authorization": "Bearer \(token)"] }

    @Test("An expired token is refused, also for a prepared response", .bothRoads)
    func anExpiredTokenIsRefused() async throws {
        let end = RFC3339.format(Timestamp(seconds: 1_780_000_000) + .seconds(60))
        let access = try TestAccess.rules([("short", #""scope":"read","expiresAt":"\#(end)""#)])
        try await TestService.run(access: access, change: { $0.access = .token }) { (service) async throws in
            service.upstream.serve("/a.mp4", LoopbackAsset(size: 1000))
            let connection = try await RawConnection(port: service.port)
            func response() async throws -> RawResponse {
                try await connection.request("GET", "/o/media/a.mp4", Self.bearer("short"))
                return try #require(try await connection.response())
            }
            for _ in 0..<4 { #expect(try await response().status == 200) }
            service.wallClock.advance(by: .seconds(59))
            #expect(try await response().status == 200)
            service.wallClock.advance(by: .seconds(1))
            let late = try await response()
            #expect(late.status == 401)
            #expect(late.text.contains("The token short has expired."))
            try await connection.hangUp()
        }
    }

    @Test("A removed token is refused, also for a prepared response", .bothRoads)
    func aRemovedTokenIsRefused() async throws {
        let access = try TestAccess.rules([("a", #""scope":"read""#), ("b", #""scope":"read""#)])
        let live = LiveAPISettings(.init(access: access, cors: CORSRules()))
        try await TestService.run(access: access, change: { $0.access = .token }, live: live) {
            (service) async throws in
            service.upstream.serve("/a.mp4", LoopbackAsset(size: 1000))
            let connection = try await RawConnection(port: service.port)
            func status(_ token: String) async throws -> Int? {
                try await connection.request("GET", "/o/media/a.mp4", Self.bearer(token))
                return try await connection.response()?.status
            }
            for _ in 0..<4 { #expect(try await status("a") == 200) }
            access.directory.update(file: try TestAccess.file([("b", #""scope":"read""#)]))
            live.replace { $0 }
            #expect(try await status("a") == 401)
            #expect(try await status("b") == 200)
            try await connection.hangUp()
        }
    }

    @Test("A service whose tokens are all gone stays closed")
    func anEmptyFileDoesNotOpenTheService() async throws {
        let access = AccessRules(ReaderDirectory(), hasNoSources: false)
        try await TestService.run(access: access) { (service) async throws in
            #expect(try await service.call("GET", "/v1/stats").status == 401)
            #expect(try await service.call("GET", "/v1/stats", Self.bearer("any")).status == 401)
        }
    }

    @Test("Requests and bytes are counted for each reader on both paths", .bothRoads)
    func readersAreCounted() async throws {
        let access = try TestAccess.rules([
            ("boss", #""scope":"admin""#), ("one", #""scope":"read""#), ("two", #""scope":"read""#),
        ])
        try await TestService.run(access: access, change: { $0.access = .token }) { (service) async throws in
            service.upstream.serve("/a.mp4", LoopbackAsset(size: 1000))
            for _ in 0..<5 {
                #expect(try await service.call("GET", "/o/media/a.mp4", Self.bearer("one")).status == 200)
            }
            let range: HeaderList = ["Authorization": "Bearer two", "Range": "bytes=0-9"]
            #expect(try await service.call("GET", "/o/media/a.mp4", range).status == 206)
            #expect(try await service.call("HEAD", "/o/media/a.mp4", Self.bearer("two")).status == 200)
            #expect(try await service.call("HEAD", "/o/media/none.mp4", Self.bearer("two")).status == 404)
            #expect(try await service.call("GET", "/o/media/a.mp4", Self.bearer("none")).status == 401)
            let counted = try await eventually {
                let stats = try await service.call("GET", "/v1/stats", Self.bearer("boss")).json()
                let readers = stats["readers"]?.array ?? []
                return readers.map { [$0["token"], $0["requests"], $0["bytes"], $0["bytesFromCache"], $0["errors"]] }
                    == [
                        ["one", 5, 5000, 4000, 0], ["two", 3, 10, 10, 1],
                    ]
            }
            #expect(counted)
            let metrics = try await service.call("GET", "/metrics", Self.bearer("boss")).text
            #expect(metrics.contains("larder_reader_requests_total{token=\"one\"} 5\n"))
            #expect(metrics.contains("larder_reader_bytes_total{token=\"two\"} 10\n"))
            #expect(metrics.contains("larder_reader_bytes_saved_total{token=\"one\"} 4000\n"))
        }
    }

    @Test("Metrics label the first hundred readers only")
    func metricsAreBounded() throws {
        let figures = ReaderFigures()
        for number in 0..<150 { figures.add(to: "r\(number)", requests: Int64(number + 1), bytes: 1) }
        var text = PrometheusText()
        text.add(Figure<ReaderUsage>.all, figures.snapshot().labelled)
        let rows = text.text.split(separator: "\n").filter { $0.hasPrefix("larder_reader_requests_total{") }
        #expect(rows.count == 101)
        #expect(rows.contains("larder_reader_requests_total{token=\"(other)\"} \((101...150).reduce(0, +))"))
        #expect(rows.contains("larder_reader_requests_total{token=\"r99\"} 100"))
        #expect(!rows.contains { $0.contains("\"r100\"") })
    }

    @Test("The saved cost is that of the cached bytes")
    func theSavedCost() throws {
        let figures = ReaderFigures()
        figures.add(to: "a", requests: 1, bytes: 3_000_000_000, bytesFromCache: 2_000_000_000)
        let usage = try #require(figures.snapshot().first)
        #expect(usage.document(pricePerGigabyte: 0.05).json["savedCost"] == .number(0.1))
        #expect(usage.document(pricePerGigabyte: nil).json["savedCost"] == .null)
    }

    @Test("A rate holds for all connections of a reader together", .bothRoads)
    func aRateIsKept() async throws {
        let access = try TestAccess.rules([
            ("slow", #""scope":"read","maxBytesPerSecond":100000"#), ("fast", #""scope":"read""#),
        ])
        try await TestService.run(access: access, change: { $0.access = .token }) { (service) async throws in
            service.upstream.serve("/a.mp4", LoopbackAsset(size: 100_000))
            let whole = try await service.call("GET", "/o/media/a.mp4", Self.bearer("fast")).body
            let clock = ContinuousClock()
            // A full bucket admits the first of three bodies at once.
            let time = try await clock.measure {
                try await withThrowingTaskGroup(of: RawResponse.self) { group in
                    for _ in 0..<3 {
                        group.addTask { try await service.call("GET", "/o/media/a.mp4", Self.bearer("slow")) }
                    }
                    for try await response in group { #expect(response.status == 200 && response.body == whole) }
                }
            }
            #expect(time > .milliseconds(1900), "\(time)")
            #expect(time < .seconds(60), "\(time)")
            let quick = try await clock.measure {
                let response = try await service.call("GET", "/o/media/a.mp4", Self.bearer("fast"))
                #expect(response.body == whole)
            }
            #expect(quick < .seconds(2), "\(quick)")
        }
    }
}
