import CacheCore
import CacheStore
import CacheTestKit
import NIOCore
import Testing

@testable import CacheEngine

/// The digest fields of reads (RFC 9530), and the limits of their computation.
@Suite struct DigestFieldTests {
    private static func member(_ algorithm: DigestAlgorithm, _ bytes: [UInt8]) -> String? {
        let sums = DigestAccumulator([algorithm])
        sums.update(bytes)
        return sums.digests()[algorithm].map(algorithm.member)
    }

    /// The fields of a read of a range; nil: of the whole asset.
    private func fields(
        _ cache: AssetCache, _ range: String? = nil, content: DigestAlgorithm? = .sha256,
        representation: DigestAlgorithm? = .sha256
    ) async throws -> HeaderList {
        let headers: HeaderList = range.map { ["Range": "bytes=\($0)"] } ?? [:]
        let read = try await cache.reader.read(Bench.media, request: ContentRequest(headers: headers))
        defer { read.abandon() }
        return await read.digestFields(content: content, representation: representation)
    }

    @Test("A complete asset has the digests of its body and of the representation")
    func completeAsset() async throws {
        let bench = try Bench()
        let (asset, whole) = (bench.asset, bench.asset.bytes(0..<bench.asset.size))
        try await bench.cache().run { cache in
            _ = try await cache.body(of: "a.mp4")
            for algorithm in [DigestAlgorithm.sha256, .sha512] {
                let all = try await fields(cache, content: algorithm, representation: algorithm)
                #expect(all["Content-Digest"] == Self.member(algorithm, whole))
                #expect(all["Repr-Digest"] == Self.member(algorithm, whole))
                let part = try await fields(cache, "200000-599999", content: algorithm, representation: algorithm)
                #expect(part["Content-Digest"] == Self.member(algorithm, asset.bytes(200_000..<600_000)))
                #expect(part["Repr-Digest"] == Self.member(algorithm, whole))
            }
            #expect(try await fields(cache, content: nil, representation: nil).fields.isEmpty)
            #expect(try await fields(cache, content: nil).fields.map(\.name) == ["Repr-Digest"])
            #expect(try await fields(cache, representation: nil).fields.map(\.name) == ["Content-Digest"])
        }
    }

    @Test("A multipart response has the digest of its body with the delimiters")
    func multipart() async throws {
        let bench = try Bench()
        try await bench.cache().run { cache in
            _ = try await cache.body(of: "a.mp4")
            let request = ContentRequest(headers: ["Range": "bytes=5-9,300000-700000"])
            let read = try await cache.reader.read(Bench.media, request: request)
            let fields = await read.digestFields(content: .sha256, representation: nil)
            var body: [UInt8] = []
            while let bytes = try await read.next() { body += bytes.readableBytesView }
            read.finish(.sent)
            #expect(body.count > 400_006)
            #expect(fields["Content-Digest"] == Self.member(.sha256, body))
        }
    }

    @Test("A cached part has the digest of its bytes, a body that must be fetched has none")
    func partialAsset() async throws {
        let bench = try Bench()
        let asset = bench.asset
        try await bench.cache().run { cache in
            _ = try await cache.body(of: "a.mp4", 0..<10_000)
            let cached = try await fields(cache, "5-9999")
            #expect(cached["Content-Digest"] == Self.member(.sha256, asset.bytes(5..<10_000)))
            #expect(cached["Repr-Digest"] == nil)
            #expect(try await fields(cache, "2000000-2999999").fields.isEmpty)
        }
    }

    @Test("A damaged block leads to no digest, and the refetched bytes have one")
    func damagedBlock() async throws {
        let bench = try Bench()
        let (asset, whole) = (bench.asset, bench.asset.bytes(0..<bench.asset.size))
        try await bench.cache().run { cache in
            _ = try await cache.body(of: "a.mp4")
            // Damage before the commit would be found by the commit.
            try await cache.context.commits.flush()
            try damage(#require(bench.directory.assetFiles().first), at: 1_000_000)
            #expect(try await fields(cache, "900000-1100000").fields.isEmpty)
            #expect(try await cache.body(of: "a.mp4").bytes.isSame(as: whole))
            let again = try await fields(cache, "900000-1100000")
            #expect(again["Content-Digest"] == Self.member(.sha256, asset.bytes(900_000..<1_100_001)))
            #expect(again["Repr-Digest"] == Self.member(.sha256, whole))
        }
    }

    @Test("A digest of the upstream is kept, and a wanted one is added to it")
    func statedDigest() async throws {
        var asset = LoopbackAsset(size: 3 << 20)
        let whole = asset.bytes(0..<asset.size)
        let stated = try #require(Self.member(.sha512, whole))
        asset.headers.set("Repr-Digest", stated)
        let bench = try Bench(asset)
        try await bench.cache().run { cache in
            _ = try await cache.body(of: "a.mp4")
            let added = try #require(Self.member(.sha256, whole))
            #expect(try await fields(cache)["Repr-Digest"] == "\(stated), \(added)")
            // The response has it already.
            #expect(try await fields(cache, representation: .sha512)["Repr-Digest"] == nil)
        }
    }

    @Test("Bytes that contradict the digest of the upstream get no further one")
    func contradictedDigest() async throws {
        var asset = LoopbackAsset(size: 3 << 20)
        asset.headers.set("Repr-Digest", try #require(Self.member(.sha512, [1, 2, 3])))
        let bench = try Bench(asset)
        try await bench.cache().run { cache in
            _ = try await cache.body(of: "a.mp4")
            for _ in 0..<2 { #expect(try await fields(cache).fields.isEmpty) }
            // The bytes of a part are those that are sent.
            let part = try await fields(cache, "0-9")
            #expect(part.fields.map(\.name) == ["Content-Digest"])
        }
    }

    @Test("Another generation has another digest")
    func changedGeneration() async throws {
        let bench = try Bench()
        let test = try bench.cache()
        try await test.run { cache in
            _ = try await cache.body(of: "a.mp4")
            let before = try await fields(cache)
            let next = LoopbackAsset(size: 3 << 20, seed: 2, etag: "\"v2\"")
            bench.upstream.serve("/a.mp4", next)
            test.wallClock.advance(by: .seconds(3601))
            _ = try await cache.body(of: "a.mp4")
            let after = try await fields(cache)
            #expect(before["Repr-Digest"] != after["Repr-Digest"])
            #expect(after["Repr-Digest"] == Self.member(.sha256, next.bytes(0..<next.size)))
            #expect(after["Content-Digest"] == after["Repr-Digest"])
        }
    }

    @Test("A response with a digest is cut off when its asset changes, and is not continued", arguments: [false, true])
    func changeDuringResponse(isDigested: Bool) async throws {
        let bench = try Bench(LoopbackAsset(size: 12 << 20))
        try await bench.cache().run { cache in
            _ = try await cache.body(of: "a.mp4")
            let read = try await cache.reader.read(Bench.media, request: ContentRequest())
            let fields = await read.digestFields(content: isDigested ? .sha256 : nil, representation: nil)
            #expect(fields.fields.isEmpty != isDigested)
            var received = Int64(try await read.next()?.readableBytes ?? 0)
            // The same bytes with another validator: without a digest, the read continues with them.
            bench.upstream.serve("/a.mp4", LoopbackAsset(size: 12 << 20, etag: "\"v2\""))
            _ = try await cache.assets.dropExtents(of: bench.id(in: cache), in: 8 << 20..<12 << 20)
            var failure: CacheError?
            do throws(CacheError) {
                while let bytes = try await read.next() { received += Int64(bytes.readableBytes) }
            } catch {
                failure = error
            }
            read.finish(failure.map { .failed($0) } ?? .sent)
            #expect(failure?.code == (isDigested ? .assetChanged : nil))
            #expect((received == 12 << 20) != isDigested)
        }
    }

    @Test("The digest of a large asset is computed in the background, and is kept when a part is evicted")
    func largeAsset() async throws {
        let bench = try Bench(LoopbackAsset(size: 17 << 20))
        try await bench.cache().run { cache in
            _ = try await cache.body(of: "a.mp4")
            #expect(try await fields(cache).fields.isEmpty)
            let isKnown = try await eventually { try await !fields(cache).fields.isEmpty }
            #expect(isKnown)
            let (asset, id) = (bench.asset, try await bench.id(in: cache))
            let expected = Self.member(.sha256, asset.bytes(0..<asset.size))
            #expect(try await fields(cache)["Content-Digest"] == expected)
            _ = try await cache.assets.dropExtents(of: id, in: 0..<1 << 20)
            #expect(try await fields(cache, "5000000-5000009")["Repr-Digest"] == expected)
            #expect(try await fields(cache)["Content-Digest"] == nil)
        }
    }

    @Test("A body above the limit has no Content-Digest")
    func largeBody() async throws {
        let bench = try Bench(LoopbackAsset(size: 18 << 20))
        let last = DigestRegistry.maxBytesPerResponse
        try await bench.cache().run { cache in
            _ = try await cache.body(of: "a.mp4")
            #expect(try await fields(cache, "0-\(last)", representation: nil).fields.isEmpty)
            #expect(try await fields(cache, "0-\(last - 1)", representation: nil)["Content-Digest"] != nil)
        }
    }

    @Test("Computations beyond the limit are omitted")
    func permits() async {
        let registry = DigestRegistry()
        let depth = await nested(registry, 1)
        #expect(depth == 32)
        #expect(await registry.withPermit { 1 } == 1)
    }

    /// The depth of nested computations at which one is omitted.
    private func nested(_ registry: DigestRegistry, _ depth: Int) async -> Int {
        await registry.withPermit { await nested(registry, depth + 1) } ?? depth - 1
    }

    @Test("A computation is queued once, until it has ended")
    func queue() async {
        let registry = DigestRegistry()
        let ids = (0..<80).map { AssetID(high: 1, low: UInt64($0)) }
        let orders = ids.map { DigestRegistry.Order(asset: $0, algorithm: .sha256) }
        for order in [orders[0], orders[0]] + orders { registry.queue(order) }
        var turns = registry.orders.makeAsyncIterator()
        var taken: [DigestRegistry.Order] = []
        for _ in 0..<64 { taken += [await turns.next()].compactMap { $0 } }
        #expect(taken == Array(orders.prefix(64)))
        registry.finished(orders[0])
        registry.queue(orders[79])
        #expect(await turns.next() == orders[79])
    }
}
