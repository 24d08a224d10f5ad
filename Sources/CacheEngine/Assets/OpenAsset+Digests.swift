import CacheCore
import CacheStore
import Foundation

/// Digests of stored bytes.
extension OpenAsset {
    /// The digest of the complete representation. Nil if it is neither known nor computed: bytes are missing or
    /// damaged, or the upstream has stated another digest.
    ///
    /// - Parameter isForeground: whether a response waits. A computation is then subject to the limits of
    ///   ``DigestRegistry``; a longer one is queued.
    func representationDigest(_ algorithm: DigestAlgorithm, isForeground: Bool) async -> Data? {
        let (file, length, stated) = look { state in
            (state.file, state.ledger.length, state.record.map { UpstreamDigest.of($0.generation) } ?? [])
        }
        guard let file, let name = file.name, let length else { return nil }
        switch context.digests[name] {
        case .contradicted?: return nil
        case .digests(let known)?: if let digest = known[algorithm] { return digest }
        case nil: break
        }
        guard look({ $0.ledger.extents.contains(0..<length) }) else { return nil }
        let compute = { @Sendable [self] () async -> Data? in
            let sums = DigestAccumulator(Set(stated.map(\.algorithm)).union([algorithm]))
            guard await add(0..<length, of: file, to: sums) else { return nil }
            let digests = sums.digests()
            guard stated.allSatisfy({ digests[$0.algorithm] == $0.value }) else {
                context.digests.note(.contradicted, of: name)
                return nil
            }
            context.digests.note(.digests(digests), of: name)
            return digests[algorithm]
        }
        guard isForeground else { return await compute() }
        guard length <= DigestRegistry.maxBytesPerResponse else {
            context.digests.queue(DigestRegistry.Order(asset: id, algorithm: algorithm))
            return nil
        }
        return await context.digests.withPermit(compute)
    }

    /// Adds stored bytes to the digests, block by block on the disk threads, each compared with its checksum. Returns
    /// false if some are missing, damaged or evicted meanwhile.
    func add(_ range: ByteRange, of file: SparseFile, to sums: DigestAccumulator) async -> Bool {
        var rest = range
        while let part = BlockChecksums.cut(rest.prefix(BlockChecksums.blockBytes)).first {
            // The lease protects the bytes from eviction while they are read.
            guard let lease = lease(part) else { return false }
            defer { end(lease) }
            guard look({ $0.file === file }), !Task.isCancelled else { return false }
            do {
                let isRight = try await context.diskThreads.run { () throws(CacheError) in
                    guard let bytes = try self.readChecked(part, of: file) else { return false }
                    sums.update(bytes)
                    return true
                }
                guard isRight else { return false }
            } catch {
                return false  // the read of the content reports it
            }
            rest = part.upperBound..<range.upperBound
        }
        return true
    }
}
