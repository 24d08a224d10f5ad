import CacheCore
@testable import CacheEngine
import TestChance
import Testing

@Suite("Digests of caches")
struct CacheDigestTests {
    private static func assets(_ count: Int, seed: UInt64) -> [AssetID] {
        var random = SeededRandom(seed: seed)
        return (0..<count).map { _ in AssetID(high: random.next(), low: random.next()) }
    }

    private static func digest(of assets: [AssetID]) -> CacheDigest {
        var digest = CacheDigest(capacity: assets.count)
        for asset in assets { digest.add(asset) }
        return digest
    }

    @Test("A digest contains all added assets, and at most 3 % of others", arguments: [100, 10_000, 300_000])
    func falsePositivesAreRare(_ count: Int) {
        let added = Self.assets(count, seed: 1)
        let digest = Self.digest(of: added)

        #expect(added.allSatisfy(digest.contains) && digest.count == count)
        let others = Self.assets(20_000, seed: 2).count(where: digest.contains)
        #expect(Double(others) / 20_000 < 0.03, "\(others) of 20000")
    }

    @Test("The size of a digest is limited: two million assets give 15 % false positives")
    func sizeIsLimited() {
        let added = Self.assets(2 << 20, seed: 3)
        let digest = Self.digest(of: added)

        #expect(digest.encoded.count == CacheDigest.maxEncodedBytes)
        #expect(added.prefix(1000).allSatisfy(digest.contains))
        let others = Self.assets(20_000, seed: 4).count(where: digest.contains)
        #expect(Double(others) / 20_000 < 0.17, "\(others) of 20000")
    }

    @Test("An encoded digest is decoded as it was", arguments: [0, 1, 1000])
    func encodingIsReversible(_ count: Int) throws {
        let digest = Self.digest(of: Self.assets(count, seed: 5))

        #expect(try CacheDigest(encoded: digest.encoded) == digest)
    }

    @Test("Other bytes are refused")
    func otherBytesAreRefused() {
        let good = Self.digest(of: Self.assets(10, seed: 6)).encoded
        var (noHashes, manyHashes, otherFormat) = (good, good, good)
        (noHashes[4], manyHashes[4], otherFormat[3]) = (0, 5, UInt8(ascii: "2"))
        let tooLong = good + [UInt8](repeating: 0, count: CacheDigest.maxEncodedBytes)
        let others: [[UInt8]] = [
            [], Array("<html>digest</html>".utf8), Array(good.prefix(9)), noHashes, manyHashes, otherFormat, tooLong,
        ]
        for bytes in others { #expect(throws: CacheError.self) { try CacheDigest(encoded: bytes) } }
    }

    // MARK: Digests of nodes

    @Test("At most three nodes with the asset are asked, and different assets begin with different ones")
    func threeNodesAreAsked() throws {
        let (digests, nodes) = (PeerDigests(), (1...10).map { "http://n\($0)" })
        let assets = Self.assets(50, seed: 7)
        #expect(digests.due(of: nodes, at: .zero).map(\.node) == nodes)
        for node in nodes.prefix(6) { digests.received(Self.digest(of: assets), tag: "\"1\"", of: node, at: .zero) }

        let asked = assets.map { digests.nodes(with: $0, of: nodes, at: .zero) }

        #expect(asked.allSatisfy { Set($0).count == 3 && Set($0).isSubset(of: nodes.prefix(6)) })
        #expect(Set(asked.compactMap(\.first)).count == 6)
        #expect(digests.nodes(with: assets[0], of: Array(nodes.suffix(4)), at: .zero) == [])
    }

    @Test("A digest is requested every 10 s, counts for 30 s after the last answer, and is forgotten with its node")
    func digestsEnd() throws {
        let (digests, asset) = (PeerDigests(), Self.assets(1, seed: 8)[0])
        _ = digests.due(of: ["a"], at: .zero)
        digests.received(Self.digest(of: [asset]), tag: "\"1\"", of: "a", at: .zero)

        #expect(digests.due(of: ["a"], at: .seconds(9)).isEmpty)
        let due = digests.due(of: ["a"], at: .seconds(10))
        #expect(due.map(\.tag) == ["\"1\""])
        digests.received(nil, tag: nil, of: "a", at: .seconds(10))
        #expect(digests.nodes(with: asset, of: ["a"], at: .seconds(40)) == ["a"])
        #expect(digests.failed("a", "no answer") && !digests.failed("a", "no answer"))
        #expect(digests.nodes(with: asset, of: ["a"], at: .seconds(41)) == [])
        #expect(digests.figures(at: .seconds(41)).isEmpty)

        #expect(digests.due(of: ["b"], at: .seconds(42)).map(\.node) == ["b"])
        #expect(digests.due(of: ["a", "b"], at: .seconds(43)).map(\.tag) == [nil])
    }
}
