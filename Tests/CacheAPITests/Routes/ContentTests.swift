import CacheAPI
import CacheCore
import CacheEngine
import CacheTestKit
import Testing

@Suite(.bothRoads, .timeLimit(.minutes(20))) struct ContentTests {
    private let size: Int64 = 600_000

    private func asset(_ faults: [LoopbackFault] = [], framing: LoopbackAsset.Framing = .length) -> LoopbackAsset {
        LoopbackAsset(size: size, contentType: "video/mp4", framing: framing, faults: faults)
    }

    @Test("A cold range is a miss, and the same range again is a hit")
    func aColdRangeIsAMissAndTheSameRangeWarmAHit() async throws {
        try await TestService.run { (service) async throws in
            service.upstream.serve("/a.mp4", asset())
            let connection = try await RawConnection(port: service.port)
            var outcomes: [String] = []
            for _ in 0..<2 {
                try await connection.request("GET", "/o/media/a.mp4", ["Range": "bytes=1000-200999"])
                let response = try #require(try await connection.response())
                #expect(response.status == 206)
                #expect(response.headers["Content-Range"] == "bytes 1000-200999/600000")
                #expect(response.headers["Content-Type"] == "video/mp4")
                #expect(response.headers["Via"]?.hasSuffix("1.1 larder") ?? false)
                #expect(AssetID(response.headers["Larder-Asset-Id"] ?? "") != nil)
                #expect(response.headers["X-Request-Id"] != nil)
                #expect(response.body == asset().bytes(1000..<201_000))
                outcomes.append(response.headers["Cache-Status"] ?? "")
            }
            #expect(outcomes[0].contains("fwd=miss") && outcomes[1].contains("Larder;hit"), "\(outcomes)")
            #expect(service.upstream.requests(for: "/a.mp4").count == 1)
            let line = await service.log.line { $0["outcome"] == "hit" }
            #expect(line?["bytes"] == "200000" && line?["bytesFromCache"] == "200000" && line?["aborted"] == nil)
            #expect(line?["path"] == "/o/media/a.mp4" && line?["firstByteSeconds"] != nil)
        }
    }

    @Test("A HEAD response has the fields but no body, and the connection stays usable")
    func headHasTheFieldsButNoBodyAndTheConnectionStaysUsable() async throws {
        try await TestService.run { (service) async throws in
            service.upstream.serve("/a.mp4", asset())
            var unbounded = asset(framing: .chunked)
            unbounded.acceptsRanges = false
            service.upstream.serve("/chunked", unbounded)
            let connection = try await RawConnection(port: service.port)
            for path in ["/o/media/a.mp4", "/o/media/chunked", "/v1/stats", "/nowhere"] {
                try await connection.request("HEAD", path)
                let head = try #require(try await connection.response(toHead: true))
                let status = path == "/nowhere" ? 404 : 200
                #expect(head.status == status)
                #expect(head.headers["Content-Length"] != "0")
                try await connection.request("GET", "/health/live")
                #expect(try await connection.response()?.json() == ["status": "live"], "after HEAD \(path)")
            }
        }
    }

    @Test("Conditional requests and unsatisfiable ranges get 304 and 416")
    func conditionsAndImpossibleRangesAreAnswered() async throws {
        try await TestService.run { (service) async throws in
            service.upstream.serve("/a.mp4", asset())
            let first = try await service.call("GET", "/o/media/a.mp4", ["Range": "bytes=0-9"])
            let tag = try #require(first.headers["ETag"])
            let same = try await service.call("GET", "/o/media/a.mp4", ["If-None-Match": tag])
            #expect(same.status == 304 && same.headers["ETag"] == tag)
            let none = try await service.call("GET", "/o/media/a.mp4", ["Range": "bytes=600000-"])
            #expect(none.status == 416 && none.headers["Content-Range"] == "bytes */600000")
            #expect(try none.json()["code"] == "rangeNotSatisfiable")
            #expect(none.headers["Content-Type"] == "application/problem+json")
            #expect(none.headers["Content-Length"] == String(none.body.count))
            for name in ["ETag", "Last-Modified", "Age", "Expires"] { #expect(none.headers[name] == nil, "\(name)") }
            #expect(none.headers.values("Cache-Control") == ["no-store"])
            let other = try await service.call("GET", "/o/media/a.mp4", ["If-Match": "\"other\""])
            #expect(other.status == 412)
            #expect(try other.json()["code"] == "preconditionFailed")
        }
    }

    @Test("A missing asset gives a problem document with the upstream status")
    func aMissingAssetIsMissingHereTooInOurOwnWords() async throws {
        try await TestService.run { (service) async throws in
            service.upstream.serve("/gone") { _ in .response(status: 410, body: Array("secret page".utf8)) }
            let missing = try await service.call("GET", "/o/media/nothing.mp4")
            #expect(missing.status == 404)
            #expect(try missing.json()["upstreamStatus"] == 404)
            let gone = try await service.call("GET", "/o/media/gone")
            #expect(gone.status == 410 && !gone.text.contains("secret page"))
            #expect(gone.headers["Content-Type"] == "application/problem+json")
            #expect(gone.headers["Cache-Control"] == "no-store")
        }
    }

    /// Serves the asset to the first request, and disconnects on all later ones.
    private func breaks(_ path: String, after asset: LoopbackAsset, _ upstream: LoopbackUpstream) {
        upstream.serve(path) { $0.number == 0 ? .asset(asset) : .hangUp }
    }

    @Test("A body that cannot be completed is cut off")
    func aBodyThatCannotBeCompletedIsCutOff() async throws {
        try await TestService.run(change: { $0.retries = 0 }) { (service) async throws in
            breaks("/short", after: asset([.cut(after: 100_000)]), service.upstream)
            let connection = try await RawConnection(port: service.port)
            try await connection.request("GET", "/o/media/short", ["Connection": "close"])
            let head = try #require(await connection.head())
            try #require(head.status == 200 && head.headers["Content-Length"] == "600000")
            let rest = await connection.rest()
            #expect(rest.count < 600_000 && rest == asset().bytes(0..<Int64(rest.count)))
            let line = await service.log.line { $0["path"] == "/o/media/short" }
            #expect(line?["aborted"] == "true")
        }
    }

    @Test("A chunked body that cannot be completed has no last chunk")
    func aChunkedBodyThatCannotBeCompletedHasNoLastChunk() async throws {
        try await TestService.run(change: { $0.retries = 0 }) { (service) async throws in
            var unbounded = asset([.cut(after: 100_000)], framing: .chunked)
            unbounded.acceptsRanges = false
            breaks("/short", after: unbounded, service.upstream)
            let connection = try await RawConnection(port: service.port)
            try await connection.request("GET", "/o/media/short", ["Connection": "close"])
            let head = try #require(await connection.head())
            try #require(head.status == 200 && head.headers["Transfer-Encoding"] == "chunked", "\(head)")
            let rest = await connection.rest()
            #expect(!rest.suffix(7).elementsEqual(Array("\r\n0\r\n\r\n".utf8)))
        }
    }

    @Test("A client that disconnects before the head cancels the read")
    func aClientThatHangsUpBeforeTheHeadEndsTheRead() async throws {
        try await TestService.run(limits: .init(halfClosedTimeout: .milliseconds(20))) { (service) async throws in
            let latch = LoopbackLatch()
            service.upstream.serve("/slow", asset([.stallBeforeHead(until: latch)]))
            let connection = try await RawConnection(port: service.port)
            try await connection.request("GET", "/o/media/slow")
            await latch.reached()
            try await connection.hangUp()
            let line = await service.log.line { $0["path"] == "/o/media/slow" }
            #expect(line?["outcome"] == "cancelled")
            latch.release()
        }
    }

    @Test("A client that disconnects mid-body ends the read")
    func aClientThatHangsUpInTheMiddleEndsTheRead() async throws {
        try await TestService.run(limits: .init(halfClosedTimeout: .milliseconds(20))) { (service) async throws in
            let latch = LoopbackLatch()
            service.upstream.serve("/slow", asset([.stall(after: 300_000, until: latch)]))
            let connection = try await RawConnection(port: service.port)
            try await connection.request("GET", "/o/media/slow")
            #expect(await connection.head()?.status == 200)
            #expect(await connection.bytes(200_000) == asset().bytes(0..<200_000))
            await latch.reached()
            try await connection.hangUp()
            let line = await service.log.line { $0["path"] == "/o/media/slow" }
            #expect(line?["aborted"] == "true")
            #expect(try await service.cache.statistics.snapshot().all.clientAborted == 1)
            latch.release()
        }
    }

    @Test("A read beyond its timeout gets 504")
    func aReadThatTakesTooLongIsTimedOut() async throws {
        try await TestService.run { (service) async throws in
            let latch = LoopbackLatch()
            service.upstream.serve("/slow", asset([.stallBeforeHead(until: latch)]))
            let late = try await service.call("GET", "/o/media/slow", ["Larder-Timeout": "0.1"])
            #expect(late.status == 504)
            #expect(try late.json()["timeout"] == "read")
            latch.release()
        }
    }

    @Test("A forwarding loop gets 508")
    func aLoopIsBroken() async throws {
        try await TestService.run { (service) async throws in
            service.upstream.serve("/a.mp4", asset())
            let loop = try await service.call(
                "GET", "/o/media/a.mp4", ["CDN-Loop": "other; v=1, \(service.cache.reader.loopName)"])
            #expect(loop.status == 508)
            #expect(try await service.call("GET", "/o/media/a.mp4", ["CDN-Loop": "larder"]).status == 200)
        }
    }

    @Test("An asset can be read by its identifier")
    func anAssetIsReadByItsIdentifierToo() async throws {
        try await TestService.run { (service) async throws in
            service.upstream.serve("/a.mp4", asset())
            let mounted = try await service.call("GET", "/o/media/a.mp4", ["Range": "bytes=5-9"])
            #expect(mounted.status == 206 && mounted.body == asset().bytes(5..<10), "\(mounted.text)")
            let id = try #require(mounted.headers["Larder-Asset-Id"])
            let known = try await service.call("GET", "/v1/assets/\(id)/content", ["Range": "bytes=5-9"])
            #expect(known.body == mounted.body && known.headers["Cache-Status"]?.contains("hit") ?? false)
        }
    }
}
