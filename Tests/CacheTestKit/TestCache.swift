package import CacheCore
package import CacheEngine
package import CacheStore
package import CurlUpstream
import Foundation
import Logging
import NIOCore

/// Complete cache with real components: a store in `directory`, libcurl, and origins on the loopback interface.
package final class TestCache: Sendable {
    package let cache: AssetCache
    package let store: Store
    package let pool: CurlWorkerPool
    package let wallClock: ManualWallClock

    package init(
        directory: String, origins: [Origin] = [], policy: PolicySettings = TestCache.policy,
        wallClock: ManualWallClock = ManualWallClock(), disk: any Disk = SystemDisk(), openFileLimit: Int = 256,
        credentialsDirectory: String? = nil, fallbackDirectory: String? = nil, maxQueuedFills: Int = 4096,
        jobConcurrency: Int = 4, jobLimits: PrefetchSchedule.Limits = PrefetchSchedule.Limits(),
        seed: UInt64 = 1, listWait: Duration = .seconds(300), allowedHosts: [String] = ["127.0.0.1:*"],
        webhooks: [WebhookSettings] = [],
        upstream: (CurlWorkerPool) -> any Upstream = { $0 }
    ) throws {
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        self.wallClock = wallClock
        let masterKey = MasterKey(id: "test", key: Array(0..<32))
        store = try Store.open(
            directory: directory, disk: disk, masterKeys: MasterKeys(MasterKeys.Content(keys: [masterKey])),
            openFileLimit: openFileLimit, wallClock: wallClock, logger: logger)
        pool = CurlWorkerPool(clock: ContinuousClock(), logger: logger)
        var absolute = OriginSettings(baseURL: "http://127.0.0.1")
        absolute.allowPrivateAddresses = true
        absolute.isEncrypted = Self.encryptsAll
        var origins = origins
        if Self.encryptsAll { for index in origins.indices { origins[index].settings.isEncrypted = true } }
        var settings = AssetCache.Settings(
            policy: policy, absolute: absolute, allowedHosts: HostPatterns(allowedHosts), origins: origins,
            jobConcurrency: jobConcurrency, jobLimits: jobLimits, credentialsDirectory: credentialsDirectory,
            fallbackDirectory: fallbackDirectory, maxQueuedFills: maxQueuedFills, listWait: listWait)
        settings.webhooks = webhooks
        cache = AssetCache(
            dependencies: AssetCache.Dependencies(
                store: store, upstream: upstream(pool), clock: ContinuousClock(), wallClock: wallClock,
                random: SeededChance(seed: seed), logger: logger),
            settings: settings)
    }

    /// Whether the content of all origins is stored encrypted: with the environment variable `LARDER_TEST_ENCRYPT`, each
    /// test of a complete cache is one of encryption.
    private static let encryptsAll = ProcessInfo.processInfo.environment["LARDER_TEST_ENCRYPT"] != nil

    /// A policy without a capacity limit and without a free-disk limit, so that nothing is evicted unexpectedly.
    package static var policy: PolicySettings { PolicySettings(capacityBytes: nil, minFreeDiskBytes: 0) }

    /// Runs the cache and its services during `body`, then shuts everything down. `isOrderly` false leaves the store in
    /// the state of an unclean shutdown.
    package func run<Value: Sendable>(
        isOrderly: Bool = true, _ body: @Sendable (AssetCache) async throws -> Value
    ) async throws -> Value {
        try await cache.prepare()
        let outcome = await withTaskGroup { group in
            group.addTask { await self.cache.run() }
            let outcome: Result<Value, any Error>
            do { outcome = .success(try await body(self.cache)) } catch { outcome = .failure(error) }
            group.cancelAll()
            return outcome
        }
        pool.shutdown()
        try store.close(isOrderly: isOrderly)
        return try outcome.get()
    }

    /// An origin at `upstream` with a freshness lifetime of one hour.
    package static func origin(_ upstream: LoopbackUpstream, name: String = "media") -> Origin {
        var settings = OriginSettings(baseURL: upstream.url(""))
        settings.allowPrivateAddresses = true
        settings.freshness = .ttl(.seconds(3600))
        settings.readTimeout = .seconds(300)  // a slow machine must not fail the test
        return Origin(name: name, settings: settings)
    }
}

extension AssetCache {
    /// Reads a range of a mounted asset to its end. Without a range the request has no `Range` field.
    package func body(
        of path: String, _ range: ByteRange? = nil, origin: String = "media", headers: HeaderList = [:]
    ) async throws -> (outcome: ReadOutcome, status: Int, bytes: [UInt8]) {
        var headers = headers
        if let range { headers.set("Range", "bytes=\(range.lowerBound)-\(range.upperBound - 1)") }
        let read: ContentRead
        do {
            read = try await reader.read(
                .mounted(origin: origin, path: path, key: nil), request: ContentRequest(headers: headers))
        } catch {
            throw error.error
        }
        var bytes: [UInt8] = []
        do {
            while let buffer = try await read.next() { bytes += buffer.readableBytesView }
        } catch {
            read.finish(.failed(error))
            throw error
        }
        read.finish(.sent)
        return (read.outcome, read.plan.status, bytes)
    }
}
