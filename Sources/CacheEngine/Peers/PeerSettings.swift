package import CacheCore

/// The other nodes of a fleet, and the proof of this one.
package struct PeerSettings: Hashable, Sendable {
    /// The base URLs of the nodes, without a slash at the end. This node may be among them.
    package var nodes: [String]
    /// The key that this node presents; nil: it presents its client certificate only.
    package var key: String?
    /// The verification of the nodes' certificates, and the certificate of this node.
    package var tls: TLSSettings
    /// The time limit of a question.
    package var limit: Duration
    /// The number of transfers from nodes at a time. It must be below that of all transfers: if two nodes used up theirs
    /// with waits for each other, neither could ask the upstream.
    package var maxTransfers: Int

    package init(
        nodes: [String] = [], key: String? = nil, tls: TLSSettings = TLSSettings(),
        limit: Duration = .milliseconds(50), maxTransfers: Int = 32
    ) {
        self.nodes = nodes
        self.key = key
        self.tls = tls
        self.limit = limit
        self.maxTransfers = max(1, maxTransfers)
    }

    /// Whether bytes of encrypted origins may travel to and from the node: both sides prove themselves over TLS.
    func isConfidential(to node: String) -> Bool { node.hasPrefix("https://") && tls.certificateFile != nil }
}

/// The request of a node to its peers.
struct PeerQuestion: Sendable {
    let asset: AssetID
    let window: UpstreamRequest.Window
    /// The conditions that the known generation meets; empty: nothing is known of the asset, and its description is wanted
    /// if it is fresh.
    var conditions: HeaderList
    /// Whether the origin's files are encrypted.
    let isEncrypted: Bool
    /// The last purge here that could have selected the asset: copies from before it do not count. Nil: any copy counts.
    var purgedAt: Timestamp?

    /// The time that an upstream may take to answer a request from before a purge.
    private static let longestAnswer = Duration.seconds(60)

    /// The first wanted byte of an asset with that length.
    func firstByte(ofLength length: Int64) -> Int64 {
        if case .suffix(let count) = window { max(0, length - count) } else { window.firstByte ?? 0 }
    }

    /// The offset if it lies in the window behind its first byte; nil otherwise.
    func within(_ offset: Int64) -> Int64? {
        switch window {
        case .closed(let range): offset > range.lowerBound && offset < range.upperBound ? offset : nil
        case .from(let first): offset > first ? offset : nil
        case .whole, .suffix: nil
        }
    }

    /// Whether a copy with this age, in whole seconds, is from after the last purge.
    func admits(age: Int64, at now: Timestamp) -> Bool {
        purgedAt.map { now - .seconds(age + 1) > $0 } ?? true
    }

    /// Whether bytes that a node is about to request are from after the last purge.
    func admitsComing(at now: Timestamp) -> Bool { purgedAt.map { now.since($0) > Self.longestAnswer } ?? true }
}

/// The result of a question.
enum PeerAnswer: Sendable {
    /// The node has these bytes, or is receiving them.
    case bytes(ByteRange, of: String)
    /// The node is about to request the bytes from the upstream.
    case coming(of: String)
    /// No node has the first byte. `next`: the first byte of the window that one of them has; nil: none.
    case nothing(next: Int64?)
}

/// The state of a node, as this node sees it.
package struct PeerFigures: Hashable, Sendable {
    /// The results of requests for the bytes at hand.
    package enum Result: String, Hashable, Sendable, CaseIterable {
        /// The node has bytes, or is receiving them.
        case hit
        case miss
        /// No answer within the time limit.
        case timedOut
        /// Another answer, or no connection.
        case failed
    }

    /// The base URL.
    package var node = ""
    /// Whether requests to the URL reach this node itself; it is not asked.
    package var isSelf = false
    /// Whether the node is not asked for some seconds, because it failed or did not answer in time.
    package var isSetAside = false
    /// The message of the last failure; nil: none since the last answer.
    package var lastError: String?
    package var requests: [Result: Int64] = [:]
    /// The digest of the node's cache; nil: none is needed, or none is current.
    package var digest: Digest?

    package struct Digest: Hashable, Sendable {
        /// The number of assets.
        package var assets: Int
        /// The time since the node has sent or confirmed it.
        package var age: Duration
    }
}
