import CacheCore

/// The digests of other nodes: which of them may have an asset. Thread-safe.
///
/// A node without a current digest is not asked: it is down, or it has just started and has little.
final class PeerDigests: Sendable {
    /// The digest of one node.
    private struct Entry {
        var digest: CacheDigest?
        /// The entity tag of the digest.
        var tag: String?
        /// The uptime of the last answer, and of the last request.
        var confirmedAt = Duration.zero
        var requestedAt: Duration?
        /// The error of the last request; nil: none since the last answer.
        var error: String?
    }

    /// With more other nodes than this, only those with the asset in their digest are asked.
    static let mostWithout = 8
    /// The number of nodes that are asked then.
    static let mostAsked = 3
    /// The time after which a digest is requested again.
    static let interval = Duration.seconds(10)
    /// The time without an answer after which a digest does not count: three attempts.
    private static let lifetime = Duration.seconds(30)

    /// Guards the digests by the URLs of their nodes.
    private let state = OrderedMutex(.leaf, [String: Entry]())

    /// At most ``mostAsked`` of the nodes whose digest has the asset. Different assets begin with different ones, so that
    /// the questions are spread.
    func nodes(with asset: AssetID, of nodes: [String], at now: Duration) -> [String] {
        let found = state.withLock { entries in
            nodes.filter { node in
                guard let entry = entries[node], let digest = entry.digest, now - entry.confirmedAt <= Self.lifetime
                else { return false }
                return digest.contains(asset)
            }
        }
        guard found.count > Self.mostAsked else { return found }
        let first = Int(asset.low % UInt64(found.count))
        return (0..<Self.mostAsked).map { found[(first + $0) % found.count] }
    }

    /// The nodes whose digest is requested now, with the tag of the known one. Forgets the digests of other nodes.
    func due(of nodes: [String], at now: Duration) -> [(node: String, tag: String?)] {
        state.withLock { entries in
            entries = entries.filter { nodes.contains($0.key) }
            return nodes.compactMap { node in
                let entry = entries[node] ?? Entry()
                guard entry.requestedAt.map({ now - $0 >= Self.interval }) ?? true else { return nil }
                entries[node, default: entry].requestedAt = now
                return (node, entry.tag)
            }
        }
    }

    /// A node has sent its digest; nil: it has not changed.
    func received(_ digest: CacheDigest?, tag: String?, of node: String, at now: Duration) {
        state.withLock { entries in
            guard var entry = entries[node] else { return }
            if let digest { (entry.digest, entry.tag) = (digest, tag) }
            (entry.confirmedAt, entry.error) = (now, nil)
            entries[node] = entry
        }
    }

    /// A node did not send its digest. Returns whether this is the first failure since it did.
    func failed(_ node: String, _ error: String) -> Bool {
        state.withLock { entries in
            defer { entries[node]?.error = error }
            return entries[node]?.error == nil
        }
    }

    /// The number of assets and the age of each current digest, by the URL of the node.
    func figures(at now: Duration) -> [String: PeerFigures.Digest] {
        state.withLock { entries in
            entries.compactMapValues { entry in
                guard let digest = entry.digest, now - entry.confirmedAt <= Self.lifetime else { return nil }
                return PeerFigures.Digest(assets: digest.count, age: now - entry.confirmedAt)
            }
        }
    }
}
