import CacheAPI
import CacheCore
import CacheEngine
import CacheStore
import CacheTestKit
import Testing

/// Damaged bytes are sent on neither path. Scrubs are started and followed over HTTP.
@Suite(.bothRoads, .timeLimit(.minutes(20))) struct IntegrityRouteTests {
    private let asset = LoopbackAsset(size: 3 << 20, contentType: "video/mp4")

    private func path(_ service: TestService, _ id: String?) async throws -> String {
        let id = try #require(AssetID(id ?? ""))
        return try #require(try await service.cache.assets.asset(id).filePath)
    }

    @Test("Damaged bytes are never sent on a persistent connection")
    func onAKeptConnectionDamagedBytesAreNeverSent() async throws {
        try await TestService.run(change: { $0.verification = .always }) { (service) async throws in
            service.upstream.serve("/a.mp4", asset)
            let cold = try await service.call("GET", "/o/media/a.mp4")
            let path = try await path(service, cold.headers["Larder-Asset-Id"])
            let connection = try await RawConnection(port: service.port)
            for (offset, range) in [(5000, 0..<10_000), (500_000, 400_000..<2_000_000), (1_500_000, 0..<3 << 20)] {
                try damage(path, at: Int64(offset))
                try await connection.request(
                    "GET", "/o/media/a.mp4", ["Range": "bytes=\(range.lowerBound)-\(range.upperBound - 1)"])
                let response = try #require(try await connection.response())
                #expect(response.status == 206)
                #expect(response.body.isSame(as: asset.bytes(Int64(range.lowerBound)..<Int64(range.upperBound))))
            }
            let badBlocks = try await service.cache.statistics.snapshot().integrity.badBlocks
            #expect(badBlocks == 3)
            try await connection.hangUp()
        }
    }

    @Test("A scrub can be started and followed")
    func aScrubIsBegunAndFollowed() async throws {
        try await TestService.run { (service) async throws in
            service.upstream.serve("/a.mp4", asset)
            let cold = try await service.call("GET", "/o/media/a.mp4")
            let path = try await path(service, cold.headers["Larder-Asset-Id"])
            try damage(path, at: 2_000_000)
            let begun = try await service.send("POST", "/v1/scrubs", ["bytesPerSecond": 1_000_000_000])
            #expect(begun.status == 202)
            let location = try #require(begun.headers["Location"])
            let isOver = try await eventually {
                try await service.call("GET", location).json()["state"] == "succeeded"
            }
            #expect(isOver)
            #expect(try await service.call("GET", location).json()["badBlocks"] == 1)
            #expect(try await service.call("GET", "/v1/scrubs/none").status == 404)
            #expect(try await service.send("POST", "/v1/scrubs", ["bytesPerSecond": 1]).status == 422)
            let again = try await service.call("GET", "/o/media/a.mp4")
            #expect(again.body.isSame(as: asset.bytes(0..<asset.size)))
            let metrics = try await service.call("GET", "/metrics")
            #expect(String(decoding: metrics.body, as: UTF8.self).contains("larder_checksum_failures_total 1"))
        }
    }

    /// The checksums of runs of the asset, as the document shows them.
    private func items(_ runs: [ByteRange]) -> [JSON] {
        runs.flatMap(BlockChecksums.cut).map { run in
            let digits = String(Checksum.of(asset.bytes(run)), radix: 16)
            return [
                "offset": .integer(run.lowerBound), "length": .integer(run.length),
                "crc32c": .string(String(repeating: "0", count: 8 - digits.count) + digits),
            ]
        }
    }

    @Test("The checksums of the cached blocks are listed page by page", arguments: [1, 3, 100])
    func checksums(limit: Int) async throws {
        try await TestService.run(change: { $0.readAheadBytes = 0 }) { (service) async throws in
            service.upstream.serve("/a.mp4", asset)
            let first = try await service.call("GET", "/o/media/a.mp4", ["Range": "bytes=0-99"])
            let id = try #require(first.headers["Larder-Asset-Id"])
            for range in ["2000000-2099999", "800000-1199999", "3000000-"] {
                _ = try await service.call("GET", "/o/media/a.mp4", ["Range": "bytes=\(range)"])
            }
            let extents = try await service.cache.assets.extents(of: #require(AssetID(id)))
            var (found, cursor): ([JSON], String?) = ([], nil)
            repeat {
                let next = cursor.map { "&cursor=\($0)" } ?? ""
                let page = try await service.call("GET", "/v1/assets/\(id)/integrity?limit=\(limit)\(next)").json()
                #expect(page["blockBytes"] == 262_144 && page["algorithm"] == "crc-32c" && page["generation"] == 1)
                #expect(page["etag"] == "\"v1\"" && page["contentLength"] == .integer(asset.size))
                #expect(page["complete"] == .bool(extents.byteCount == asset.size))
                let items = page["items"]?.array ?? []
                #expect(items.count <= limit)
                found += items
                cursor = if case .string(let text)? = page["nextCursor"] { text } else { nil }
            } while cursor != nil
            #expect(found == items(extents))
        }
    }

    @Test("A cursor of another generation is rejected, and the new one has its own checksums")
    func cursorOfAnotherGeneration() async throws {
        try await TestService.run { (service) async throws in
            service.upstream.serve("/a.mp4", LoopbackAsset(size: 3 << 20, seed: 7, etag: "\"v0\""))
            let first = try await service.call("GET", "/o/media/a.mp4")
            let target = "/v1/assets/\(try #require(first.headers["Larder-Asset-Id"]))/integrity"
            let cursor = try #require(try await service.call("GET", target + "?limit=2").json()["nextCursor"]?.plain)
            #expect(try await service.call("GET", "\(target)?cursor=\(cursor)").status == 200)
            service.upstream.serve("/a.mp4", asset)
            service.wallClock.advance(by: .seconds(3601))
            _ = try await service.call("GET", "/o/media/a.mp4")
            for cursor in [cursor, "x", ""] {
                #expect(try await service.call("GET", "\(target)?cursor=\(cursor)").status == 422, "\(cursor)")
            }
            let page = try await service.call("GET", target).json()
            #expect(page["generation"] == 2 && page["items"]?.array == items([0..<asset.size]))
        }
    }

    @Test("Encrypted and private content has no checksums")
    func withoutChecksums() async throws {
        try await TestService.run(change: { $0.isEncrypted = true }) { (service) async throws in
            service.upstream.serve("/a.mp4", asset)
            let read = try await service.call("GET", "/o/media/a.mp4")
            let id = try #require(read.headers["Larder-Asset-Id"])
            let refused = try await service.call("GET", "/v1/assets/\(id)/integrity")
            #expect(refused.status == 409)
            #expect(try refused.json()["code"] == "conflict")
            let unknown = "/v1/assets/\(String(repeating: "0", count: 32))/integrity"
            #expect(try await service.call("GET", unknown).status == 404)
            let digest = try await service.call("GET", "/o/media/a.mp4", ["Want-Repr-Digest": "sha-256=1"])
            #expect(digest.headers["Repr-Digest"] != nil)
        }
        try await TestService.run(change: { $0.forwarded = ["x-user"] }) { (service) async throws in
            service.upstream.serve("/a.mp4", asset)
            let read = try await service.call("GET", "/o/media/a.mp4", ["X-User": "one"])
            let id = try #require(read.headers["Larder-Asset-Id"])
            let refused = try await service.call("GET", "/v1/assets/\(id)/integrity")
            #expect(refused.status == 403)
            #expect(try refused.json()["code"] == "readerRequired")
        }
    }
}
