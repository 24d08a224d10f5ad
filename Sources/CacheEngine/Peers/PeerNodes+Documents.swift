package import CacheCore

/// Documents of the management API of other nodes.
extension PeerNodes {
    /// The time limit for the document of a node, and its largest size in bytes.
    private static let documentLimit = Duration.seconds(3)
    private static let documentBytes = 8 << 20

    /// The document at a path of each other node, in the order of the nodes' URLs. `authorization`: the credentials of the
    /// client; each node checks them itself.
    package func documents(
        at path: String, authorization: String?
    ) async -> [(node: String, document: Result<JSON, CacheError>)] {
        let nodes = asked(isEncrypted: false, isAside: true).sorted()
        let documents = await nodes.mapConcurrently(atMost: nodes.count) { node in
            await self.document(at: path, of: node, authorization)
        }
        return zip(nodes, documents).compactMap { node, document in document.map { (node, $0) } }
    }

    /// Nil if the node is this one.
    private func document(
        at path: String, of node: String, _ authorization: String?
    ) async -> Result<JSON, CacheError>? {
        if !isKnown(node), await isThisNode(node) { return nil }
        var request = UpstreamRequest(
            url: node + path, timeouts: TransferTimeouts(total: Self.documentLimit), allowPrivateAddresses: true,
            tls: tls)
        if let authorization { request.originHeaders = ["Authorization": authorization] }
        request.followsRedirects = false
        do throws(CacheError) {
            let response = try await upstream.exchange(request, bodyLimit: Self.documentBytes)
            guard response.status == 200 else {
                throw CacheError(
                    .upstreamRefused(status: response.status), "The node answered with status \(response.status).")
            }
            return .success(try JSONParser.parse(response.body))
        } catch {
            return .failure(error)
        }
    }
}
