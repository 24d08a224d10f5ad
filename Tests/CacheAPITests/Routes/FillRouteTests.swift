import CacheAPI
import CacheCore
import CacheTestKit
import ReaderAccess
import Testing

/// Running fills and predicted fills over HTTP.
@Suite(.timeLimit(.minutes(20))) struct FillRouteTests {
    /// Timeouts so long that no stall ends by itself on a slow machine.
    private static let patient: @Sendable (inout OriginSettings) -> Void = {
        $0.timeouts.idle = .seconds(300)
        $0.readTimeout = .seconds(300)
    }

    private func document() throws -> SchemaDocument { try SchemaDocument.openAPI() }

    @Test("A fill can be listed, read and stopped")
    func aFillIsListedLookedAtAndStopped() async throws {
        try await TestService.run(change: Self.patient) { (service) async throws in
            let latch = LoopbackLatch()
            defer { latch.release() }
            service.upstream.serve(
                "/a.mp4", LoopbackAsset(size: 300_000, faults: [.stall(after: 100_000, until: latch)]))
            let connection = try await RawConnection(port: service.port)
            try await connection.request("GET", "/o/media/a.mp4")
            await latch.reached()
            let running = "/v1/fills?origin=media&state=running&limit=5"
            // The fill may pause until its reader has consumed the first bytes.
            let isRunning = try await eventually {
                try await service.call("GET", running).json()["items"]?.array.isEmpty == false
            }
            #expect(isRunning)
            let fill = try #require(try await service.call("GET", running).json()["items"]?.array.first)
            let id = try #require(fill["fillId"]).plain

            #expect(try document().faults(of: fill, in: "Fill") == [])
            #expect(fill["kind"] == "opening" && fill["readers"] == 1 && fill["protocol"] == "HTTP/1.1")
            #expect(try await service.call("GET", "/v1/fills/\(id)").json()["fillId"] == fill["fillId"])
            #expect(try await service.call("GET", "/v1/fills?state=paused").json()["items"]?.array.isEmpty == true)
            #expect(try await service.call("GET", "/v1/fills?state=idle").status == 422)
            #expect(try await service.call("GET", "/v1/fills?cursor=x").status == 422)

            let stopped = try await service.call("DELETE", "/v1/fills/\(id)")
            #expect(stopped.status == 204 && stopped.text.isEmpty)
            let isGone = try await eventually { try await service.call("GET", "/v1/fills/\(id)").status == 404 }
            #expect(isGone)
            #expect(try await service.call("DELETE", "/v1/fills/\(id)").status == 404)
            #expect(try await service.call("DELETE", "/v1/fills/none").status == 404)
            try await connection.hangUp()
        }
    }

    @Test("Cancelling an asset stops all its fills, including the opening")
    func allOfAnAssetsFillsAreStoppedAlsoTheFirstOne() async throws {
        try await TestService.run(change: Self.patient) { (service) async throws in
            let latch = LoopbackLatch()
            defer { latch.release() }
            service.upstream.serve("/a.mp4", LoopbackAsset(size: 300_000, faults: [.stallBeforeHead(until: latch)]))
            async let read = service.call("GET", "/o/media/a.mp4")
            await latch.reached()
            let job = try await service.send(
                "POST", "/v1/jobs", ["items": [["origin": "media", "path": "a.mp4"]]])
            let place = try #require(job.headers["Location"])
            _ = try await eventually { try await service.call("GET", place).json()["state"] == "running" }
            let fill = try #require(try await service.call("GET", "/v1/fills").json()["items"]?.array.first)
            let id = try #require(fill["assetId"]).plain
            _ = try await eventually {
                try await service.call("GET", "/v1/fills").json()["items"]?.array.first?["readers"] == 2
            }

            #expect(try await service.call("GET", "/v1/assets/\(id)").status == 404, "the asset must not be listed yet")
            #expect(try await service.call("POST", "/v1/assets/\(id)/cancel").json() == ["cancelled": 1])

            let refused = try await read
            let problem = try refused.json()
            #expect(refused.status == 409 && problem["code"] == "conflict")
            let hasFailed = try await eventually { try await service.call("GET", place).json()["state"] == "failed" }
            let items = try await service.call("GET", place + "/items").json()["items"]?.array
            #expect(hasFailed && items?.first?["error"]?["code"] == "conflict")
            latch.release()
            #expect(try await service.call("GET", "/o/media/a.mp4").status == 200)
            // The fill can end after the response.
            let isQuiet = try await eventually {
                try await service.call("POST", "/v1/assets/\(id)/cancel").json() == ["cancelled": 0]
            }
            #expect(isQuiet)
            for unknown in ["none", Samples.id.description] {
                #expect(try await service.call("POST", "/v1/assets/\(unknown)/cancel").status == 404)
            }
        }
    }

    @Test("Stopping a fill needs the write scope")
    func stoppingNeedsTheAdministratorsToken() async throws {
        let access = AccessRules(tokens: [("reader", .read), ("admin", .admin)])
        try await TestService.run(access: access) { (service) async throws in
            #expect(try await service.call("GET", "/v1/fills").status == 401)
            let token: HeaderList = ["Authorization": "Bearer reader"]
            #expect(try await service.call("GET", "/v1/fills", token).status == 200)
            #expect(try await service.call("DELETE", "/v1/fills/1", token).status == 403)
            #expect(try await service.call("POST", "/v1/assets/\(Samples.id)/cancel", token).status == 403)
        }
    }

    @Test("A read can be explained by origin and path, identifier or URL")
    func aReadIsExplainedByEachOfItsNames() async throws {
        try await TestService.run(change: Self.patient) { (service) async throws in
            service.upstream.serve("/a.mp4", LoopbackAsset(size: 300_000))
            let mounted = "/v1/explain?origin=media&path=a.mp4&range=bytes=0-999"
            let unknown = try await service.call("GET", mounted).json()
            _ = try await service.call("GET", "/o/media/a.mp4", ["Range": "bytes=0-499"])
            let known = try await service.call("GET", mounted).json()
            let id = try #require(known["assetId"]).plain
            let byID = try await service.call("GET", "/v1/explain?assetId=\(id)&method=HEAD").json()
            let url = service.upstream.url("/b.mp4?signature=s3cret")
            let byURL = try await service.call("GET", "/v1/explain?url=" + url).json()

            for explanation in [unknown, known, byID, byURL] {
                #expect(try document().faults(of: explanation, in: "Explanation") == [])
            }
            #expect(unknown["response"]?["result"] == "miss" && unknown["fetch"]?["requests"] == 1)
            #expect(known["response"]?["result"] == "partial" && known["fetch"]?["bytes"] == 500)
            #expect(byID["response"]?["status"] == 200 && byID["response"]?["contentLength"] == 300_000)
            #expect(byURL["source"]?["url"] == .string(service.upstream.url("/b.mp4")))
            #expect(service.upstream.requests.count == 1)
            let isCounted = try await eventually {
                try await service.call("GET", "/v1/stats").json()["requests"]?["total"] == 1
            }
            #expect(isCounted)
        }
    }

    @Test(
        "Explain ignores a range that a read ignores",
        arguments: ["lines=1-2", "bytes=2-1", "bytes=a-b", "bytes=", "nonsense", ""])
    func aRangeThatAReadIgnoresIsIgnored(_ range: String) async throws {
        try await TestService.run(change: Self.patient) { (service) async throws in
            service.upstream.serve("/a.mp4", LoopbackAsset(size: 300_000))
            _ = try await service.call("GET", "/o/media/a.mp4")
            let read = try await service.call("GET", "/o/media/a.mp4", ["Range": range])
            let said = try await service.call("GET", "/v1/explain?origin=media&path=a.mp4&range=" + range).json()

            #expect(read.status == 200 && said["response"]?["status"] == 200)
            #expect(said["response"]?["contentLength"] == 300_000)
        }
    }

    @Test("An explain request for an invalid target gets an error status")
    func whatCannotBeExplainedIsSaid() async throws {
        try await TestService.run(change: Self.patient) { (service) async throws in
            #expect(try await service.call("GET", "/v1/explain").status == 422)
            #expect(try await service.call("GET", "/v1/explain?origin=media&path=a&method=PUT").status == 422)
            #expect(try await service.call("GET", "/v1/explain?origin=none&path=a").status == 404)
            #expect(try await service.call("GET", "/v1/explain?url=http://elsewhere.example/a").status == 403)
        }
    }

    @Test("The worker report lists connection counts")
    func theWorkersTellTheirConnections() async throws {
        try await TestService.run(change: Self.patient) { (service) async throws in
            service.upstream.serve("/a.mp4", LoopbackAsset(size: 300_000))
            for range in ["bytes=0-99", "bytes=100-199", "bytes=200-299"] {
                _ = try await service.call("GET", "/o/media/a.mp4", ["Range": range])
            }
            let workers = try await service.call("GET", "/v1/workers").json()

            #expect(try document().faults(of: workers, in: "Workers") == [])
            let connections = try #require(workers["connections"])
            guard case .integer(let opened)? = connections["opened"], case .integer(let reused)? = connections["reused"]
            else { throw CacheError(.internal, "The worker report has no connection counts.") }
            #expect(opened + reused == 3)
        }
    }
}
