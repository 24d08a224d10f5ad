import CacheCore
import CacheTestKit
import CacheTracing
import Testing

@Suite struct OTLPExporterTests {
    /// Runs an exporter while `body` runs, then stops it and waits for its end.
    private func running(
        _ test: TestTracer, _ receiver: ScriptedReceiver,
        _ body: (OTLPExporter) async throws -> Void
    ) async throws -> OTLPExporter.Counters {
        let exporter = try #require(try test.exporter(to: receiver))
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await exporter.run() }
            defer { group.cancelAll() }
            try await body(exporter)
            exporter.stop()
            try await group.waitForAll()
        }
        return exporter.counters
    }

    /// Waits until the exporter sleeps for `duration`, and advances the clock by it.
    private func pass(_ duration: Duration, _ test: TestTracer) async throws {
        try await wait { test.clock.sleeps.contains(duration) }
        test.clock.advance(by: duration)
    }

    /// Waits until `condition` holds.
    private func wait(
        at location: SourceLocation = #_sourceLocation, until condition: () async throws -> Bool
    ) async throws {
        let holds = try await eventually(within: .seconds(60), condition)
        #expect(holds, sourceLocation: location)
    }

    @Test("512 spans are sent at once, and fewer after five seconds")
    func sendsBatches() async throws {
        let (test, receiver) = (TestTracer(), ScriptedReceiver(.status(200)))

        let counters = try await running(test, receiver) { _ in
            test.endSpans(512)
            try await wait { try receiver.sizes == [512] }
            test.endSpans(3, from: 512)
            try await pass(.seconds(5), test)
            try await wait { try receiver.sizes == [512, 3] }
        }

        #expect(counters.exported == 515 && counters.failed == 0 && counters.dropped == 0)
    }

    @Test("A request has the endpoint, the type, the configured fields and the time limit")
    func sendsFields() async throws {
        let (test, receiver) = (TestTracer(), ScriptedReceiver(.status(200)))
        let headers = SecretHeaders(["Authorization": "Bearer hidden", "content-type": "text/plain"])
        let exporter = try #require(try test.exporter(to: receiver, headers: headers))
        test.endSpans(1)
        exporter.stop()
        await exporter.run()

        let request = try #require(receiver.requests.first)

        #expect(request.endpoint.url == "https://collector.test/v1/traces?key=hidden")
        #expect(request.headers.exposed.values("Content-Type") == ["application/json"])
        #expect(request.headers.exposed["User-Agent"] == "larder/1.2.3")
        #expect(request.headers.exposed["Authorization"] == "Bearer hidden")
        var dumped = ""
        dump(request, to: &dumped)
        #expect(!"\(request) \(request.headers) \(request.endpoint) \(dumped)".contains("hidden"))
    }

    @Test("A batch is retried after the time that Retry-After requests")
    func honoursRetryAfter() async throws {
        let test = TestTracer()
        let receiver = ScriptedReceiver(.status(429, ["Retry-After": "7"]), .status(200))

        let counters = try await running(test, receiver) { _ in
            test.endSpans(512)
            try await pass(.seconds(7), test)
            try await wait { try receiver.sizes == [512, 512] }
        }

        #expect(counters.exported == 512 && counters.failed == 0)
    }

    @Test(
        "Without Retry-After the delay grows exponentially, and eight requests are sent", arguments: [502, 503, 504, 0])
    func backsOff(status: Int) async throws {
        let test = TestTracer()
        let receiver = ScriptedReceiver(status == 0 ? .failure : .status(status))
        var delays: [Duration] = []

        let counters = try await running(test, receiver) { exporter in
            test.endSpans(512)
            for request in 1..<8 {
                // The timers of the batch, 5 s, and of the request, 10 s, may still be there when a request arrives.
                let ceiling = Backoff.ceiling(beforeRetry: request - 1)
                try await wait {
                    let sleeps = test.clock.sleeps
                    return receiver.requests.count == request && sleeps.count == 1 && sleeps[0] <= ceiling
                        && ![.seconds(5), .seconds(10)].contains(sleeps[0])
                }
                let delay = try #require(test.clock.sleeps.first)
                delays.append(delay)
                test.clock.advance(by: delay)
            }
            try await wait { exporter.counters.failed == 512 }
            #expect(receiver.requests.count == 8)
        }

        #expect(zip(delays, 0...).allSatisfy { $0 <= Backoff.ceiling(beforeRetry: $1) })
        #expect(Set(delays).count == 7)
        #expect(counters.exported == 0 && counters.failed == 512)
    }

    @Test("A batch that is too large is halved until its parts are accepted")
    func halvesBatches() async throws {
        let (test, receiver) = (TestTracer(), ScriptedReceiver(.status(413), .status(413), .status(200)))

        let counters = try await running(test, receiver) { _ in
            test.endSpans(512)
            try await wait { receiver.requests.count == 5 }
        }

        #expect(try receiver.sizes == [512, 256, 128, 128, 256])
        #expect(try receiver.names.dropFirst(2).flatMap(\.self) == (0..<512).map { "span\($0)" })
        #expect(counters.exported == 512 && counters.failed == 0)
    }

    @Test("A single span that is too large is dropped")
    func dropsLargeSpans() async throws {
        let (test, receiver) = (TestTracer(), ScriptedReceiver(.status(413)))
        test.endSpans(4)

        let counters = try await running(test, receiver) { _ in }

        #expect(try receiver.sizes == [4, 2, 1, 1, 2, 1, 1])
        #expect(counters.exported == 0 && counters.failed == 4)
    }

    @Test("A receiver to which every span is too large gets few requests")
    func givesUpOnLargeSpans() async throws {
        let (test, receiver) = (TestTracer(), ScriptedReceiver(.status(413)))

        let counters = try await running(test, receiver) { exporter in
            test.endSpans(512)
            try await wait { exporter.counters.failed == 512 }
            test.endSpans(512)
            try await wait { exporter.counters.failed == 1024 }
        }

        #expect(receiver.requests.count < 40)
        #expect(counters.exported == 0)
    }

    @Test("A rejected batch is not retried", arguments: [400, 401, 404, 500, 301])
    func doesNotRetry(status: Int) async throws {
        let (test, receiver) = (TestTracer(), ScriptedReceiver(.status(status)))

        let counters = try await running(test, receiver) { exporter in
            test.endSpans(512)
            try await wait { exporter.counters.failed == 512 }
        }

        #expect(receiver.requests.count == 1 && counters.exported == 0)
    }

    @Test(
        "A partial success is not retried, and its rejected spans count as failed",
        arguments: [
            (#"{"partialSuccess":{"rejectedSpans":"2","errorMessage":"too old"}}"#, 2),
            (#"{"partialSuccess":{"rejectedSpans":3}}"#, 3), (#"{"partialSuccess":{"rejectedSpans":"99"}}"#, 5),
            (#"{"partialSuccess":{"rejectedSpans":"-1"}}"#, 0), (#"{"partialSuccess":{"errorMessage":"hint"}}"#, 0),
            ("not JSON", 0), ("", 0),
        ] as [(String, Int64)])
    func countsRejectedSpans(body: String, rejected: Int64) async throws {
        let (test, receiver) = (TestTracer(), ScriptedReceiver(.status(200, body: body)))
        test.endSpans(5)

        let counters = try await running(test, receiver) { _ in }

        #expect(receiver.requests.count == 1)
        #expect(counters.exported == 5 - rejected && counters.failed == rejected)
    }

    @Test("A receiver that does not answer is given up after ten seconds")
    func limitsTheTime() async throws {
        let (test, receiver) = (TestTracer(), ScriptedReceiver(.silence, .status(200)))

        let counters = try await running(test, receiver) { _ in
            test.endSpans(512)
            try await wait { receiver.requests.count == 1 }
            try await pass(.seconds(10), test)
            try await wait { test.clock.sleeps.first.map { $0 <= Backoff.ceiling(beforeRetry: 0) } ?? false }
            test.clock.advance(by: Backoff.ceiling(beforeRetry: 0))
            try await wait { receiver.requests.count == 2 }
        }

        #expect(counters.exported == 512)
    }

    @Test("While the receiver is dead, at most one batch and the queue are kept")
    func boundsTheMemory() async throws {
        let (test, receiver) = (TestTracer(), ScriptedReceiver(.failure))

        let counters = try await running(test, receiver) { _ in
            test.endSpans(512)
            try await wait { receiver.requests.count == 1 }
            test.endSpans(10_000, from: 512)
        }

        #expect(counters.dropped == 10_000 - 2048)
        #expect(counters.failed == 512 + 2048)
    }

    @Test("The queued spans are sent at the shutdown")
    func flushes() async throws {
        let (test, receiver) = (TestTracer(), ScriptedReceiver(.status(200)))

        let counters = try await running(test, receiver) { _ in
            try await wait { test.clock.sleeps == [.seconds(5)] }
            test.endSpans(100)
        }

        #expect(try receiver.sizes == [100])
        #expect(counters.exported == 100)
    }

    @Test("A stop ends the wait for a retry, and the batch is sent once more")
    func flushesTheBatchInProgress() async throws {
        let test = TestTracer()
        let receiver = ScriptedReceiver(.status(503, ["Retry-After": "60"]), .status(200))

        let counters = try await running(test, receiver) { _ in
            test.endSpans(512)
            try await wait { test.clock.sleeps == [.seconds(60)] }
            test.endSpans(1, from: 512)
        }

        #expect(try receiver.sizes == [512, 512, 1])
        #expect(counters.exported == 513)
    }

    @Test("At the shutdown a dead receiver is not tried again, and the spans are counted")
    func givesUpAtTheShutdown() async throws {
        let (test, receiver) = (TestTracer(), ScriptedReceiver(.failure))
        test.endSpans(1000)

        let counters = try await running(test, receiver) { _ in }

        #expect(receiver.requests.count <= 2)
        #expect(counters.failed == 1000)
    }

    @Test("A silent receiver delays the shutdown by five seconds at most")
    func limitsTheShutdown() async throws {
        let (test, receiver) = (TestTracer(), ScriptedReceiver(.silence))
        let exporter = try #require(try test.exporter(to: receiver))

        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await exporter.run() }
            defer { group.cancelAll() }
            test.endSpans(513)
            try await wait { receiver.requests.count == 1 && test.clock.sleeps.contains(.seconds(10)) }
            exporter.stop()
            try await pass(.seconds(5), test)
            try await group.waitForAll()
        }

        #expect(receiver.requests.count == 1)
        #expect(exporter.counters.failed == 513)
    }

    @Test("A cancelled exporter ends at once")
    func endsOnCancellation() async throws {
        let (test, receiver) = (TestTracer(), ScriptedReceiver(.silence))
        let exporter = try #require(try test.exporter(to: receiver))

        await withTaskGroup(of: Void.self) { group in
            group.addTask { await exporter.run() }
            test.endSpans(512)
            while receiver.requests.isEmpty { await Task.yield() }
            group.cancelAll()
        }

        #expect(receiver.requests.count == 1)
    }

    @Test("A disabled tracer and settings without endpoint have no exporter")
    func isDisabled() throws {
        let receiver = ScriptedReceiver(.status(200))
        let test = TestTracer(TraceSampler(ratio: 0, isParentBased: false))

        #expect(try test.exporter(to: receiver) == nil)
    }
}
