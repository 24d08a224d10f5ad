import CacheCore
import CacheStore
import CacheTestKit
import NIOCore
import Testing

@testable import CacheEngine

/// Digests of whole assets: sent to clients and compared with the digest stated by the upstream.
@Suite struct DigestTests {
    /// The digests of "abc" from FIPS 180-2 and RFC 1321.
    private static let sha256 = "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0="
    private static let md5 = "kAFQmDzST7DWlj99KOF/cg=="

    @Test(
        "Bytes are compared with the stated digest",
        arguments: [
            (["Repr-Digest": "sha-256=:\(sha256):"], true),
            (["Repr-Digest": "id-sha=:YWJj:, sha-256=:\(sha256):;a=1"], true),
            (["Content-MD5": md5], true), (["x-amz-checksum-sha256": sha256], true),
            (["Repr-Digest": "sha-256=:\(sha256):", "Content-MD5": "AAAAAAAAAAAAAAAAAAAAAA=="], false),
            (["Repr-Digest": "md5=:AAAAAAAAAAAAAAAAAAAAAA==:"], false),
        ] as [(HeaderList, Bool)])
    func bytesAreComparedWithWhatIsStated(headers: HeaderList, fits: Bool) {
        let stated = UpstreamDigest.of(headers)
        let tally = DigestAccumulator(for: stated)
        tally.update(ByteBuffer(string: "a"))
        tally.update(ByteBuffer(string: "bc"))

        #expect(!stated.isEmpty)
        #expect(tally.differs(from: stated) != fits)
        #expect(tally.field == "sha-256=:\(Self.sha256):")
    }

    @Test(
        "A malformed digest field is ignored",
        arguments: [
            "sha-256", "sha-256=", "sha-256=:", "sha-256=::", "sha-256=:YWJj:", "sha-256=:\(sha256)",
            "sha-256=\(sha256)",
            "sha-256=:\(sha256):x", "crc32c=:\(sha256):", "=:\(sha256):", ":\(sha256):", "::::", "\(sha256)-12",
        ])
    func whatIsGarbledStatesNothing(value: String) {
        #expect(UpstreamDigest.of(["Repr-Digest": value, "x-amz-checksum-sha256": "\(Self.sha256)-3"]).isEmpty)
    }

    @Test("Checksums of multipart uploads are no digests of the whole (Amazon S3, \"Checking object integrity\")")
    func checksumsOfPartsStateNothing() {
        let field: HeaderList = ["x-amz-checksum-sha256": Self.sha256]
        let typed: (String) -> HeaderList = { HeaderList(field.fields + [.init("X-Amz-Checksum-Type", $0)]) }
        let parts = EntityTag("\"\(String(repeating: "0a", count: 16))-3\"")
        #expect(UpstreamDigest.of(typed("COMPOSITE")).isEmpty)
        #expect(UpstreamDigest.of(field, tag: parts).isEmpty)
        #expect(UpstreamDigest.of(typed("FULL_OBJECT")).count == 1)
        for tag in [
            "\"\(String(repeating: "0a", count: 16))\"", "\"a-3\"", "\"\(String(repeating: "0a", count: 16))-x\"",
        ] {
            #expect(UpstreamDigest.of(field, tag: EntityTag(tag)).count == 1)
        }
    }

    @Test("A scrub keeps bytes that came with the checksums of parts")
    func checksumsOfPartsDiscardNothing() async throws {
        var asset = LoopbackAsset(size: 3 << 20)
        asset.headers.set("x-amz-checksum-sha256", Self.sha256)
        asset.headers.set("Content-MD5", Self.md5)
        let (bench, size) = (try Bench(asset), asset.size)
        try await bench.cache().run { cache in
            _ = try await cache.body(of: "a.mp4", 0..<size)
            let report = try await scrubbed(cache)
            #expect(report.digests == 1 && report.badDigests == 0)
        }
    }

    @Test("A scrubbed asset is sent with its digest, also after a restart")
    func aScrubbedAssetIsSentWithItsDigestAlsoAfterARestart() async throws {
        let bench = try Bench()
        try await bench.cache().run { cache in
            _ = try await cache.body(of: "a.mp4")
            let report = try await scrubbed(cache)
            #expect(report.digests == 1 && report.badDigests == 0)
            #expect(try await digest(in: cache) == field(of: bench.asset))
            #expect(try await scrubbed(cache).digests == 1)
        }
        try await bench.cache().run { cache in
            let digest = try await digest(in: cache)
            #expect(digest == field(of: bench.asset))
        }
    }

    @Test("A partial asset gets no digest")
    func aPartIsNotSummedUp() async throws {
        let bench = try Bench()
        try await bench.cache().run { cache in
            _ = try await cache.body(of: "a.mp4", 0..<10)
            #expect(try await scrubbed(cache).digests == 0)
            #expect(try await digest(in: cache) == nil)
        }
    }

    @Test("An asset that differs from its upstream digest is refetched")
    func anAssetThatIsNotWhatItsUpstreamStatesIsFetchedAgain() async throws {
        let bench = try stating("sha-256=:\(Self.sha256):")
        let asset = bench.asset
        try await bench.cache().run { cache in
            _ = try await cache.body(of: "a.mp4")
            let report = try await scrubbed(cache)

            #expect(report.badDigests == 1 && report.badBlocks == 0)
            #expect(try await cache.statistics.snapshot().integrity.badDigests == 1)
            let again = try await cache.body(of: "a.mp4")
            #expect(again.bytes.isSame(as: asset.bytes(0..<asset.size)))
            #expect(bench.upstream.requestedBytes("/a.mp4") == 2 * asset.size)
        }
    }

    @Test("An asset that matches its upstream digest is kept")
    func anAssetThatIsWhatItsUpstreamStatesStays() async throws {
        let field = field(of: LoopbackAsset(size: 3 << 20))
        let bench = try stating(field)
        try await bench.cache().run { cache in
            _ = try await cache.body(of: "a.mp4")
            let report = try await scrubbed(cache)
            #expect(report.digests == 1 && report.badDigests == 0)
            #expect(try await digest(in: cache) == field)
        }
    }

    /// A fixture with an upstream that states `digest` for its asset.
    private func stating(_ digest: String) throws -> Bench {
        var asset = LoopbackAsset(size: 3 << 20)
        asset.headers.set("Repr-Digest", digest)
        return try Bench(asset)
    }

    private func field(of asset: LoopbackAsset) -> String {
        let tally = DigestAccumulator(for: [])
        tally.update(ByteBuffer(bytes: asset.bytes(0..<asset.size)))
        return tally.field ?? ""
    }

    private func scrubbed(_ cache: AssetCache) async throws -> ScrubReport {
        let order = try cache.scrubber.start(ScrubRequest(bytesPerSecond: 1 << 40))
        let isOver = try await eventually { try cache.scrubber.report(order.id).state != .running }
        #expect(isOver)
        let report = try cache.scrubber.report(order.id)
        #expect(report.state == .succeeded)
        return report
    }

    private func digest(in cache: AssetCache) async throws -> String? {
        let request = ContentRequest(headers: ["Range": "bytes=0-1"])
        let read = try await cache.reader.read(Bench.media, request: request)
        defer { read.abandon() }
        return read.plan.headers["Repr-Digest"]
    }
}
