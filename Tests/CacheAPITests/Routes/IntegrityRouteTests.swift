import CacheAPI
import CacheCore
import CacheEngine
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
}
