import CacheCore
import CacheStore
import CacheTestKit

@testable import CacheEngine

/// Test fixture: an upstream with one asset at `/a.mp4`, and caches of it in a temporary directory.
struct Bench {
    let directory: TemporaryDirectory
    let upstream: LoopbackUpstream
    let asset: LoopbackAsset
    static let media = AssetReference.mounted(origin: "media", path: "a.mp4", key: nil)

    init(_ asset: LoopbackAsset = LoopbackAsset(size: 3 << 20)) throws {
        directory = try TemporaryDirectory()
        upstream = try LoopbackUpstream()
        upstream.serve("/a.mp4", asset)
        self.asset = asset
    }

    func cache(
        policy: PolicySettings = TestCache.policy, disk: any Disk = SystemDisk(), openFileLimit: Int = 256,
        _ change: (inout OriginSettings) -> Void = { _ in }
    ) throws -> TestCache {
        var origin = TestCache.origin(upstream)
        change(&origin.settings)
        return try TestCache(
            directory: directory.path, origins: [origin], policy: policy, disk: disk, openFileLimit: openFileLimit)
    }

    /// Reads other assets until the fd cache has closed the descriptor of `a.mp4`. Requires `openFileLimit: 2`.
    func crowdOut(of cache: AssetCache) async throws {
        for name in ["b", "c", "d", "e"] {
            upstream.serve("/\(name).mp4", LoopbackAsset(size: 1000))
            _ = try await cache.body(of: "\(name).mp4")
        }
    }

    /// The identifier of `a.mp4`.
    func id(in cache: AssetCache) async throws -> AssetID { try await cache.resolver.resolve(Self.media).id }
}

extension AssetCache {
    /// The open asset of this path; nil if it is not open.
    func openAsset(_ path: String = "a.mp4") async throws -> OpenAsset? {
        let id = try await resolver.resolve(.mounted(origin: "media", path: path, key: nil)).id
        defer { if let asset = context.openAssets.acquire(id) { release(asset, times: 2) } }
        return context.openAssets.acquire(id)
    }

    private func release(_ asset: OpenAsset, times: Int) {
        for _ in 0..<times { context.openAssets.release(asset) }
    }

    /// Whether the cache writes to the disk. After a rejected write it bypasses the disk for a while.
    func trustsDisk() throws -> Bool {
        try evictor.measureDisk()
        return !context.space.isShortOfDisk
    }

    /// Whether there is no fill, no reader and no space reservation.
    func isAtRest() async throws -> Bool {
        let isQuiet = context.openAssets.all.allSatisfy { asset in
            asset.look {
                $0.ledger.fillCount == 0 && $0.ledger.readerCount == 0 && $0.fills.isEmpty && $0.waiters.isEmpty
            }
        }
        return isQuiet && context.space.with { $0.reservedBytes } == 0
    }
}
