import CacheCore
import CacheEngine
import CacheTestKit
import Synchronization
import Testing

@testable import CacheAPI

/// Addresses of clients behind proxies, and the limits for each address.
@Suite struct ClientAddressTests {
    /// Runs a service with these rules, which trust 127.0.0.0/8, 10.0.0.0/8 and 2001:db8:1::/48.
    private static func run(
        _ source: ClientAddressRules.Source = .connection, proxy: Bool = false, trusts: Bool = true,
        headerTimeout: Duration = .seconds(300),
        limits: AddressLimits = AddressLimits(), _ body: @Sendable @escaping (TestService) async throws -> Void
    ) async throws {
        let trusted = ["127.0.0.0/8", "10.0.0.0/8", "2001:db8:1::/48"].compactMap { NetworkRange($0) }
        try await TestService.run(
            limits: .init(perAddress: limits),
            settings: {
                $0.clientAddresses = ClientAddressRules(
                    requiresProxyHeader: proxy, trusted: trusts ? trusted : [], source: source)
                $0.clientAddresses.headerTimeout = headerTimeout
            }
        ) { (service) async throws in
            service.upstream.serve("/a", LoopbackAsset(size: 1000))
            try await body(service)
        }
    }

    /// The address in the log of a request to the router and of one for content.
    private static func logged(_ service: TestService, _ fields: HeaderList) async throws -> [String?] {
        var found: [String?] = []
        for target in ["/v1/stats", "/o/media/a"] {
            let id = "id-\(fields.fields.count)-\(target.count)-\(fields.fields.first?.value.hashValue.magnitude ?? 0)"
            let response = try await service.call(
                "GET", target, HeaderList(fields.fields + [.init("X-Request-Id", id)]))
            #expect(response.status == 200, "\(target)")
            found.append(await service.log.line { $0["requestId"] == id }?["client"])
        }
        return found
    }

    @Test(
        "The client is the first address from the right that is not trusted",
        arguments: [
            ("192.0.2.1", "192.0.2.1"), ("192.0.2.1, 192.0.2.2", "192.0.2.2"), ("192.0.2.1, 10.0.0.1", "192.0.2.1"),
            ("192.0.2.9, 2001:db8:2::1, 2001:db8:1::1, 10.0.0.1", "2001:db8:2::1"), ("10.0.0.2, 10.0.0.1", "10.0.0.2"),
            ("192.0.2.1, unknown", "127.0.0.1"), ("192.0.2.1, unknown, 10.0.0.1", "10.0.0.1"),
        ])
    func theClientIsTheFirstUntrustedAddress(field: String, client: String) async throws {
        try await Self.run(.xForwardedFor) { (service) async throws in
            #expect(try await Self.logged(service, ["X-Forwarded-For": field]) == [client, client])
        }
    }

    @Test("Forwarded is read in place of X-Forwarded-For, and none of them from an untrusted address")
    func fieldsAreReadFromTrustedAddressesOnly() async throws {
        let fields: HeaderList = ["Forwarded": "for=\"[2001:db8:2::9]:80\"", "X-Forwarded-For": "192.0.2.1"]
        try await Self.run(.forwarded) { (service) async throws in
            #expect(try await Self.logged(service, fields) == ["2001:db8:2::9", "2001:db8:2::9"])
            #expect(try await Self.logged(service, [:]) == ["127.0.0.1", "127.0.0.1"])
        }
        for source in [ClientAddressRules.Source.forwarded, .xForwardedFor, .connection] {
            try await Self.run(source, trusts: source == .connection) { (service) async throws in
                #expect(try await Self.logged(service, fields) == ["127.0.0.1", "127.0.0.1"])
            }
        }
    }

    @Test("An invalid statement of a trusted proxy is refused", arguments: ["/v1/stats", "/o/media/a"])
    func invalidStatementsAreRefused(target: String) async throws {
        try await Self.run(.forwarded) { (service) async throws in
            let response = try await service.call("GET", target, ["Forwarded": "for=nobody"])
            #expect(response.status == 400)
            #expect(try response.json()["code"] == "malformedRequest")
            #expect(try response.json()["detail"]?.plain.contains("\"nobody\"") == true)
        }
        try await Self.run(.connection) { (service) async throws in
            #expect(try await service.call("GET", target, ["Forwarded": "for=nobody"]).status == 200)
        }
    }

    @Test("A PROXY header states the address; a connection without one is closed")
    func aProxyHeaderStatesTheAddress() async throws {
        try await Self.run(proxy: true) { (service) async throws in
            for (header, client) in [
                ("PROXY TCP4 192.0.2.7 192.0.2.8 1 2\r\n", "192.0.2.7"), ("PROXY UNKNOWN\r\n", "unknown"),
            ] {
                for target in ["/v1/stats", "/o/media/a"] {
                    let connection = try await RawConnection(port: service.port)
                    // In two parts, the second one with the request.
                    try await connection.send(String(header.prefix(9)))
                    try await connection.send(String(header.dropFirst(9)))
                    let id = "\(client)-\(target.count)"
                    for _ in 0..<2 {
                        try await connection.request("GET", target, ["X-Request-Id": id])
                        #expect(try await connection.response()?.status == 200)
                    }
                    #expect(await service.log.line { $0["requestId"] == id }?["client"] == client)
                    try await connection.hangUp()
                }
            }
            let direct = try await RawConnection(port: service.port)
            try await direct.request("GET", "/v1/stats")
            #expect(try await direct.response() == nil)
            let reason = await service.log.line { $0["reason"] != nil }?["reason"]
            #expect(reason == "The connection does not begin with a PROXY header.")
        }
    }

    @Test("A PROXY header of an address that is not trusted is not read, and an incomplete one ends the connection")
    func proxyHeadersNeedATrustedAddressAndAnEnd() async throws {
        try await Self.run(proxy: true, trusts: false) { (service) async throws in
            let connection = try await RawConnection(port: service.port)
            try await connection.send("PROXY UNKNOWN\r\nGET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
            #expect(try await connection.response() == nil)
        }
        try await Self.run(proxy: true, headerTimeout: .milliseconds(10)) { (service) async throws in
            let connection = try await RawConnection(port: service.port)
            try await connection.send("PROXY TCP4 192.0.2.7")
            #expect(await connection.rest().isEmpty)
            #expect(await service.log.line { $0["reason"] == "No complete PROXY header arrived in time." } != nil)
        }
    }

    @Test("Connections of one address are limited, those of trusted proxies are not")
    func connectionsAreLimitedByAddress() async throws {
        try await Self.run(proxy: true, limits: AddressLimits(connections: 2)) { (service) async throws in
            func connect(_ address: String) async throws -> (RawConnection, RawResponse?) {
                let connection = try await RawConnection(port: service.port)
                try await connection.send("PROXY TCP6 \(address) 2001:db8::2 1 2\r\n")
                try await connection.request("GET", "/v1/stats")
                return (connection, try await connection.response())
            }
            var open: [RawConnection] = []
            for address in ["2001:db8:9::1", "2001:db8:9::2", "2001:db8:a::1", "2001:db8:1::1"] {
                let (connection, response) = try await connect(address)
                #expect(response?.status == 200, "\(address)")
                open.append(connection)
            }
            let (_, refusal) = try await connect("2001:db8:9::ffff")
            #expect(refusal?.status == 429 && refusal?.headers["Retry-After"] == "5")
            #expect(try refusal?.json()["code"] == "rateLimited")
            for _ in 0..<4 { #expect(try await connect("2001:db8:1::1").1?.status == 200) }
            try await open[0].hangUp()
            #expect(try await eventually { try await connect("2001:db8:9::3").1?.status == 200 })
            let refused = try await connect("2001:db8:1::1").1?.json()["load"]?["addresses"]?["refused"]
            #expect(refused != nil && refused != 0)
        }
    }

    @Test("Streams and requests of one address are limited; health checks are not")
    func streamsAndRequestsAreLimitedByAddress() async throws {
        try await Self.run(.xForwardedFor, limits: AddressLimits(streams: 1)) { (service) async throws in
            let first = try await RawConnection(port: service.port)
            try await first.request(
                "GET", "/v1/events", ["Accept": "text/event-stream", "X-Forwarded-For": "192.0.2.1"])
            #expect(await first.head()?.status == 200)
            let second = try await service.call(
                "GET", "/v1/events", ["Accept": "text/event-stream", "X-Forwarded-For": "192.0.2.1"])
            #expect(second.status == 429)
            let other = try await RawConnection(port: service.port)
            try await other.request(
                "GET", "/v1/events", ["Accept": "text/event-stream", "X-Forwarded-For": "192.0.2.2"])
            #expect(await other.head()?.status == 200)
        }
        try await Self.run(.xForwardedFor, limits: AddressLimits(requestsPerSecond: 1)) { (service) async throws in
            let fields: HeaderList = ["X-Forwarded-For": "192.0.2.1"]
            var statuses: Set<Int> = []
            for _ in 0..<500 where !statuses.contains(429) {
                statuses.insert(try await service.call("GET", "/o/media/a", fields).status)
            }
            #expect(statuses == [200, 429])
            #expect(try await service.call("GET", "/o/media/a", ["X-Forwarded-For": "192.0.2.2"]).status == 200)
            for _ in 0..<5 { #expect(try await service.call("GET", "/health/live", fields).status == 200) }
        }
    }

    @Test("The requests of an address refill with time, and each address has its own")
    func requestsRefill() throws {
        let now = Mutex(Duration.zero)
        let limiter = AddressLimiter(limits: { AddressLimits(requestsPerSecond: 2) }, uptime: { now.withLock { $0 } })
        func counts(_ text: String) -> Bool { (try? limiter.countRequest(by: NetworkAddress(text))) != nil }

        #expect([counts("192.0.2.1"), counts("192.0.2.1"), counts("192.0.2.1")] == [true, true, false])
        #expect(counts("192.0.2.2"))
        now.withLock { $0 += .milliseconds(500) }
        #expect([counts("192.0.2.1"), counts("192.0.2.1")] == [true, false])
        now.withLock { $0 += .seconds(9) }
        #expect([counts("192.0.2.1"), counts("192.0.2.1"), counts("192.0.2.1")] == [true, true, false])
        #expect(limiter.refused == 3)
        try limiter.countRequest(by: nil)
    }
}
