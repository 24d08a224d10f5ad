@testable import CacheAPI
import CacheCore
import CacheEngine
import CacheTestKit
import CacheTracing
import Logging
import ServiceLifecycle
import Testing

/// Test fixture: the whole service on a loopback port, with real sockets, store and upstream.
struct TestService: Sendable {
    let port: Int
    let cache: AssetCache
    let upstream: LoopbackUpstream
    let log: LogRecord
    /// The clock of the cache. Socket timeouts use the real clock.
    let wallClock: ManualWallClock

    /// Whether the services enable the fast path.
    @TaskLocal static var isFastPathEnabled = true

    /// Mounts `upstream` as the origin `media`, serves, runs `body`, and shuts down gracefully.
    static func run(
        access: AccessRules = AccessRules(), limits: APISettings.Limits = .init(), tls: APISettings.TLS? = nil,
        origins: [Origin] = [], credentialsDirectory: String? = nil, fallbackDirectory: String? = nil,
        change: @Sendable (inout OriginSettings) -> Void = { _ in },
        settings adjust: @Sendable (inout APISettings) -> Void = { _ in }, live: LiveAPISettings? = nil,
        source: any ConfigurationSource = FixedConfiguration(),
        _ body: @Sendable @escaping (TestService) async throws -> Void
    ) async throws {
        // The fast path reads without waiting for the disk.
        let directory = try TemporaryDirectory(isOnDisk: isFastPathEnabled)
        let upstream = try LoopbackUpstream()
        defer { upstream.stop() }
        var media = TestCache.origin(upstream)
        change(&media.settings)
        let log = LogRecord()
        var settings = APISettings(
            listener: .tcp(host: "127.0.0.1", port: 0), tls: tls, access: access, limits: limits,
            isFastPathEnabled: isFastPathEnabled,
            version: "0.1.0-test",
            openAPI: "openapi: 3.1.0\n",
            dashboard: [.init(name: "index.html", text: "<!doctype html>"), .init(name: "main.js", text: "export {}")])
        adjust(&settings)
        let apiSettings = settings
        let test = try TestCache(
            directory: directory.path, origins: [media] + origins, credentialsDirectory: credentialsDirectory,
            fallbackDirectory: fallbackDirectory)
        try await test.run { cache in
            let (ports, port) = AsyncStream<Int>.makeStream()
            let application = try makeApplication(
                cache: cache, settings: apiSettings, live: live, source: source, random: SeededChance(),
                clock: ContinuousClock(),
                wallClock: test.wallClock, logger: log.logger
            ) { port.yield($0.port ?? 0) }
            let group = ServiceGroup(configuration: .init(services: [application], logger: log.logger))
            try await withThrowingTaskGroup(of: Void.self) { tasks in
                tasks.addTask { try await group.run() }
                let port = try #require(await ports.first { _ in true })
                let service = TestService(
                    port: port, cache: cache, upstream: upstream, log: log, wallClock: test.wallClock)
                do {
                    try await body(service)
                } catch {
                    await group.triggerGracefulShutdown()
                    throw error
                }
                await group.triggerGracefulShutdown()
                try await tasks.waitForAll()
            }
        }
    }

    /// The recorder of the service's requests.
    var recorder: RequestRecorder {
        RequestRecorder(
            log: AccessLog(log.logger), latencies: cache.statistics.requestLatencies,
            history: RequestHistory(events: cache.events),
            failures: FailureLog(logger: log.logger, clock: ContinuousClock()))
    }

    /// A responder for content with other access rules and another source of identifiers than the service's.
    func responder(
        access: AccessRules = AccessRules(), random: any RandomSource = SeededChance()
    ) -> ContentResponder {
        let live = LiveAPISettings(.init(access: access, cors: CORSRules()))
        return ContentResponder(
            reader: cache.reader,
            processor: RequestProcessor(
                gate: Authorizer(live, wallClock: wallClock), random: random, clock: ContinuousClock(),
                recorder: recorder, tracing: RequestTracing(tracer: .disabled)),
            limits: ReaderLimits(assets: cache.assets), permits: AdmissionLimits(live, clock: ContinuousClock()).reads,
            isFastPathEnabled: true, sendsFiles: true)
    }

    /// Sends one request on its own connection.
    func call(
        _ method: String, _ target: String, _ headers: HeaderList = [:], body: String? = nil
    ) async throws -> RawResponse {
        let connection = try await RawConnection(port: port)
        try await connection.request(method, target, headers, body: body)
        let response = try #require(try await connection.response(toHead: method == "HEAD"))
        try await connection.hangUp()
        return response
    }

    /// Sends one request with a JSON body.
    func send(_ method: String, _ target: String, _ json: JSON) async throws -> RawResponse {
        try await send(method, target, [:], json)
    }

    /// Sends one request with a JSON body and header fields.
    func send(
        _ method: String, _ target: String, _ headers: HeaderList, _ json: JSON
    ) async throws -> RawResponse {
        var headers = headers
        headers.set("Content-Type", "application/json")
        return try await call(method, target, headers, body: json.text)
    }
}

extension LogRecord {
    /// The lines of requests.
    var requests: [Line] { lines.filter { $0["message"] == "request" } }
}
