import CacheCore
import CacheEngine
import CacheTestKit
import Synchronization
import Testing

@testable import CacheAPI

/// Rejection of connections and reads above their limits.
@Suite struct OverloadTests {
    @Test("The last holder of a permit releases it")
    func placesAreGivenBackByWhoeverHeldThemLast() {
        let places = AdmissionLimiter(limit: 2)
        var held = [places.take(), places.take(), places.take()]
        #expect(held.map { $0 != nil } == [true, true, false])
        #expect(places.figures == .init(active: 2, limit: 2, refused: 1))
        held.removeFirst()
        #expect(places.figures.active == 1 && places.take() != nil)
        held = []
        #expect(places.figures == .init(active: 0, limit: 2, refused: 1))
    }

    @Test("Connections above the limit are answered and closed")
    func moreConnectionsThanThereMayBeAreAnsweredAndClosed() async throws {
        try await TestService.run(limits: .init(maxConnections: 2)) { (service) async throws in
            service.upstream.serve("/a", LoopbackAsset(size: 1000))
            let first = try await RawConnection(port: service.port)
            let second = try await RawConnection(port: service.port)
            for connection in [first, second] {
                try await connection.request("GET", "/o/media/a")
                #expect(try await connection.response()?.status == 200)
            }
            let third = try await RawConnection(port: service.port)
            try await third.request("GET", "/o/media/a")
            let refusal = try #require(try await third.response())
            #expect(refusal.status == 503 && refusal.headers["Retry-After"] == "5")
            #expect(refusal.headers["Connection"] == "close" && refusal.headers["X-Request-Id"] != nil)
            #expect(try refusal.json()["code"] == "overloaded")
            #expect(await third.rest().isEmpty)

            try await first.request("GET", "/v1/stats")
            let load = try #require(try await first.response()?.json()["load"]?["connections"])
            #expect(load["limit"] == 2 && load["refused"] == 1)
            try await second.hangUp()
            let isServed = try await eventually { try await service.call("GET", "/o/media/a").status == 200 }
            #expect(isServed)
        }
    }

    @Test("Silent connections do not delay health checks")
    func silentConnectionsDoNotDelayHealthChecks() async throws {
        try await TestService.run(limits: .init(headerTimeout: .seconds(300), maxConnections: 4)) {
            (service) async throws in
            var silent: [RawConnection] = []
            for _ in 0..<40 { silent.append(try await RawConnection(port: service.port)) }
            let start = ContinuousClock.now
            for path in ["/health/live", "/health/ready"] {
                let response = try await service.call("GET", path)
                #expect(response.status == 200 && response.headers["Connection"] == "close")
            }
            #expect(start.duration(to: .now) < .seconds(60), "health checks must not wait for the header timeout")
            #expect(try await service.call("GET", "/v1/stats").status == 503)
            // Four connections have permits and may still send a request. The others get 503 soon, without a request.
            let connections = silent
            try await withThrowingTaskGroup(of: RawResponse?.self) { group in
                for connection in connections { group.addTask { try await connection.response() } }
                for _ in 0..<36 {
                    let response = try await group.next() ?? nil
                    #expect(response?.status == 503 && response?.headers["Connection"] == "close")
                }
                for connection in connections { try? await connection.hangUp() }  // 36 are closed already
                for try await response in group { #expect(response == nil) }
            }
            let isServed = try await eventually { try await service.call("GET", "/v1/stats").status == 200 }
            #expect(isServed)
        }
    }

    @Test("Disconnected clients hold no permit")
    func clientsThatAreGoneHoldNoPermit() async throws {
        try await TestService.run(limits: .init(headerTimeout: .seconds(300), maxConnections: 2)) {
            (service) async throws in
            for text in ["", "GET /v1/st", "GET /v1/stats HTTP/1.1\r\nHost: loc"] {
                for _ in 0..<3 {
                    let connection = try await RawConnection(port: service.port)
                    try await connection.send(text)
                    try await connection.hangUp()
                }
                let isServed = try await eventually { try await service.call("GET", "/v1/stats").status == 200 }
                #expect(isServed)
            }
        }
    }

    @Test("A reserved permit is granted to the newest connection")
    func aReservedPermitGoesToTheNewestConnection() {
        let permits = ConnectionPermits(limit: 4)
        let others = (0..<3).map { _ in permits.take {} }
        let displaced = Mutex<[Int]>([])
        let regular = permits.take {}
        var reserved = (0..<3).map { index in permits.take { displaced.withLock { $0.append(index) } } }
        #expect(regular?.isReserved == false && reserved.allSatisfy { $0?.isReserved ?? false })
        #expect(displaced.withLock { $0 } == [0])
        #expect(reserved.map { $0?.claim() } == [false, true, true])
        #expect(permits.take {} == nil, "no reserved permit may be granted while both serve a request")
        reserved = []
        #expect(permits.take {}?.isReserved == true)
        #expect(others.allSatisfy { $0?.isReserved == false })
    }

    @Test("Reads above the limit are rejected, and cached bytes are served")
    func moreReadsThanThereMayBeAreRefusedAndWhatIsAtHandIsServed() async throws {
        try await TestService.run(limits: .init(maxConcurrentReads: 1)) { (service) async throws in
            let latch = LoopbackLatch()
            service.upstream.serve("/a", LoopbackAsset(size: 1000))
            service.upstream.serve("/slow", LoopbackAsset(size: 1000))
            service.upstream.failNext("/slow", [.stallBeforeHead(until: latch)])
            #expect(try await service.call("GET", "/o/media/a").status == 200)
            let isOver = try await eventually { try await reads(of: service)?["active"] == 0 }
            #expect(isOver)
            let waiting = try await RawConnection(port: service.port)
            try await waiting.request("GET", "/o/media/slow")
            let isAsked = try await eventually { !service.upstream.requests(for: "/slow").isEmpty }
            #expect(isAsked)

            let refusal = try await service.call("GET", "/o/media/slow")
            #expect(refusal.status == 503 && refusal.headers["Retry-After"] == "5")
            #expect(try await service.call("GET", "/o/media/a").status == 200, "cached bytes need no read permit")
            let load = try await reads(of: service)
            #expect(load?["active"] == 1 && load?["limit"] == 1 && load?["refused"] == 1)
            latch.release()
            #expect(try await waiting.response()?.status == 200)
            let isServed = try await eventually { try await service.call("GET", "/o/media/slow").status == 200 }
            #expect(isServed)
        }
    }

    private func reads(of service: TestService) async throws -> JSON? {
        try await service.call("GET", "/v1/stats").json()["load"]?["reads"]
    }
}
