import CacheCore
import CacheTestKit
import Foundation
import FoundationNetworking
import Testing

/// Kills the running program: the short form of `make soak`.
@Suite struct KillTests {
    let directory: TemporaryDirectory
    let upstream: LoopbackUpstream
    let asset = LoopbackAsset(size: 24 << 20)

    init() throws {
        directory = try TemporaryDirectory()
        upstream = try LoopbackUpstream()
        upstream.serve("/a.mp4", asset)
    }

    @Test("A killed service starts again and serves no wrong byte", .timeLimit(.minutes(20)))
    func aKilledServiceStartsAgainAndServesNoWrongByte() async throws {
        for round in 0..<3 {
            let service = try await start()
            let wrong = await withTaskGroup(of: Int.self) { group in
                for reader in 0..<6 { group.addTask { await read(from: service, seed: UInt64(round * 6 + reader)) } }
                await upstream.waitForRequests(upstream.requests.count + 6)
                kill(service.process.processIdentifier, SIGKILL)
                return await group.reduce(0, +)
            }
            service.process.waitUntilExit()

            #expect(wrong == 0, "round \(round)")
        }
        let service = try await start()
        let whole = try await get(service, "/o/media/a.mp4", 0..<asset.size)
        service.process.terminate()
        service.process.waitUntilExit()

        #expect((whole == asset.bytes(0..<asset.size)) == true)
        #expect(service.process.terminationStatus == 0)
    }

    /// A running program and its port.
    private struct Service {
        let process: Process
        let port: Int
    }

    /// Reads random ranges until the service is killed. Returns the number of wrong responses.
    private func read(from service: Service, seed: UInt64) async -> Int {
        let random = SeededChance(seed: seed)
        var wrong = 0
        while true {
            let start = random.below(asset.size - 1)
            let range = start..<min(asset.size, start + 1 + random.below(400_000))
            // A truncated response is a visible failure, which a kill may cause.
            guard let bytes = try? await get(service, "/o/media/a.mp4", range) else { return wrong }
            if bytes != asset.bytes(range) { wrong += 1 }
        }
    }

    private func get(_ service: Service, _ path: String, _ range: ByteRange? = nil) async throws -> [UInt8] {
        var request = URLRequest(url: try #require(URL(string: "http://127.0.0.1:\(service.port)\(path)")))
        request.cachePolicy = .reloadIgnoringLocalCacheData
        if let range {
            request.setValue("bytes=\(range.lowerBound)-\(range.upperBound - 1)", forHTTPHeaderField: "Range")
        }
        let (body, response) = try await URLSession.shared.data(for: request)
        guard let status = (response as? HTTPURLResponse)?.statusCode, [200, 206].contains(status) else {
            throw URLError(.badServerResponse)
        }
        if let range, body.count != range.length { throw URLError(.networkConnectionLost) }
        return Array(body)
    }

    private func start() async throws -> Service {
        let place = try LoopbackUpstream()  // finds a free port
        place.stop()
        let process = Process()
        process.executableURL = LarderProgram.url
        process.arguments = [
            "serve", "--listen", "127.0.0.1:\(place.port)", "--data-directory", directory.path,
            "--set", "origins.media.baseURL=\(upstream.url(""))", "--set", "origins.media.allowPrivateAddresses=true",
            "--set", "origins.media.freshness=1h", "--set", "limits.shutdownDelay=1ms",
        ]
        process.standardError = FileHandle.nullDevice
        try process.run()
        let service = Service(process: process, port: place.port)
        let isReady = try await eventually { (try? await get(service, "/health/ready")) != nil }
        try #require(isReady)
        return service
    }
}
