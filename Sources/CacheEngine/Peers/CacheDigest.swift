import CacheCore

/// The assets of a node as a Bloom filter: it tells which nodes are worth a question (Squid's cache digests; Fan, Cao, Almeida
/// and Broder, Summary Cache, 2000).
///
/// It contains all added assets. Of other assets it seems to contain 2.4 % at 8 bits per asset. Beyond ``maxBytes`` the bits
/// per asset decrease: two million assets give 15 %, eight million 63 %.
package struct CacheDigest: Hashable, Sendable {
    /// The largest size in bytes, without the header.
    static let maxBytes = 1 << 20
    /// More would set too many bits of a filter with 8 bits per asset (Squid's number).
    private static let mostHashes = 4
    private static let leastBytes = 64
    /// The format and its version.
    private static let magic = Array("LCD1".utf8)
    private static let headerBytes = magic.count + 1 + 4
    /// The largest encoded size in bytes.
    static let maxEncodedBytes = headerBytes + maxBytes

    /// The number of added assets.
    package private(set) var count = 0
    /// The number of bits for each asset.
    private let hashes: Int
    private var bits: [UInt8]

    /// An empty digest for this number of assets: a byte for each of them.
    init(capacity: Int) {
        bits = Array(repeating: 0, count: min(max(capacity, Self.leastBytes), Self.maxBytes))
        // The number with the fewest false positives is ln 2 times the bits per asset.
        hashes = min(Self.mostHashes, max(1, Int(0.69 * Double(bits.count * 8) / Double(max(1, capacity)))))
    }

    mutating func add(_ asset: AssetID) {
        count += 1
        for place in places(of: asset) { bits[place / 8] |= 1 << (place % 8) }
    }

    /// Whether the asset was added. True also for a few of those that were not.
    func contains(_ asset: AssetID) -> Bool { places(of: asset).allSatisfy { bits[$0 / 8] & 1 << ($0 % 8) != 0 } }

    /// The bits of an asset. Its identifier is a SHA-256, so that 32 bits of it are as good as a hash of it.
    private func places(of asset: AssetID) -> some Sequence<Int> {
        let (words, limit) = ([asset.high, asset.low], UInt64(bits.count * 8))
        return (0..<hashes).lazy.map { index in
            let word = words[index / 2] >> (index % 2 == 0 ? 32 : 0) & 0xFFFF_FFFF
            return Int((word * limit) >> 32)
        }
    }

    // MARK: Encoding

    /// The magic number, the number of bits for each asset (one byte), the number of assets (four bytes, the highest one
    /// first), and the filter.
    package var encoded: [UInt8] {
        let number = UInt32(clamping: count)
        let digits = [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: number >> $0) }
        return Self.magic + [UInt8(hashes)] + digits + bits
    }

    /// Throws `.upstreamProtocol` for other bytes than those of ``encoded``.
    init(encoded: [UInt8]) throws(CacheError) {
        let body = encoded.count - Self.headerBytes
        guard body > 0, body <= Self.maxBytes, encoded.starts(with: Self.magic),
            (1...Self.mostHashes).contains(Int(encoded[Self.magic.count]))
        else { throw CacheError(.upstreamProtocol, "The response of the node is no digest of its cache.") }
        hashes = Int(encoded[Self.magic.count])
        count = encoded[(Self.magic.count + 1)..<Self.headerBytes].reduce(0) { $0 << 8 | Int($1) }
        bits = Array(encoded[Self.headerBytes...])
    }
}
