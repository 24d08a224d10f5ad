import CacheCore
import Logging

/// The digests of the other nodes, with more than ``PeerDigests/mostWithout`` of them.
extension PeerNodes {
    /// The path of a node's digest.
    private static let digestPath = "/v1/fleet/digest"
    /// The time limit of a request for a digest.
    private static let digestLimit = Duration.seconds(5)
    /// The interval at which new nodes and digests to renew are looked for.
    private static let tick = Duration.seconds(1)

    /// The nodes that are asked for an asset now: all, or with many of them those with the asset in their digest.
    func candidates(for asset: AssetID, isEncrypted: Bool) -> [String] {
        let nodes = asked(isEncrypted: isEncrypted)
        guard usesDigests else { return nodes }
        return digests.nodes(with: asset, of: nodes, at: uptime())
    }

    /// Keeps the digests of the other nodes current until cancellation.
    func renewDigests(clock: any Clock<Duration>) async {
        while (try? await clock.sleep(for: Self.tick)) != nil {
            let nodes = usesDigests ? asked(isEncrypted: false, isAside: true) : []
            let due = digests.due(of: nodes, at: uptime())
            guard !due.isEmpty else { continue }
            await withDiscardingTaskGroup { group in
                for (node, tag) in due { group.addTask { await self.renewDigest(of: node, tag) } }
            }
        }
    }

    private func renewDigest(of node: String, _ tag: String?) async {
        var request = request(to: node, at: Self.digestPath, timeouts: TransferTimeouts(all: Self.digestLimit))
        if let tag { request.originHeaders.append("If-None-Match", tag) }
        do throws(CacheError) {
            let response = try await upstream.exchange(request, bodyLimit: CacheDigest.maxEncodedBytes)
            let digest: CacheDigest?
            switch response.status {
            case 200: digest = try CacheDigest(encoded: response.body)
            case 304 where tag != nil: digest = nil
            default:
                throw CacheError(
                    .upstreamRefused(status: response.status), "The node answered with \(response.status).")
            }
            digests.received(digest, tag: response.headers["ETag"], of: node, at: uptime())
        } catch {
            guard error.code != .cancelled, digests.failed(node, error.message) else { return }
            logger.warning(
                "a node of the fleet sends no digest of its cache; it is not asked until it does",
                metadata: ["node": "\(node)", "error": "\(error.message)"])
        }
    }
}
