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

    @Test("A request above the limit gets 503 while all connections are busy")
    func aRequestAboveTheLimitIsRefusedWhileAllAreBusy() async throws {
        try await TestService.run(limits: .init(maxConnections: 2)) { (service) async throws in
            let latch = LoopbackLatch()
            var busy: [RawConnection] = []
            for path in ["/one", "/two"] {
                service.upstream.serve(path, LoopbackAsset(size: 1000, faults: [.stallBeforeHead(until: latch)]))
                busy.append(try await RawConnection(port: service.port))
                try await busy[busy.count - 1].request("GET", "/o/media\(path)")
                let isAsked = try await eventually { !service.upstream.requests(for: path).isEmpty }
                #expect(isAsked)
            }
            let third = try await RawConnection(port: service.port)
            try await third.request("GET", "/o/media/one")
            let refusal = try #require(try await third.response())
            #expect(refusal.status == 503 && refusal.headers["Retry-After"] == "5")
            #expect(refusal.headers["Connection"] == "close" && refusal.headers["X-Request-Id"] != nil)
            #expect(try refusal.json()["code"] == "overloaded")
            #expect(await third.rest().isEmpty)
            latch.release()
            for connection in busy { #expect(try await connection.response()?.status == 200) }
            try await busy[0].request("GET", "/v1/stats")
            let load = try #require(try await busy[0].response()?.json()["load"]?["connections"])
            #expect(load["limit"] == 2 && load["refused"] == 1)
        }
    }

    @Test("The permit that is idle longest is taken over; a busy one never is")
    func theOldestIdlePermitIsTaken() throws {
        let permits = ConnectionPermits(limit: 2)
        let displaced = Mutex<[Int]>([])
        func connect(_ number: Int) throws -> ConnectionPermits.Permit {
            try #require(permits.take { displaced.withLock { $0.append(number) } })
        }
        let (first, second) = (try connect(1), try connect(2))
        for permit in [first, second, first] {
            #expect(permit.begin(isHealthCheck: false))
            permit.rest()
        }
        let third = try connect(3)
        #expect(third.begin(isHealthCheck: false))
        #expect(displaced.withLock(\.self) == [2])
        let fourth = try connect(4)
        #expect(fourth.begin(isHealthCheck: false))
        #expect(displaced.withLock(\.self) == [2, 1])
        #expect(!first.begin(isHealthCheck: false))
        let fifth = try connect(5)
        #expect(!fifth.begin(isHealthCheck: false))
        third.rest()
        #expect(fifth.begin(isHealthCheck: false))
        #expect(displaced.withLock(\.self) == [2, 1, 3])
    }

    @Test("The connection that is idle longest gives way to a request above the limit", arguments: [false, true])
    func theOldestIdleConnectionGivesWay(isEncrypted: Bool) async throws {
        let certificates = try TestCertificates(authorities: ["authority"])
        try certificates.issue("server", subject: "/CN=localhost", authority: "authority")
        let tls = APISettings.TLS(
            certificateFile: certificates.path("server.pem"), keyFile: certificates.path("server.key"))
        let client = try isEncrypted ? certificates.client(nil, trusting: "authority") : nil
        try await TestService.run(limits: .init(maxConnections: 2), tls: isEncrypted ? tls : nil) {
            (service) async throws in
            service.upstream.serve("/a", LoopbackAsset(size: 1000))
            func connect() async throws -> RawConnection { try await RawConnection(port: service.port, tls: client) }
            func read(_ connection: RawConnection) async throws -> RawResponse? {
                try await connection.request("GET", "/o/media/a")
                return try await connection.response()
            }
            let (first, second) = (try await connect(), try await connect())
            for connection in [first, second, first] { #expect(try await read(connection)?.status == 200) }
            let third = try await connect()
            for _ in 0..<2 {
                let response = try await read(third)
                #expect(response?.status == 200 && response?.headers["Connection"] == nil)
            }
            #expect(await second.rest().isEmpty)
            let fourth = try await connect()
            #expect(try await read(fourth)?.status == 200)
            // Each event loop reports the end of its responses itself, so that either can count as idle longer.
            let rest = [try await read(first), try await read(third)]
            #expect(rest.compactMap { $0?.status } == [200])
        }
    }

    @Test("Silent connections delay neither health checks nor other requests")
    func silentConnectionsDelayNoRequests() async throws {
        try await TestService.run(limits: .init(headerTimeout: .seconds(300), maxConnections: 4)) {
            (service) async throws in
            var silent: [RawConnection] = []
            for _ in 0..<40 { silent.append(try await RawConnection(port: service.port)) }
            let start = ContinuousClock.now
            for path in ["/health/live", "/health/ready"] {
                let response = try await service.call("GET", path)
                #expect(response.status == 200 && response.headers["Connection"] == "close")
            }
            for _ in 0..<3 { #expect(try await service.call("GET", "/v1/stats").status == 200) }
            #expect(start.duration(to: .now) < .seconds(60), "requests must not wait for the header timeout")
            // At least one connection has given way. It and those above the limit get 503 soon, without a request.
            let connections = silent
            try await withThrowingTaskGroup(of: RawResponse?.self) { group in
                for connection in connections { group.addTask { try await connection.response() } }
                for _ in 0..<37 {
                    let response = try await group.next() ?? nil
                    #expect(response?.status == 503 && response?.headers["Connection"] == "close")
                }
                for connection in connections { try? await connection.hangUp() }  // most are closed already
                while try await group.next() != nil {}
            }
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

    /// The permits of a server, and the numbers of displaced connections in their order.
    private final class Connections: Sendable {
        let permits: ConnectionPermits
        private let log = Mutex<[Int]>([])
        private let last = Atomic(-1)

        init(limit: Int) { permits = ConnectionPermits(limit: limit) }

        var displaced: [Int] { log.withLock { $0 } }

        func connect() -> ConnectionPermits.Permit? {
            let number = last.add(1, ordering: .relaxed).newValue
            return permits.take { self.log.withLock { $0.append(number) } }
        }
    }

    @Test("A reserved permit is granted to the newest connection")
    func aReservedPermitGoesToTheNewestConnection() {
        let connections = Connections(limit: 4)
        let regular = (0..<4).map { _ in connections.connect() }
        var reserved = (0..<3).map { _ in connections.connect() }
        #expect(regular.allSatisfy { $0?.isReserved == false })
        #expect(reserved.dropFirst().allSatisfy { $0?.isReserved == true })
        #expect(connections.displaced == [4])
        #expect(reserved.map { $0?.begin(isHealthCheck: true) } == [false, true, true])
        #expect(connections.connect() == nil, "no reserved permit may be granted while both serve a request")
        reserved = []
        #expect(connections.connect()?.isReserved == true)
        #expect(regular.allSatisfy { $0?.isReserved == false })
    }

    @Test("A request takes the permit of the connection that is idle longest, never that of a busy one")
    func aRequestTakesTheOldestIdlePermit() {
        let connections = Connections(limit: 3)
        let regular = (0..<3).map { _ in connections.connect() }
        #expect(regular[0]?.begin(isHealthCheck: false) == true)
        #expect(regular[1]?.begin(isHealthCheck: false) == true)
        regular[1]?.rest()
        let new = (0..<2).map { _ in connections.connect() }
        #expect(new[0]?.begin(isHealthCheck: false) == true && connections.displaced == [2])
        #expect(new[1]?.begin(isHealthCheck: false) == true && connections.displaced == [2, 1])
        #expect(new.allSatisfy { $0?.isReserved == false })
        #expect(regular.map { $0?.begin(isHealthCheck: false) } == [true, false, false])
        let late = connections.connect()
        #expect(late?.begin(isHealthCheck: false) == false, "all connections are busy")
        #expect(connections.permits.figures.active == 3)
        for permit in regular + [late] { permit?.giveBack() }
        #expect(connections.permits.figures.active == 2)
        let next = connections.connect()
        #expect(next?.isReserved == false)
        new[0]?.giveBack()
        new[0]?.giveBack()
        #expect(connections.permits.figures.active == 2)
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
