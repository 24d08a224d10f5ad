import CacheAPI
import CacheCore
import CacheTestKit
import Testing

/// Circuits of origins over HTTP.
@Suite(.timeLimit(.minutes(20))) struct CircuitRouteTests {
    private func run(
        pause: Duration, _ body: @Sendable @escaping (TestService) async throws -> Void
    ) async throws {
        try await TestService.run(
            change: {
                $0.circuitBreaker = .init(failures: 2, pause: pause)
                $0.retries = 0
            }, body)
    }

    /// Caches the first bytes, then fails until the circuit opens.
    private func exhaust(_ service: TestService) async throws {
        service.upstream.serve("/a.mp4", LoopbackAsset(size: 300_000))
        _ = try await service.call("GET", "/o/media/a.mp4", ["Range": "bytes=0-999"])
        service.upstream.serve("/a.mp4") { _ in .response(status: 503) }
        for _ in 0..<2 {
            #expect(try await service.call("GET", "/o/media/a.mp4", ["Range": "bytes=5000-5999"]).status == 503)
        }
    }

    private func seconds(_ circuit: JSON) throws -> Double {
        guard case .number(let seconds)? = circuit["probeInSeconds"] else {
            throw CacheError(.internal, "The circuit has no probeInSeconds.")
        }
        return seconds
    }

    private func circuit(_ service: TestService) async throws -> JSON {
        let stats = try await service.call("GET", "/v1/stats").json()
        #expect(try SchemaDocument.openAPI().faults(of: stats, in: "Stats") == [])
        return try #require(stats["origins"]?.array.first { $0["origin"] == "media" }?["circuit"])
    }

    @Test("An open circuit is reported everywhere, and cached bytes are served")
    func anOpenCircuitShowsEverywhereAndCachedBytesAreServed() async throws {
        try await run(pause: .seconds(60)) { (service) async throws in
            #expect(try await circuit(service)["state"] == "closed")
            try await exhaust(service)
            let circuit = try await circuit(service)
            let metrics = try await service.call("GET", "/metrics").text
            let target = "/v1/explain?origin=media&path=a.mp4&range=bytes=5000-5999"
            let said = try await service.call("GET", target).json()
            let hit = try await service.call("GET", "/o/media/a.mp4", ["Range": "bytes=0-999"])
            let refused = try await service.call("GET", "/o/media/a.mp4", ["Range": "bytes=5000-5999"])

            #expect(circuit["state"] == "open" && circuit["failuresInARow"] == 2 && circuit["opensTotal"] == 1)
            #expect(circuit["url"] == .string(service.upstream.url("")) && circuit["mirrors"]?.array == [])
            let (most, least) = (try seconds(circuit), try seconds(try await self.circuit(service)))
            #expect((20...30).contains(most))
            let failure = try #require(circuit["lastFailure"])
            #expect(failure["cause"] == "503" && failure["status"] == 503 && failure["count"] == 2)
            #expect(failure["message"] == .null)
            #expect(metrics.contains("larder_upstream_failures_total{origin=\"media\",cause=\"503\"} 2\n"))
            let origin = try await service.call("GET", "/v1/origins/media").json()
            #expect(try SchemaDocument.openAPI().faults(of: origin, in: "Origin") == [])
            let address = try #require(origin["addresses"]?.array.first)
            #expect(address["lastFailure"]?["message"] == "The upstream answered with status 503.")
            #expect(metrics.contains("larder_circuits{origin=\"media\",state=\"open\"} 1\n"))
            #expect(metrics.contains("larder_circuits{origin=\"media\",state=\"closed\"} 0\n"))
            #expect(metrics.contains("larder_circuit_opens_total{origin=\"media\"} 1\n"))
            #expect(said["source"]?["url"] == .null && said["response"]?["status"] == 502)
            #expect(said["source"]?["skipReason"]?.plain.contains("no request is sent to it") == true)
            #expect(hit.status == 206 && refused.status == 502)
            #expect(try refused.json()["detail"]?.plain.contains("the last time with 503") == true)
            let wait = try #require(refused.headers["Retry-After"].flatMap(Double.init))
            #expect((least...most + 1).contains(wait))
            #expect(service.upstream.requests.count == 3)
        }
    }

    @Test("After the pause one successful request closes the circuit")
    func afterItsPauseOneRequestClosesIt() async throws {
        try await run(pause: .milliseconds(50)) { (service) async throws in
            try await exhaust(service)
            service.upstream.serve("/a.mp4", LoopbackAsset(size: 300_000))
            let isBack = try await eventually {
                try await service.call("GET", "/o/media/a.mp4", ["Range": "bytes=5000-5999"]).status == 206
            }
            let circuit = try await circuit(service)

            #expect(isBack)
            #expect(circuit["state"] == "closed" && circuit["opensTotal"] == 1 && circuit["probeInSeconds"] == .null)
            #expect(service.upstream.requests.count == 4)
        }
    }

    @Test("A call closes an open circuit")
    func aCallClosesACircuit() async throws {
        try await run(pause: .seconds(60)) { (service) async throws in
            try await exhaust(service)
            service.upstream.serve("/a.mp4", LoopbackAsset(size: 300_000))
            #expect(try await service.call("GET", "/o/media/a.mp4", ["Range": "bytes=5000-5999"]).status == 502)
            #expect(try await service.call("DELETE", "/v1/origins/none/circuits").status == 404)
            #expect(try await service.call("DELETE", "/v1/origins/media/circuits").status == 204)
            #expect(try await service.call("GET", "/o/media/a.mp4", ["Range": "bytes=5000-5999"]).status == 206)
        }
    }

    @Test("A failing server is listed without its paths")
    func aServerThatRefusesConnectionsIsListedWithoutItsPaths() async throws {
        try await run(pause: .seconds(30)) { (service) async throws in
            let dead = try LoopbackUpstream()
            let (server, url) = (dead.url(""), dead.url("/secret-path/a.mp4?signature=s3cret"))
            dead.stop()
            #expect(try await service.call("GET", "/v1/content?url=" + url).status == 502)
            let response = try await service.call("GET", "/v1/stats")
            let servers = try #require(try response.json()["failingServers"]?.array)

            #expect(servers.map { $0["url"] } == [.string(server)])
            #expect(!response.text.contains("secret") && !response.text.contains("s3cret"))
        }
    }
}
