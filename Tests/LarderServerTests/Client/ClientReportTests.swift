import CacheCore
import Testing

@testable import LarderServer

/// Documents of the API as text.
@Suite struct ClientReportTests {
    private static let now = Timestamp(seconds: 1_795_645_920)

    private func json(_ text: String) throws -> JSON { try JSONParser.parse(text.utf8) }

    private func second(_ at: Int64, requests: Int64 = 4, hits: Int64 = 3, bytes: Int64 = 1024) throws -> TrafficSecond
    {
        let bucket = try json(
            """
            {"at": "\(RFC3339.format(Timestamp(seconds: at)))", "clientBytesFromCache": \(bytes),
             "clientBytesFromUpstream": 512, "upstreamBytes": 256,
             "requests": {"total": \(requests), "hit": \(hits), "miss": \(requests - hits)},
             "requestHitRatio": 0.75, "lastMinute": {"requestHitRatio": 0.5},
             "firstByteSeconds": {"p50": 0.0004, "p95": 0.002, "p99": 0.01}, "activeReaders": 3, "activeFills": 1}
            """)
        return try #require(TrafficSecond(bucket))
    }

    @Test("A job is shown with its times, items, bytes and error")
    func aJobIsShown() throws {
        let job = try json(
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
        let job = try json(#"{"state": "running", "itemsTotal": 3000, "itemsDone": 1, "itemsWaiting": 2000}"#)
        let item = try json(
            #"{"index": 4, "state": "waiting", "waitingFor": "circuit", "retryAt": "2026-11-25T22:33:00Z", "url": "u"}"#
        )
        var table = JobItemTable()
        table.add(item)

        #expect(JobReport.items(of: job) == "1 of 3,000 items succeeded, 2,000 waiting")
        #expect(JobReport.needsAttention(job) && JobItemTable.needsAttention(item))
        #expect(table.text.contains("waiting for circuit until 2026-11-25T22:33:00Z"))
    }

    @Test("The progress of a job estimates items of unknown size")
    func theProgressEstimatesUnknownItems() throws {
        let job = try json(
            """
            {"itemsTotal": 4, "itemsDone": 1, "itemsUnknown": 2, "bytesTotal": 2048, "bytesDone": 1024,
             "bytesPerSecond": 512, "etaSeconds": 6}
            """)

        #expect(
            JobProgress.line(of: job)
                == ProgressLine(
                    share: 0.25, figures: ["1.0 KiB of about 4.0 KiB", "512 B/s", "6 s left", "1 of 4 items"]))
        #expect(JobProgress.line(of: try json(#"{"itemsTotal": 1, "itemsUnknown": 1, "bytesDone": 5}"#)).share == nil)
    }

    @Test("An item is named as in its request")
    func anItemIsNamed() throws {
        let items = [
            #"{"origin":"media","path":"/a.mp4","assetId":"1"}"#, #"{"url":"http://a/x"}"#, #"{"assetId":"7"}"#,
        ]

        #expect(try items.map { JobItemTable.name(of: try json($0)) } == ["/o/media/a.mp4", "http://a/x", "7"])
    }

    @Test("A second of traffic is one line")
    func aSecondIsOneLine() throws {
        #expect(
            try second(1_795_645_860).line
                == "2026-11-25T22:31:00Z  clients 1.5 KiB/s  from cache 1.0 KiB/s  from upstream 512 B/s  "
                + "upstream 256 B/s  hit ratio 75.0 %  requests 4  hit 3  miss 1  p50 0.4 ms  p99 10 ms  readers 3  fills 1"
        )
    }

    @Test("The window keeps the last seconds in order, without duplicates")
    func theWindowKeepsTheLastSeconds() throws {
        var window = TrafficWindow(capacity: 3)
        for at: Int64 in [1, 2, 2, 1, 3, 4] { window.add(try second(at)) }

        #expect(window.seconds.map(\.at.seconds) == [2, 3, 4])
        #expect(window.counts(inLast: 2)[0] == 6)
    }

    @Test("The live screen fits its terminal", arguments: [0, 20, 60, 200])
    func theScreenFitsItsTerminal(_ columns: Int) throws {
        var window = TrafficWindow()
        for at: Int64 in 1...100 { window.add(try second(at, bytes: at)) }
        let lines = TrafficScreen.lines(window, url: "http://127.0.0.1:8080", notice: nil, columns: columns)

        #expect(lines.count <= 24)
        #expect(lines.contains { $0.hasPrefix("to clients") && $0.contains("612 B/s") })
        #expect(lines.contains { $0.hasPrefix("hit ratio") && $0.contains("75.0 %") })
        #expect(lines.contains { $0.hasPrefix("  last minute") && $0.contains("50.0 %") })
        #expect(lines.contains { $0.hasPrefix("first byte") && $0.contains("p95 2.0 ms") })
        #expect(columns < 60 || lines.filter { $0.contains("█") }.count >= 4)
    }

    @Test("Statistics have a line for each group and a row for each origin")
    func statisticsAreShown() throws {
        let stats = try json(
            """
            {"uptimeSeconds": 75, "requests": {"total": 23, "hit": 16, "partial": 1, "miss": 6, "stale": 0},
             "bytes": {"served": 3145728, "servedFromCache": 2097152, "servedAfterFill": 1048576, "upstream": 1048576,
             "upstreamPrefetch": 0}, "requestHitRatio": 0.695, "byteHitRatio": 0.6,
             "store": {"assets": 1, "cachedBytes": 1024, "capacityBytes": 1048576, "damaged": false},
             "integrity": {"badBytes": 2048},
             "origins": [{"origin": "media", "requests": {"total": 23}, "requestHitRatio": 0.695, "bytes": {"served": 1},
             "circuit": {"state": "closed"}}]}
            """)
        let text = StatisticsReport(stats).text

        #expect(text.contains("requests   23: hit 16, partial 1, miss 6\n"))
        #expect(text.contains("store      1 asset, 1.0 KiB of 1.0 MiB\n"))
        #expect(text.contains("media         23     69.5 %     1 B       0 B  closed"))
        #expect(text.hasSuffix("2.0 KiB were corrupt on disk and were removed."))
    }
}
