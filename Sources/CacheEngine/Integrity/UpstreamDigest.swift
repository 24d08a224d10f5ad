import CacheCore
import Cryptography
import Foundation
import NIOCore

/// A digest of the complete representation that the upstream stated.
struct UpstreamDigest: Hashable {
    let algorithm: DigestAlgorithm
    let value: Data

    /// The digests in `Repr-Digest` (RFC 9530 §3), `Content-MD5` (RFC 1864) and `x-amz-checksum-sha256`. Malformed
    /// values and other algorithms are omitted.
    ///
    /// So are checksums of multipart uploads: Amazon S3 computes the SHA-256 of such an object from the checksums of its
    /// parts (`COMPOSITE`), and its `ETag` ends with the number of parts.
    static func of(_ headers: HeaderList, tag: EntityTag? = nil) -> [UpstreamDigest] {
        let members = headers.values("Repr-Digest").flatMap { FieldText.members(of: $0) }
        let isComposite =
            headers.values("x-amz-checksum-type").contains { FieldText.lowered($0) != "full_object" }
            || tag.map(isOfParts) ?? false
        let checksums = isComposite ? [] : headers.values("x-amz-checksum-sha256")
        return members.compactMap { UpstreamDigest(member: $0) }
            + headers.values("Content-MD5").compactMap { UpstreamDigest(.md5, base64: $0) }
            + checksums.compactMap { UpstreamDigest(.sha256, base64: $0) }
    }

    /// The digests of a generation.
    static func of(_ generation: Generation) -> [UpstreamDigest] {
        of(generation.headers, tag: generation.validators.entityTag)
    }

    /// Whether a tag is that of a multipart upload: an MD5 in hexadecimal digits, `-`, and the number of parts.
    private static func isOfParts(_ tag: EntityTag) -> Bool {
        let parts = tag.opaque.split(separator: "-", omittingEmptySubsequences: false)
        return parts.count == 2 && parts[0].utf8.count == 32 && parts[0].allSatisfy(\.isHexDigit)
            && !parts[1].isEmpty && parts[1].utf8.allSatisfy(FieldText.isDigit)
    }

    /// Parses `sha-256=:…:` with optional parameters (RFC 8941 §3.2, §3.3.5); nil if malformed.
    private init?(member: Substring) {
        let parts = member.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count >= 3, parts[0].hasSuffix("="), parts[2].isEmpty || parts[2].hasPrefix(";"),
            let algorithm = DigestAlgorithm(rawValue: String(parts[0].dropLast()))
        else { return nil }
        self.init(algorithm, base64: String(parts[1]))
    }

    /// Nil unless the value is Base64 of the algorithm's length.
    private init?(_ algorithm: DigestAlgorithm, base64: String) {
        guard let value = Data(base64Encoded: base64), value.count == algorithm.function.byteCount else { return nil }
        self.algorithm = algorithm
        self.value = value
    }
}

extension DigestAlgorithm {
    fileprivate var function: HashFunction {
        switch self {
        case .sha256: .sha256
        case .sha512: .sha512
        case .md5: .md5
        }
    }
}

/// Computes digests of bytes in order.
final class DigestAccumulator: Sendable {
    private struct Sums {
        /// The hash states. Algorithms without a provider are missing.
        let hashes: [DigestAlgorithm: RunningHash]
        var byteCount: Int64 = 0
    }

    /// Guards the hash states and the number of bytes.
    private let sums: OrderedMutex<Sums>

    /// Nil unless the asset is completely on disk.
    convenience init?(summingUp state: OpenAsset.State) {
        guard let length = state.ledger.length, length > 0, state.ledger.extents.contains(0..<length) else {
            return nil
        }
        self.init(for: state.record.map { UpstreamDigest.of($0.generation) } ?? [])
    }

    /// Creates the hash states for SHA-256 and the stated algorithms.
    convenience init(for stated: [UpstreamDigest]) {
        self.init(Set(stated.map(\.algorithm)).union([.sha256]))
    }

    /// Creates the hash states for these algorithms.
    init(_ algorithms: Set<DigestAlgorithm>) {
        let hashes = algorithms.map { ($0, RunningHash($0.function)) }
        sums = OrderedMutex(.leaf, Sums(hashes: Dictionary(uniqueKeysWithValues: hashes).compactMapValues(\.self)))
    }

    /// The number of bytes that were added.
    var byteCount: Int64 { sums.withLock { $0.byteCount } }

    /// Adds the next bytes.
    func update(_ bytes: ByteBuffer) { bytes.withUnsafeReadableBytes(update) }

    /// As above, for an array.
    func update(_ bytes: [UInt8]) { bytes.withUnsafeBytes(update) }

    private func update(_ bytes: UnsafeRawBufferPointer) {
        sums.withLock { sums in
            for hash in sums.hashes.values { hash.update(bytes) }
            sums.byteCount += Int64(bytes.count)
        }
    }

    /// The digests of the bytes that were added.
    func digests() -> [DigestAlgorithm: Data] {
        sums.withLock { $0.hashes.mapValues { Data($0.digest) } }
    }

    /// Whether a stated digest differs from the computed one.
    func differs(from stated: [UpstreamDigest]) -> Bool {
        let found = digests()
        return stated.contains { digest in found[digest.algorithm].map { $0 != digest.value } ?? false }
    }

    /// The value of `Repr-Digest` with the SHA-256; nil if it was not computed.
    var field: String? { digests()[.sha256].map { DigestAlgorithm.sha256.member($0) } }
}

extension DigestAlgorithm {
    /// A member of a dictionary of digests (RFC 9530 §2).
    func member(_ digest: Data) -> String { "\(rawValue)=:\(digest.base64EncodedString()):" }
}
