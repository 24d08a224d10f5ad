import CacheCore
import CacheTestKit
import NIOCore
import Testing

@testable import CacheEngine

@Suite struct ForwardedFieldTests {
    let bench: Bench

    init() throws { bench = try Bench() }

    private func cache(shared: Bool = false) throws -> TestCache {
        var origin = TestCache.origin(bench.upstream)
        origin.settings.forwarded = ["Authorization", "X-User"]
        origin.settings.sharesForwarded = shared
        return try TestCache(directory: bench.directory.path, origins: [origin])
    }

    /// Serves a file of its own to each user, and 403 to all others.
    private func serveEachUser() {
        let files = ["Bearer a": LoopbackAsset(size: 5000, seed: 1), "Bearer b": LoopbackAsset(size: 5000, seed: 2)]
        bench.upstream.serve("/a.mp4") { request in
            request.headers["Authorization"].flatMap { files[$0] }.map { .asset($0) } ?? .response(status: 403)
        }
    }

    private func read(
        _ cache: AssetCache, as user: String?, _ range: ByteRange = 0..<5000
    ) async throws -> [UInt8] {
        let read: ContentRead
        do {
            read = try await cache.reader.read(
                .mounted(origin: "media", path: "a.mp4", key: nil),
                request: ContentRequest(
                    headers: ["Range": range.fieldValue],
                    credentials: user.map { ["Authorization": $0] } ?? HeaderList()))
        } catch {
            throw error.error
        }
        var bytes: [UInt8] = []
        while let buffer = try await read.next() { bytes += buffer.readableBytesView }
        read.finish(.sent)
        return bytes
    }

    @Test("Each value of a forwarded field has an asset of its own")
    func eachValueHasItsOwnAsset() async throws {
        serveEachUser()
        try await cache().run { cache in
            for _ in 0..<2 {
                let (first, second) = (try await read(cache, as: "Bearer a"), try await read(cache, as: "Bearer b"))
                #expect(first == LoopbackUpstream.bytes(at: 0..<5000, seed: 1))
                #expect(second == LoopbackUpstream.bytes(at: 0..<5000, seed: 2))
            }
            #expect(bench.upstream.requests.count == 2)
            let denied = await #expect(throws: CacheError.self) { try await read(cache, as: "Bearer c") }
            #expect(denied?.code == .upstreamRefused(status: 403))
            let anonymous = await #expect(throws: CacheError.self) { try await read(cache, as: nil) }
            #expect(anonymous?.code == .upstreamRefused(status: 403))
        }
    }

    @Test("The key of a private asset does not contain the value, nor a digest that can be computed without the store")
    func theKeyIsNoDigestOfTheValue() async throws {
        serveEachUser()
        try await cache().run { cache in
            _ = try await read(cache, as: "Bearer a")
            let keys = try await cache.assets.page(AssetQuery()).items.map(\.record.key)
            let key = try #require(keys.first)
            let guess = AssetID(naming: "authorization:Bearer a").description.prefix(16)

            #expect(keys.count == 1)
            #expect(key.hasPrefix("/o/media/a.mp4 "))
            #expect(!key.contains("Bearer") && !key.contains(guess))
        }
    }

    @Test("A shared asset is read after a proof of the reader's right, which holds for a minute")
    func aSharedAssetNeedsAProof() async throws {
        let asset = LoopbackAsset(size: 5000, seed: 1)
        bench.upstream.serve("/a.mp4") { request in
            ["Bearer a", "Bearer b"].contains(request.headers["Authorization"])
                ? .asset(asset) : .response(status: 401)
        }
        let test = try cache(shared: true)
        try await test.run { cache in
            _ = try await read(cache, as: "Bearer a")
            let first = bench.upstream.requests.count
            _ = try await read(cache, as: "Bearer b")
            let second = Array(bench.upstream.requests.dropFirst(first))
            _ = try await read(cache, as: "Bearer b")

            #expect(second.map(\.range) == [0..<1])
            #expect(bench.upstream.requests.count == first + 1)

            let denied = await #expect(throws: CacheError.self) { try await read(cache, as: "Bearer c") }
            #expect(denied?.code == .upstreamRefused(status: 401))

            test.wallClock.advance(by: .seconds(61))
            let before = bench.upstream.requests.count
            _ = try await read(cache, as: "Bearer b")
            #expect(bench.upstream.requests.count == before + 1)
        }
    }

    @Test("Readers to whom the upstream shows different versions never share, also at once and after the lifetime")
    func differentVersionsAreNotShared() async throws {
        serveVersions()
        let test = try cache(shared: true)
        try await test.run { cache in
            for _ in 0..<2 {
                try await withThrowingTaskGroup(of: Bool.self) { group in
                    for (user, seed) in [("Bearer a", UInt64(1)), ("Bearer b", 2), ("", 3)] {
                        group.addTask {
                            try await read(cache, as: user.isEmpty ? nil : user)
                                == LoopbackUpstream.bytes(at: 0..<5000, seed: seed)
                        }
                    }
                    for try await isOwn in group { #expect(isOwn) }
                }
                test.wallClock.advance(by: .seconds(4000))
            }
        }
    }

    /// Serves a version of its own to two users and to readers without credentials.
    private func serveVersions() {
        bench.upstream.serve("/a.mp4") { request in
            switch request.headers["Authorization"] {
            case "Bearer a": .asset(LoopbackAsset(size: 5000, seed: 1, etag: "\"a\""))
            case "Bearer b": .asset(LoopbackAsset(size: 5000, seed: 2, etag: "\"b\""))
            default: .asset(LoopbackAsset(size: 5000, seed: 3, etag: "\"none\""))
            }
        }
    }

    @Test("The content of a private asset cannot be read by its identifier", arguments: [false, true])
    func noReadByIdentifier(shared: Bool) async throws {
        serveVersions()
        try await cache(shared: shared).run { cache in
            _ = try await read(cache, as: "Bearer a")
            let id = try #require(try await cache.assets.page(AssetQuery()).items.first?.record.id)
            let failure = await #expect(throws: ReadFailure.self) {
                try await cache.reader.read(.known(id), request: ContentRequest())
            }
            #expect(failure?.error.code == .forbidden)
        }
    }

    @Test("Forwarded fields are not sent to the target of a redirect")
    func aRedirectsTargetGetsNoField() async throws {
        let other = try LoopbackUpstream()
        other.serve("/b.mp4", bench.asset)
        bench.upstream.serve("/a.mp4") { _ in .redirect(to: other.url("/b.mp4"), status: 302) }
        try await cache().run { cache in
            _ = try await read(cache, as: "Bearer a", 0..<100)
            #expect(bench.upstream.requests.first?.headers["Authorization"] == "Bearer a")
            #expect(other.requests.count == 1)
            #expect(other.requests.first?.headers["Authorization"] == nil)
        }
    }
}
