import CacheAPI
import CacheCore
import CacheEngine
import CacheTestKit
import CurlUpstream
import Foundation
import FoundationNetworking
import Logging
import ServiceLifecycle
import Synchronization
import Testing

@testable import LarderServer

/// Reads over sockets while the configuration is reloaded.
@Suite(.timeLimit(.minutes(20))) struct ReloadLoadTests {
    private static let readers = 200
    private static let reloads = 20
    private static let size: Int64 = 100_000

    private let directory: TemporaryDirectory
    private let upstream: LoopbackUpstream

    init() throws {
        directory = try TemporaryDirectory()
        upstream = try LoopbackUpstream()
    }

    /// The settings of one reload: each differs from the one before in all reloadable parts, and the origin `other` is
    /// mounted in every second one.
    private func write(_ number: Int) throws {
        var text = """
            upstream: {maxTransfers: \(20 + number % 3), retries: \(3 + number % 2)}
            limits: {urlBytes: \(4096 + number), maxConcurrentReads: \(4000 + number), idleTimeout: \(60 + number)s}
            cors: {allowedOrigins: ["https://\(number).example"]}
            policy: {capacity: none, minFreeDisk: 1MiB, maxIdle: \(1 + number)d}
            origins:
              media: {baseURL: "\(upstream.url(""))", allowPrivateAddresses: true, freshness: \(1 + number)h,
                timeouts: {read: 5m}}

            """
        if number.isMultiple(of: 2) { text += "  other: {baseURL: \"http://other.example\"}\n" }
        try Data(text.utf8).write(to: URL(filePath: directory.path("config.yaml")), options: .atomic)
    }

    @Test("No read fails during reloads under load")
    func noReadFailsDuringReloads() async throws {
        defer { upstream.stop() }
        for index in 0..<Self.readers {
            upstream.serve("/\(index)", LoopbackAsset(size: Self.size, seed: UInt64(index)))
        }
        try write(0)
        let input = SettingsInput(file: directory.path("config.yaml"))
        let read = try input.read()
        let test = try TestCache(directory: directory.path("store"), origins: read.settings.origins)
        try await test.run { cache in
            var settings = read.settings.apiSettings(openAPI: "openapi: 3.1.0\n")
            settings.listener = .tcp(host: "127.0.0.1", port: 0)
            let live = LiveAPISettings(settings)
            let reloader = Reloader(
                input, read, appliers: [TestAPIApplier(live: live), CacheApplier(configuration: cache.configuration)],
                clock: ContinuousClock(), wallClock: test.wallClock, logger: Self.silent)
            let (ports, port) = AsyncStream<Int>.makeStream()
            let application = try makeApplication(
                cache: cache, settings: settings, live: live, source: reloader, random: SeededChance(),
                clock: ContinuousClock(), wallClock: test.wallClock, logger: Self.silent
            ) { port.yield($0.port ?? 0) }
            let group = ServiceGroup(configuration: .init(services: [application], logger: Self.silent))
            try await withThrowingTaskGroup(of: Void.self) { tasks in
                tasks.addTask { try await group.run() }
                let port = try #require(await ports.first { _ in true })
                let outcome = await Result { try await load(port, reloader) }
                await group.triggerGracefulShutdown()
                try await tasks.waitForAll()
                try outcome.get()
            }
        }
    }

    /// The state of the readers and of the reloads.
    private final class Progress: Sendable {
        /// The number of readers that have read their asset once.
        let started = Mutex(0)
        /// Whether all reloads are done.
        let isDone = Mutex(false)
    }

    /// Runs the readers until all reloads are done. Each reader reads the whole asset, missing at first, then parts of it.
    private func load(_ port: Int, _ reloader: Reloader) async throws {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpMaximumConnectionsPerHost = Self.readers
        configuration.timeoutIntervalForRequest = 300
        let session = URLSession(configuration: configuration)
        let progress = Progress()
        let faults = try await withThrowingTaskGroup(of: [String].self) { group in
            for index in 0..<Self.readers {
                group.addTask {
                    var faults: [String] = []
                    var round = 0
                    repeat {
                        let fault = await Self.fault(of: index, round, port, session)
                        faults += fault.map { ["reader \(index), round \(round): \($0)"] } ?? []
                        if round == 0 { progress.started.withLock { $0 += 1 } }
                        round += 1
                    } while !progress.isDone.withLock { $0 } && faults.isEmpty
                    return faults
                }
            }
            group.addTask {
                // The first half of the reloads happens while assets are fetched for the first time.
                for number in 1...Self.reloads {
                    if number == Self.reloads / 2 {
                        #expect(try await eventually { progress.started.withLock { $0 } == Self.readers })
                    }
                    try write(number)
                    let result = try await reloader.reload()
                    #expect(result.changed.contains("origins.media.freshness"))
                    #expect(result.changed.contains("origins.other"))
                }
                progress.isDone.withLock { $0 = true }
                return []
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
        #expect(faults == [])
        #expect(progress.started.withLock { $0 } == Self.readers)
    }

    /// Reads one range; returns the difference from the correct response, or nil.
    private static func fault(of index: Int, _ round: Int, _ port: Int, _ session: URLSession) async -> String? {
        guard let url = URL(string: "http://127.0.0.1:\(port)/o/media/\(index)") else { return "no URL" }
        var request = URLRequest(url: url)
        request.cachePolicy = .reloadIgnoringLocalCacheData
        let range = round == 0 ? 0..<size : Int64(round % 50)..<size / 2
        if round > 0 {
            request.setValue("bytes=\(range.lowerBound)-\(range.upperBound - 1)", forHTTPHeaderField: "Range")
        }
        do {
            let (body, response) = try await session.data(for: request)
            let status = (response as? HTTPURLResponse)?.statusCode
            guard status == (round == 0 ? 200 : 206) else { return "status \(status ?? 0)" }
            let expected = LoopbackAsset(size: size, seed: UInt64(index)).bytes(range)
            return Array(body) == expected ? nil : "other bytes"
        } catch {
            return "\(error)"
        }
    }

    private static var silent: Logger { Logger(label: "test") { _ in SwiftLogNoOpLogHandler() } }
}

/// Applies CORS and limits, without readers.
private struct TestAPIApplier: SettingsApplier {
    let live: LiveAPISettings

    func prepare(
        from old: LarderSettings, to new: LarderSettings
    ) async throws(CacheError) -> @Sendable () -> Void {
        let settings = new.apiSettings(openAPI: "")
        return { [live] in
            live.replace { .init(access: $0.access, cors: settings.cors, limits: settings.limits) }
        }
    }
}

extension Result where Failure == any Error {
    fileprivate init(_ body: () async throws -> Success) async {
        do { self = .success(try await body()) } catch { self = .failure(error) }
    }
}
