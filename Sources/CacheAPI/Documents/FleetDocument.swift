import CacheEngine

/// The `Fleet` schema.
package struct FleetDocument: Codable {
    /// Another node, as this one sees it.
    package struct Peer: Codable {
        var url, state: String
        var lastError: String?
        var requests: Requests

        /// The results of requests for bytes at hand.
        struct Requests: Codable {
            var hit, miss, timedOut, failed: Int64
        }
    }

    /// The name of the process in `CDN-Loop`.
    var node: String
    /// `starting`, `ready`, `leaving` or `draining`.
    var state: String
    /// Whether other nodes can prove themselves to this one.
    var acceptsPeers: Bool
    var peers: [Peer]
}

extension FleetDocument.Peer {
    init(_ peer: PeerFigures) {
        let state = peer.isSelf ? "self" : peer.isSetAside ? "setAside" : peer.lastError == nil ? "ok" : "failing"
        let count = { (result: PeerFigures.Result) in peer.requests[result] ?? 0 }
        self.init(
            url: peer.node, state: state, lastError: peer.lastError,
            requests: Requests(
                hit: count(.hit), miss: count(.miss), timedOut: count(.timedOut), failed: count(.failed)))
    }
}
