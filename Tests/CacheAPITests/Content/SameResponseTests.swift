import CacheCore
import CacheStore
import CacheTestKit
import Synchronization
import Testing

@testable import CacheAPI
@testable import CacheEngine

/// Responses, statistics and logs are the same with and without the fast path.
@Suite(.timeLimit(.minutes(20))) struct SameResponseTests {
    /// Responses, statistics and log lines of one run.
    private struct Told {
        var answers: [String] = []
        var bodies: [[UInt8]] = []
        var figures = TrafficFigures()
        var hits: Int64 = 0
        var reads: Int64 = 0
        var lines: [[String: String]] = []
    }

    private static let table: [(method: String, headers: HeaderList)] = [
        ("GET", [:]), ("GET", ["Range": "bytes=5-9"]), ("GET", ["Range": "bytes=50000-249999"]),
        ("GET", ["Range": "bytes=-1000"]), ("GET", ["Range": "bytes=300000-"]), ("GET", ["Range": "bytes=0-1,5-9"]),
        ("HEAD", [:]), ("HEAD", ["Range": "bytes=5-9"]), ("GET", ["If-None-Match": "\"v1\""]),
        ("HEAD", ["If-None-Match": "\"v1\""]), ("GET", ["If-Match": "\"other\""]),
        ("GET", ["If-Modified-Since": "Wed, 01 Jan 2025 00:00:00 GMT"]),
        ("GET", ["Range": "bytes=5-9", "If-Range": "\"v1\"", "Origin": "https://p.example"]),
        ("GET", ["Range": "bytes=5-9", "If-Range": "\"v0\"", "X-Request-Id": "mine-1"]),
        ("GET", ["Range": "bytes=5-9", "Connection": "close"]), ("GET", ["Range": "lines=5-9"]),
        ("GET", ["CDN-Loop": "larder"]), ("GET", ["Larder-Timeout": "9", "Range": "bytes=7-9"]),
    ]
    private static let date = "Wed, 01 Jan 2025 00:00:00 GMT"

    /// Sends the requests of the table in order, and collects responses, statistics and log lines.
    private func told(fastPath isFastPathEnabled: Bool) async throws -> Told {
        let told = Mutex(Told())
        try await TestService.$isFastPathEnabled.withValue(isFastPathEnabled) {
            try await TestService.run { (service) async throws in
                service.upstream.serve(
                    "/a.mp4",
                    LoopbackAsset(
                        size: 300_000, contentType: "video/mp4",
                        headers: ["Content-Disposition": "inline", "Vary": "Accept-Language", "Via": "1.0 edge"]))
                // Responses of this asset do not depend on the reader, so repeated requests get prepared responses.
                service.upstream.serve(
                    "/b.mp4", LoopbackAsset(size: 900_000, headers: ["Cache-Status": "Edge;hit", "Date": Self.date]))
                let again = (0..<6).map { ("GET", "/o/media/b.mp4", ["Range": "bytes=\($0 % 3)-99"] as HeaderList) }
                let large = (0..<4).map { ("GET", "/o/media/b.mp4", ["Range": "bytes=\($0)-799999"] as HeaderList) }
                let whole = (0..<3).map { _ in ("GET", "/o/media/b.mp4", [:] as HeaderList) }
                let table = ([("GET", [:])] + Self.table).map { ($0.method, "/o/media/a.mp4", $0.headers) }
                for (method, target, headers) in table + whole + again + large {
                    let response = try await ask(method, target, headers, service)
                    let fields = response.headers.fields.filter { $0.name != "X-Request-Id" || $0.value == "mine-1" }
                    told.withLock { told in
                        // Problems have the date of the real clock, and multipart boundaries are random.
                        let texts = fields.filter { $0.name != "Date" || response.status < 400 }
                            .map { "\($0.name): \($0.value.split(separator: "boundary=")[0])" }
                        told.answers.append("\(response.status) " + texts.sorted().joined(separator: ", "))
                        if response.status < 400, !(response.headers["Content-Type"]?.hasPrefix("multipart") ?? false) {
                            told.bodies.append(response.body)
                        }
                    }
                }
                try await count(in: service, into: told)
            }
        }
        return told.withLock { $0 }
    }

    /// Sends one request. Disconnects after the log line, so that the request is not logged as aborted.
    private func ask(
        _ method: String, _ target: String, _ headers: HeaderList, _ service: TestService
    ) async throws -> RawResponse {
        let before = service.log.requests.count
        let connection = try await RawConnection(port: service.port)
        try await connection.request(method, target, headers)
        let response = try #require(try await connection.response(toHead: method == "HEAD"))
        #expect(try await eventually { service.log.requests.count == before + 1 })
        try await connection.hangUp()
        return response
    }

    private func count(in service: TestService, into told: borrowing Mutex<Told>) async throws {
        let cache = service.cache
        let id = try await cache.resolver.resolve(.mounted(origin: "media", path: "/a.mp4", key: nil)).id
        try await cache.context.commits.flush()
        var figures = try await cache.statistics.snapshot().all
        // The number of waits for the first fill is not deterministic.
        figures.waits = [:]
        let hits = try await cache.context.store.catalog.asset(id)?.record.hits ?? 0
        told.withLock { told in
            told.figures = figures
            told.hits = hits
            told.reads = cache.context.space.with { $0.reads(of: id, in: 0..<300_000) }
            told.lines = service.log.requests.map { line in
                line.filter { !$0.key.hasSuffix("Seconds") && ($0.key != "requestId" || $0.value == "mine-1") }
                    .merging(["hasFirstByte": "\(line["firstByteSeconds"] != nil)"]) { $1 }
            }
        }
    }

    @Test("Responses, counters and log lines are the same with and without the fast path")
    func bothRoadsSayCountAndLogTheSame() async throws {
        let fastPath = try await told(fastPath: true)
        let regular = try await told(fastPath: false)
        for (index, (one, other)) in zip(fastPath.answers, regular.answers).enumerated() {
            #expect(one == other, "\(index)")
        }
        #expect(fastPath.bodies == regular.bodies)
        #expect(fastPath.figures == regular.figures)
        #expect(fastPath.hits == regular.hits && fastPath.reads == regular.reads && fastPath.hits > 0)
        for (one, other) in zip(fastPath.lines, regular.lines) { #expect(one == other) }
        #expect(fastPath.lines.count == regular.lines.count)
    }
}
