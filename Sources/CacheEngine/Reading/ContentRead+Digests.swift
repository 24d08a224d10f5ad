package import CacheCore
import CacheStore

/// Digest fields of a read (RFC 9530).
extension ContentRead {
    /// The fields for the wanted algorithms; nil: not wanted. A field is absent if its digest is not available.
    ///
    /// `Content-Digest` is that of the body as it was planned, so do not call this for a response to HEAD with
    /// `content`. The value of `Repr-Digest` includes the digests of the upstream.
    package func digestFields(content: DigestAlgorithm?, representation: DigestAlgorithm?) async -> HeaderList {
        guard [200, 203, 206].contains(plan.status) else { return [:] }
        var fields = HeaderList()
        if let representation, let value = await representationDigest(representation) {
            fields.append("Repr-Digest", (plan.headers.values("Repr-Digest") + [value]).joined(separator: ", "))
        }
        if let content, let value = await contentDigest(content) { fields.append("Content-Digest", value) }
        if !fields.fields.isEmpty { state.withLock { $0.isDigested = true } }
        return fields
    }

    /// The member of `Repr-Digest`. Nil if the upstream has stated it.
    private func representationDigest(_ algorithm: DigestAlgorithm) async -> String? {
        let stated = HeaderList(plan.headers.values("Repr-Digest").map { HeaderList.Field("Repr-Digest", $0) })
        guard !UpstreamDigest.of(stated).contains(where: { $0.algorithm == algorithm }) else { return nil }
        return await asset.representationDigest(algorithm, isForeground: true).map(algorithm.member)
    }

    /// The value of `Content-Digest`. Nil unless the bytes of the body were on disk when the read began.
    private func contentDigest(_ algorithm: DigestAlgorithm) async -> String? {
        let (file, length) = asset.look { ($0.file, $0.ledger.length) }
        guard isWhollyCached, let file, file.name != nil else { return nil }
        if let length, plan.body == [.bytes(0..<length)] {
            // The digest is also that of the representation, which is remembered.
            return await asset.representationDigest(algorithm, isForeground: true).map(algorithm.member)
        }
        guard plan.neededBytes <= DigestRegistry.maxBytesPerResponse else { return nil }
        return await asset.context.digests.withPermit { [self] in
            let sums = DigestAccumulator([algorithm])
            for segment in plan.body {
                switch segment {
                case .text(let text): sums.update(text)
                case .bytes(let range): guard await asset.add(range, of: file, to: sums) else { return nil }
                }
            }
            return sums.digests()[algorithm].map(algorithm.member)
        }
    }
}
