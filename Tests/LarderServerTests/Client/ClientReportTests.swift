import CacheCore
import Testing

@testable import CacheAPI
@testable import CacheEngine
@testable import LarderServer

/// Documents of the API as text.
@Suite struct ClientReportTests {
    private static let now = Timestamp(seconds: 1_795_645_920)

    /// The document of a queued job without bytes, with changed members.
    private func job(_ changes: String) throws -> JobDocument {
        let base = JobDocument(
            JobSnapshot(record: JobRecord(id: "80", createdAt: Self.now), tally: JobTally(), version: 1))
        let json = try JSONParser.parse(base.jsonBytes).merged(with: JSONParser.parse(changes.utf8))
        return try json.decode(isStrict: false)
    }

    /// The document of an item, with changed members.
    private func item(_ reference: AssetReference, _ changes: String = "{}") throws -> JobItemDocument {
        let base = JobItemDocument(JobItemRecord(index: 4, reference: reference))
        let json = try JSONParser.parse(base.jsonBytes).merged(with: JSONParser.parse(changes.utf8))
        return try json.decode(isStrict: false)
    }

    private func second(_ at: Int64, requests: Int64 = 4, hits: Int64 = 3, bytes: Int64 = 1024) -> LiveSecondDocument {
        LiveSecondDocument(
            at: Timestamp(seconds: at), clientBytes: bytes + 512, clientBytesFromCache: bytes,
            clientBytesFromUpstream: 512,
            upstreamBytes: 256,
            requests: NamedValues([("total", requests), ("hit", hits), ("miss", requests - hits)]),
            requestHitRatio: 0.75, byteHitRatio: nil, last5Seconds: .absent,
            lastMinute: .value(
                .init(
                    seconds: 60, clientBytesPerSecond: 0, upstreamBytesPerSecond: 0, requestsPerSecond: 0,
                    requests: NamedValues([("total", 1200), ("hit", 1200)]), requestHitRatio: 0.5)),
            last15Minutes: .absent, firstByteSeconds: .init(p50: 0.0004, p95: 0.002, p99: 0.01), activeReaders: 3,
            activeFills: 1)
    }

    @Test("A job is shown with its times, items, bytes and error")
    func aJobIsShown() throws {
        let job = try self.job(
            """
            {"jobId": "80", "state": "failed", "label": "tonight", "queue": null, "priority": "high",
             "createdAt": "2026-11-25T22:30:58.000Z", "startedAt": null, "finishedAt": "2026-11-25T22:31:58.000Z",
             "itemsTotal": 3, "itemsDone": 1, "itemsFailed": 1, "itemsTimedOut": 1, "itemsCancelled": 0, "itemsUnknown": 0,
             "bytesTotal": 3145728, "bytesDone": 2097152, "bytesFromCache": 1572864, "bytesFromUpstream": 524288,
             "bytesPerSecond": 0, "etaSeconds": null, "error": {"code": "upstreamRefused", "message": "It answered 404."}}
            """)

        #expect(
            JobReport(job, at: Self.now).text == """
                job       80
                state     failed
                label     tonight
                priority  high
                created   2026-11-25T22:30:58.000Z, 1 min ago
                finished  2026-11-25T22:31:58.000Z, 2 s ago
                items     1 of 3 items succeeded, 1 failed, 1 timed out
                bytes     2.0 MiB of 3.0 MiB, 1.5 MiB from the cache and 512 KiB from the upstream
                error     upstreamRefused: It answered 404.
                """)
        #expect(JobReport.needsAttention(job))
        #expect(JobWatch.outcome(of: job).hasPrefix("The job failed: 1 of 3 items succeeded"))
    }

    @Test("Waiting items are shown with their cause and the time of the next attempt")
    func waitingItems() throws {
        let job = try self.job(#"{"state": "running", "itemsTotal": 3000, "itemsDone": 1, "itemsWaiting": 2000}"#)
        let item = try self.item(
            .url("u", key: nil), #"{"state": "waiting", "waitingFor": "circuit", "retryAt": "2026-11-25T22:33:00Z"}"#)
        var table = JobItemTable()
        table.add(item)

        #expect(JobReport.items(of: job) == "1 of 3,000 items succeeded, 2,000 waiting")
        #expect(JobReport.needsAttention(job) && JobItemTable.needsAttention(item))
        #expect((table.takeLines() ?? "").contains("waiting for circuit until 2026-11-25T22:33:00.000Z"))
    }

    @Test("The progress of a job estimates items of unknown size")
    func theProgressEstimatesUnknownItems() throws {
        let job = try self.job(
            """
            {"itemsTotal": 4, "itemsDone": 1, "itemsUnknown": 2, "bytesTotal": 2048, "bytesExpected": 4096,
             "progressRatio": 0.25, "bytesDone": 1024,
             "bytesPerSecond": 512, "etaSeconds": 6}
            """)

        #expect(
            JobProgress.line(of: job)
                == ProgressLine(
                    share: 0.25, figures: ["1.0 KiB of about 4.0 KiB", "512 B/s", "6 s left", "1 of 4 items"]))
        #expect(
            JobProgress.line(of: try self.job(#"{"itemsTotal": 1, "itemsUnknown": 1, "bytesTotal": null}"#)).share
                == nil)
    }

    @Test("An item is named as in its request")
    func anItemIsNamed() throws {
        let id = AssetID(high: 1, low: 7)
        let items: [AssetReference] = [
            .mounted(origin: "media", path: "/a.mp4", key: nil), .url("http://a/x?sig=1", key: nil), .known(id),
        ]

        let names = try items.map { JobItemTable.name(of: try self.item($0)) }
        #expect(names == ["/o/media/a.mp4", "http://a/x", "\(id)"])
    }

    @Test("A second of traffic is one line")
    func aSecondIsOneLine() {
        #expect(
            second(1_795_645_860).line
                == "2026-11-25T22:31:00Z  clients 1.5 KiB/s  from cache 1.0 KiB/s  from upstream 512 B/s  "
                + "upstream 256 B/s  hit ratio 75.0 %  requests 4  hit 3  miss 1  p50 0.4 ms  p99 10 ms  readers 3  fills 1"
        )
    }

    @Test("The window keeps the last seconds in order, without duplicates")
    func theWindowKeepsTheLastSeconds() {
        var window = TrafficWindow(capacity: 3)
        for at: Int64 in [1, 2, 2, 1, 3, 4] { window.add(second(at)) }

        #expect(window.seconds.map(\.at.seconds) == [2, 3, 4])
    }

    @Test("The live screen fits its terminal", arguments: [0, 20, 60, 200])
    func theScreenFitsItsTerminal(_ columns: Int) {
        var window = TrafficWindow()
        for at: Int64 in 1...100 { window.add(second(at, bytes: at)) }
        let lines = TrafficScreen.lines(window, url: "http://127.0.0.1:8080", notice: nil, columns: columns)

        #expect(lines.count <= 24)
        #expect(lines.contains { $0.hasPrefix("to clients") && $0.contains("612 B/s") })
        #expect(lines.contains { $0.hasPrefix("hit ratio") && $0.contains("75.0 %") })
        #expect(lines.contains { $0.hasPrefix("  last minute") && $0.contains("50.0 %") })
        #expect(lines.contains { $0.hasPrefix("  hit ") && $0.contains("1,200") })
        #expect(lines.contains { $0.hasPrefix("first byte") && $0.contains("p95 2.0 ms") })
        #expect(columns < 60 || lines.filter { $0.contains("█") }.count >= 4)
    }

    @Test("Statistics show the figures of the service's document, and a row for each origin")
    func statisticsAreShown() throws {
        var traffic = TrafficFigures()
        traffic.requests = ["hit": 16, "partial": 1, "miss": 6]
        (traffic.servedFromCacheBytes, traffic.servedAfterFillBytes) = (2 << 20, 1 << 20)
        (traffic.upstreamBytes, traffic.upstreamPrefetchBytes) = (1 << 19, 1 << 10)
        (traffic.fillsFailed, traffic.fillsTimedOut) = (9, 10)
        var circuit = CircuitFigures(address: "https://media.example", state: .open)
        circuit.failuresInARow = 2
        circuit.failures.note(CacheError(.upstreamRefused(status: 500), "It answered 500."), at: .zero)
        var stats = StatsSnapshot(
            startedAt: Self.now, uptime: .seconds(75), all: traffic, origins: [("media", traffic)],
            circuits: ["media": [circuit]], failingServers: [],
            store: .init(
                isDamaged: true, assets: 1, extents: 2, cachedBytes: 1024, diskBytes: 4, capacityBytes: 1 << 20,
                freeDiskBytes: 5),
            load: TransferLoad(active: 3, queued: 4), jobs: [.running: 5, .queued: 6, .failed: 7], evictions: 8,
            evictedBytes: 3 << 10)
        stats.integrity.badBytes = 2048
        let values = try JSONParser.parse(stats.document().jsonBytes).decode(FigureValues.self)

        #expect(
            StatisticsReport(values).text == """
                uptime     1 min 15 s
                requests   23: hit 16, partial 1, miss 6
                hit ratio  69.6 % of the requests, 66.7 % of the bytes
                served     3.0 MiB, 2.0 MiB from the cache and 1.0 MiB from the upstream
                upstream   512 KiB, 1.0 KiB of them by prefetch
                store      1 asset, 1.0 KiB of 1.0 MiB
                fills      3 active, 4 queued, 9 failed, 10 timed out
                jobs       5 running, 6 queued, 7 failed
                evictions  8, 3.0 KiB

                origin  requests  hit ratio   served  upstream  circuit
                media         23     69.6 %  3.0 MiB   512 KiB  open (500)

                The store is damaged; see the log of the service.
                2.0 KiB were corrupt on disk and were removed.
                """)
    }
}
