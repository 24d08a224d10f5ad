import CacheCore
import Crypto
import Foundation
import NIOCore
import Synchronization

/// What an upstream says the whole of a representation sums up to.
struct StatedDigest: Hashable {
    enum Algorithm: String { case sha256 = "sha-256", sha512 = "sha-512", md5 = "md5" }

    let algorithm: Algorithm
    let value: Data

    /// Those of `Repr-Digest` (RFC 9530 §3), `Content-MD5` (RFC 1864) and `x-amz-checksum-sha256`; garbled ones, and those of
    /// other algorithms or of parts put together, are absent.
    static func of(_ headers: HeaderList) -> [StatedDigest] {
        let members = headers.values("Repr-Digest").flatMap { FieldText.members(of: $0) }
        return members.compactMap { StatedDigest(member: $0) }
            + headers.values("Content-MD5").compactMap { StatedDigest(.md5, base64: $0) }
            + headers.values("x-amz-checksum-sha256").compactMap { StatedDigest(.sha256, base64: $0) }
    }

    /// `sha-256=:…:`, perhaps with parameters (RFC 8941 §3.2, §3.3.5).
    private init?(member: Substring) {
        let parts = member.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count >= 3, parts[0].hasSuffix("="), parts[2].isEmpty || parts[2].hasPrefix(";"),
            let algorithm = Algorithm(rawValue: String(parts[0].dropLast()))
        else { return nil }
        self.init(algorithm, base64: String(parts[1]))
    }

    private init?(_ algorithm: Algorithm, base64: String) {
        guard let value = Data(base64Encoded: base64), value.count == algorithm.byteCount else { return nil }
        self.algorithm = algorithm
        self.value = value
    }
}

extension StatedDigest.Algorithm {
    fileprivate var byteCount: Int {
        switch self {
        case .sha256: SHA256.byteCount
        case .sha512: SHA512.byteCount
        case .md5: Insecure.MD5.byteCount
        }
    }
}

/// Sums up a representation's bytes, from the first to the last, in the ways that somebody has stated, and in SHA-256.
final class DigestTally: Sendable {
    private struct Sums {
        var sha256 = SHA256()
        var sha512: SHA512?
        var md5: Insecure.MD5?
        var byteCount: Int64 = 0
    }

    private let sums: Mutex<Sums>

    /// Nil where not all of the asset is on disk.
    convenience init?(summingUp state: OpenAsset.State) {
        guard let length = state.ledger.length, length > 0, state.ledger.extents.contains(0..<length) else {
            return nil
        }
        self.init(for: StatedDigest.of(state.record?.generation.headers ?? [:]))
    }

    init(for stated: [StatedDigest]) {
        sums = Mutex(
            Sums(
                sha512: stated.contains { $0.algorithm == .sha512 } ? SHA512() : nil,
                md5: stated.contains { $0.algorithm == .md5 } ? Insecure.MD5() : nil))
    }

    var byteCount: Int64 { sums.withLock { $0.byteCount } }

    func update(_ bytes: ByteBuffer) {
        bytes.withUnsafeReadableBytes { bytes in
            sums.withLock { sums in
                sums.sha256.update(bufferPointer: bytes)
                sums.sha512?.update(bufferPointer: bytes)
                sums.md5?.update(bufferPointer: bytes)
                sums.byteCount += Int64(bytes.count)
            }
        }
    }

    /// Whether the bytes are others than was stated.
    func differs(from stated: [StatedDigest]) -> Bool {
        let found = sums.withLock { sums in
            [
                .sha256: Data(sums.sha256.finalize()), .sha512: sums.sha512.map { Data($0.finalize()) },
                .md5: sums.md5.map { Data($0.finalize()) },
            ] as [StatedDigest.Algorithm: Data?]
        }
        return stated.contains { digest in found[digest.algorithm]?.map { $0 != digest.value } ?? false }
    }

    /// The value of `Repr-Digest`.
    var field: String { "sha-256=:\(sums.withLock { Data($0.sha256.finalize()) }.base64EncodedString()):" }
}
