import CacheCore
import Cryptography
import Foundation

/// Encryption of the bytes of one file: AES-256 in counter mode (NIST SP 800-38A §6.5) with a random key of the file.
///
/// - The counter of the 16 bytes at `offset` is a random nonce of 64 bits, followed by `offset / 16` as 64 bits.
/// - A nonce is chosen at random and encrypts each offset at most once. A write that would repeat an offset chooses a
///   new nonce. No nonce outlives the process, so that a crash cannot repeat one.
/// - The nonce of each range is stored in the catalog by the commit of its extents (`NonceTable`).
/// - Bytes that are present are not written again: their nonce would change while others read them, or while the catalog
///   still claims them with the former one. All bytes of a file belong to one generation, so that a second write brings
///   the same bytes.
final class FileCipher: Sendable {
    /// The sealed key, for the catalog; nil for a file without a row.
    let sealedKey: SealedKey?
    /// Opens the sealed key; its result is nil if the master key is not available. Nil: the key is known from the start.
    private let unseal: (@Sendable () -> SymmetricKey?)?
    /// Held during a write, from the choice of the missing parts to their entry in the state.
    private let writing = OrderedMutex(.encryptedWrites, ())
    private let state: OrderedMutex<State>

    /// The keys for content and checksums.
    private struct Keys: Sendable {
        let content, sums: SymmetricKey

        /// Derives both from the key of the file (HKDF-SHA256, RFC 5869).
        init(_ file: SymmetricKey) {
            content = HashFunction.sha256.derivedKey(from: file, for: "larder content")
            sums = HashFunction.sha256.derivedKey(from: file, for: "larder sums")
        }
    }

    /// Guarded by `state`.
    private struct State {
        /// Nil until the sealed key is opened.
        var keys: Keys?
        var isDestroyed = false
        /// The nonces of the bytes in the file.
        var runs: NonceRuns
        /// The part of `runs` that is damaged: it is to be written again.
        var free = ByteRangeSet()
        /// The part of `runs` that is to be punched. It is in the file until then.
        var leaving = ByteRangeSet()
        /// The nonce for writes, and the ranges that it has encrypted.
        var nonce = FileCipher.newNonce()
        var used = ByteRangeSet()
    }

    /// - Parameters:
    ///   - sealedKey: the key as it is stored; nil for a file without a row.
    ///   - runs: the nonces of the bytes that are in the file.
    ///   - unseal: returns the key of the file; nil: the master key is missing. It is called again by each use.
    init(sealedKey: SealedKey?, runs: NonceRuns = NonceRuns(), unseal: @escaping @Sendable () -> SymmetricKey?) {
        self.sealedKey = sealedKey
        self.unseal = unseal
        state = OrderedMutex(.leaf, State(runs: runs))
    }

    /// A cipher with a new key, which its master key need not open.
    init(sealedKey: SealedKey?, key: SymmetricKey) {
        self.sealedKey = sealedKey
        unseal = nil
        state = OrderedMutex(.leaf, State(keys: Keys(key), runs: NonceRuns()))
    }

    /// The error of each use while the master key is missing; nil: the bytes can be read and written.
    var lock: CacheError? { keys == nil ? SealedKey.missing(sealedKey) : nil }

    private var keys: Keys? {
        let (known, isDestroyed) = state.withLock { ($0.keys, $0.isDestroyed) }
        if let known { return known }
        guard !isDestroyed, let keys = unseal?().map(Keys.init) else { return nil }
        return state.withLock { state in
            if !state.isDestroyed { state.keys = keys }
            return state.keys
        }
    }

    /// Forgets the key for ever: each later use fails as if the master key were missing.
    func destroy() { state.withLock { ($0.keys, $0.isDestroyed) = (nil, true) } }

    private func unlocked() throws(CacheError) -> Keys {
        guard let keys else { throw SealedKey.missing(sealedKey) }
        return keys
    }

    /// The nonces of the ranges, for the catalog.
    func runs(in ranges: some Sequence<ByteRange>) -> [NonceRuns.Run] {
        state.withLock { state in ranges.flatMap { state.runs.runs(in: $0) } }
    }

    /// Records that ranges are damaged. A later write brings them with a new nonce.
    func release(_ ranges: some Sequence<ByteRange>) {
        state.withLock { state in
            for range in ranges { for run in state.runs.runs(in: range) { state.free.insert(run.range) } }
        }
    }

    /// Records that ranges are to be punched. A later write of a range keeps its bytes.
    func leave(_ ranges: some Sequence<ByteRange>) {
        state.withLock { state in for range in ranges { state.leaving.insert(range) } }
    }

    /// The parts of a range that must not be claimed without a further write: missing, damaged or to be punched.
    func unsure(in range: ByteRange) -> [ByteRange] {
        state.withLock { $0.runs.gaps(in: range) + $0.free.runs(in: range) + $0.leaving.runs(in: range) }
    }

    /// Records that a range was punched.
    func erase(_ range: ByteRange) {
        state.withLock { state in
            state.runs.remove(range)
            state.free.remove(range)
            state.leaving.remove(range)
        }
    }

    /// Passes the parts of `bytes` that are not in the file, or damaged there, to `write`, encrypted, and enters their
    /// nonce. Returns the other parts.
    func write(
        _ bytes: UnsafeRawBufferPointer, at offset: Int64,
        _ write: (_ plain: UnsafeRawBufferPointer, _ sealed: UnsafeRawBufferPointer, Int64) throws(CacheError) -> Bool
    ) throws(CacheError) -> [ByteRange] {
        let keys = try unlocked()
        return try writing.withLock { _ throws(CacheError) in
            let range = ByteRange(offset: offset, length: Int64(bytes.count))
            let missing = state.withLock { state in
                state.leaving.remove(range)
                return state.runs.gaps(in: range) + state.free.runs(in: range)
            }
            var written: [ByteRange] = []
            for gap in missing {
                let plain = UnsafeRawBufferPointer(
                    rebasing: bytes[Int(gap.lowerBound - offset)..<Int(gap.upperBound - offset)])
                let nonce = state.withLock { state in
                    state.runs.remove(gap)
                    state.free.remove(gap)
                    if !state.used.runs(in: gap).isEmpty {
                        (state.nonce, state.used) = (Self.newNonce(), ByteRangeSet())
                    }
                    state.used.insert(gap)
                    return state.nonce
                }
                let run = NonceRuns.Run(range: gap, nonce: nonce)
                let sealed = UnsafeMutableRawBufferPointer.allocate(byteCount: plain.count, alignment: 16)
                defer { sealed.deallocate() }
                do throws(CacheError) {
                    try Self.crypt(plain, into: sealed, run, keys.content)
                    guard try write(plain, UnsafeRawBufferPointer(sealed), gap.lowerBound) else { continue }
                } catch {
                    // Bytes of a failed write are never claimed.
                    release(written)
                    throw error
                }
                state.withLock { $0.runs.insert(run) }
                written.append(gap)
            }
            return ByteRangeSet(missing).gaps(in: range)
        }
    }

    /// Reads with `read`, and decrypts what it returns in place. Returns its number of bytes.
    ///
    /// Throws `storageCorrupt` if a range has no nonce, or has got another one meanwhile: it is missing or damaged, or
    /// was evicted.
    func read(
        into bytes: UnsafeMutableRawBufferPointer, at offset: Int64, _ read: () throws(CacheError) -> Int
    ) throws(CacheError) -> Int {
        let keys = try unlocked()
        let wanted = ByteRange(offset: offset, length: Int64(bytes.count))
        let before = state.withLock { $0.runs.runs(in: wanted) }
        let count = try read()
        let found = ByteRange(offset: offset, length: Int64(count))
        let runs = state.withLock { $0.runs.runs(in: wanted) }
        let known = NonceRuns(runs)
        guard runs == before, known.gaps(in: found).isEmpty else {
            throw CacheError(.storageCorrupt, "Encrypted bytes of the store are missing, or were evicted meanwhile.")
        }
        for run in known.runs(in: found) {
            let part = Int(run.range.lowerBound - offset)..<Int(run.range.upperBound - offset)
            let target = UnsafeMutableRawBufferPointer(rebasing: bytes[part])
            try Self.crypt(UnsafeRawBufferPointer(target), into: target, run, keys.content)
        }
        return count
    }

    /// The keyed checksum of plain bytes at `offset` of the file.
    func sum(of bytes: UnsafeRawBufferPointer, at offset: Int64) -> BlockSum {
        guard let keys else { return .keyed(high: 0, low: 0) }
        let place = withUnsafeBytes(of: offset.bigEndian) { Array($0) }
        return HashFunction.sha256.code(of: bytes, after: place, keys.sums).withUnsafeBytes { digest in
            .keyed(
                high: UInt64(bigEndian: digest.loadUnaligned(as: UInt64.self)),
                low: UInt64(bigEndian: digest.loadUnaligned(fromByteOffset: 8, as: UInt64.self)))
        }
    }

    /// 64 random bits.
    private static func newNonce() -> UInt64 {
        SymmetricKey.randomBytes(8).withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) }
    }

    /// Encrypts or decrypts the bytes of a run; both are the same operation. `target` has the same length as `bytes`,
    /// and may be the same memory.
    private static func crypt(
        _ bytes: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer, _ run: NonceRuns.Run,
        _ key: SymmetricKey
    ) throws(CacheError) {
        let (block, lead) = (UInt64(run.range.lowerBound) / 16, Int(run.range.lowerBound % 16))
        guard key.applyCounterMode(bytes, into: target, nonce: run.nonce, block: block, skipping: lead) else {
            throw CacheError(.internal, "Bytes could not be encrypted.")
        }
    }
}
