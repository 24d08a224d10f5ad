import CacheCore
import Logging

/// The other nodes of the fleet: which of them is asked, and what they have answered. Thread-safe.
///
/// A node answers from its disk and from its fills in flight. It neither starts a fill nor asks its own peers, so that
/// nodes with different lists cannot wait for each other.
package final class PeerNodes: Sendable {
    private struct Node {
        var figures: PeerFigures
        /// Failures without an answer since.
        var misses = 0
        /// The uptime until which the node is not asked.
        var asideUntil = Duration.zero
    }

    private struct State {
        /// The settings, with the nodes that were discovered.
        var settings = PeerSettings()
        var configured: [String] = []
        var discovered: [String] = []
        var nodes: [String: Node] = [:]
        /// The time of the last purge of an origin; the empty name stands for all.
        var purges: [String: Timestamp] = [:]
        /// The number of the last applied purge of the fleet, and the uptime of the last contact with etcd; nil: there is
        /// no etcd.
        var applied: (purges: Int64, contact: Duration?)?

        /// Merges the configured and the discovered nodes. Nodes that stay keep their state.
        mutating func merge() {
            settings.nodes = configured + discovered.filter { !configured.contains($0) }
            let known = nodes
            nodes = Dictionary(
                settings.nodes.map { ($0, known[$0] ?? Node(figures: PeerFigures(node: $0))) }, uniquingKeysWith: { $1 }
            )
        }
    }

    /// The failures in a row after which a node is not asked for ``pause``.
    private static let mostMisses = 2
    private static let pause = Duration.seconds(10)
    /// The names by which the limits of transfers count questions to nodes, and transfers from them.
    private static let questionsName = "(questions to peers)"
    private static let transfersName = "(peers)"
    private static let maxQuestions = 256
    /// The time limit for the first of the bytes that a node has offered.
    private static let offerLimit = Duration.seconds(3)
    /// The time limit of a question about etcd.
    private static let lagLimit = Duration.seconds(1)
    /// The field that marks a request of a node. Its value is the name of the process.
    package static let field = "Larder-Peer"
    /// The field of a response without the first byte: the offset of the first byte that the node has.
    package static let nextField = "Larder-Next-Byte"
    /// The field of such a response if the node is about to request the first byte from the upstream.
    package static let comingField = "Larder-Coming"
    /// The field of all responses to nodes in a fleet with etcd: the number of the last applied purge, and the milliseconds
    /// since the last contact with etcd, unless there was none, as `12;lag=500`.
    package static let fleetField = "Larder-Fleet"

    /// Guards the settings and the state of the nodes.
    private let state = OrderedMutex(.leaf, State())
    let upstream: any Upstream
    /// The name of this process, by which a node recognises itself (`CDN-Loop`, RFC 8586).
    private let loopName: String
    let uptime: @Sendable () -> Duration
    let wallClock: any WallClock
    let logger: Logger
    let digests = PeerDigests()

    init(
        upstream: any Upstream, loopName: String, uptime: @escaping @Sendable () -> Duration,
        wallClock: any WallClock, logger: Logger
    ) {
        self.upstream = upstream
        self.loopName = loopName
        self.uptime = uptime
        self.wallClock = wallClock
        self.logger = logger
    }

    /// Replaces the settings. Nodes that stay keep their state.
    package func update(_ settings: PeerSettings) {
        state.withLock { state in
            (state.settings, state.configured) = (settings, settings.nodes)
            state.merge()
        }
    }

    /// Replaces the nodes that were found in etcd; they are asked like configured ones.
    func discovered(_ urls: [String]) {
        state.withLock { state in
            guard state.discovered != urls else { return }
            state.discovered = urls
            state.merge()
        }
    }

    /// Whether there are other nodes.
    var isEnabled: Bool { state.withLock { !$0.settings.nodes.isEmpty } }

    /// The state of all nodes, in the order of the settings.
    package var figures: [PeerFigures] {
        let now = uptime()
        let digests = digests.figures(at: now)
        return state.withLock { state in
            state.settings.nodes.compactMap { state.nodes[$0] }.map { node in
                var figures = node.figures
                figures.isSetAside = node.asideUntil > now
                figures.digest = digests[figures.node]
                return figures
            }
        }
    }

    /// Assets of an origin were purged here, or of any if it is nil. Other nodes may still have them.
    func purged(_ origin: String?) {
        let now = wallClock.now()
        state.withLock { $0.purges[origin ?? ""] = now }
    }

    /// This node is new in its fleet: from now on the number of purges takes the place of the times before.
    func joined() { state.withLock { $0.purges = [:] } }

    /// The time of the last purge that could have selected an asset of the origin; nil: there was none since the start.
    func lastPurge(of origin: String) -> Timestamp? {
        state.withLock { [$0.purges[origin], $0.purges[""]].compactMap(\.self).max() }
    }

    // MARK: State of the fleet

    /// This node has applied the purges up to this number. `contact`: the uptime of the last contact with etcd. `isAll`:
    /// there is no later one whose number is not known yet; then the number takes the place of the times.
    func applied(purges: Int64, contact: Duration?, isAll: Bool) {
        state.withLock { state in
            if isAll, purges > state.applied?.purges ?? .max { state.purges = [:] }
            state.applied = (purges, contact)
        }
    }

    /// The value of ``fleetField``; nil without etcd.
    package var fleetFieldValue: String? {
        let now = uptime()
        return state.withLock { $0.applied }.map { applied in
            "\(applied.purges)" + (applied.contact.map { ";lag=\(max(0, (now - $0).wholeMilliseconds))" } ?? "")
        }
    }

    /// The time since the last contact with etcd, or since the start if there was none; nil without etcd.
    var lag: Duration? {
        let now = uptime()
        return state.withLock { $0.applied }.map { now - ($0.contact ?? .zero) }
    }

    /// Whether a node's copies are from after all purges that this node has applied.
    func hasApplied(_ field: String?) -> Bool {
        guard let own = state.withLock({ $0.applied?.purges }) else { return true }
        return field.flatMap { Int64($0.prefix { $0 != ";" }) }.map { $0 >= own } ?? false
    }

    /// Asks all nodes for the time since their last contact with etcd. One element for each node that answers; nil: it had
    /// none.
    func lags() async -> [Duration?] {
        let nodes = asked(isEncrypted: false, isAside: true)
        return await withTaskGroup(of: [Duration?].self) { group in
            for node in nodes {
                group.addTask { await self.lag(of: node) }
            }
            return await group.reduce(into: []) { $0 += $1 }
        }
    }

    /// The time since the last contact of one node; empty if it does not answer.
    private func lag(of node: String) async -> [Duration?] {
        guard let field = await answer(of: node)?.headers[Self.fleetField] else { return [] }
        let lag = field.split(separator: "=").last.flatMap { Int64($0) }
        return [field.contains(";lag=") ? lag.map { .milliseconds($0) } : nil]
    }

    /// The answer of a node to a question about no asset; nil: it does not answer.
    private func answer(of node: String) async -> UpstreamHead? {
        let question = PeerQuestion(
            asset: AssetID(high: 0, low: 0), window: .whole, conditions: [:], isEncrypted: false, purgedAt: nil)
        var request = request(to: node, question, question.window, state.withLock { $0.settings })
        request.method = .head
        (request.originName, request.maxTransfers) = (Self.questionsName, Self.maxQuestions)
        let limit = Self.lagLimit
        request.timeouts = TransferTimeouts(connect: limit, firstByte: limit, idle: limit, total: limit)
        return try? await upstream.head(of: request)
    }

    /// Whether the URL is known to be that of another node.
    func isKnown(_ node: String) -> Bool { state.withLock { $0.nodes[node]?.figures.requests.isEmpty == false } }

    /// Whether the URL is that of this node, which recognises its own question.
    func isThisNode(_ node: String) async -> Bool {
        guard await answer(of: node)?.status == 508 else { return false }
        isSelf(node)
        return true
    }

    /// The verification of the nodes' certificates, and the certificate of this node.
    var tls: TLSSettings { state.withLock { $0.settings.tls } }

    /// The nodes that are asked now. `isEncrypted`: whether the bytes are of an encrypted origin.
    /// `isAside`: also those that are not asked for some seconds.
    func asked(isEncrypted: Bool, isAside: Bool = false) -> [String] {
        let now = uptime()
        return state.withLock { state in
            state.settings.nodes.filter { url in
                guard let node = state.nodes[url], !node.figures.isSelf, isAside || node.asideUntil <= now
                else { return false }
                return !isEncrypted || state.settings.isConfidential(to: url)
            }
        }
    }

    /// Whether there are so many other nodes that only those with an asset in their digest are asked for it.
    var usesDigests: Bool {
        state.withLock { state in
            state.nodes.values.count { !$0.figures.isSelf } > PeerDigests.mostWithout
        }
    }

    /// Asks the nodes at once for the bytes of a window. `answered` is called once, on any thread, at the latest after
    /// the time limit of each request.
    func ask(_ question: PeerQuestion, answered: @escaping @Sendable (PeerAnswer) -> Void) {
        let settings = state.withLock { $0.settings }
        let nodes = candidates(for: question.asset, isEncrypted: question.isEncrypted)
        guard !nodes.isEmpty else { return answered(.nothing(next: nil)) }
        let inquiry = PeerInquiry(question, of: self, count: nodes.count, answered: answered)
        for node in nodes {
            var request = request(to: node, question, question.window, settings)
            request.method = .head
            (request.originName, request.maxTransfers) = (Self.questionsName, Self.maxQuestions)
            let limit = settings.limit
            request.timeouts = TransferTimeouts(all: limit)
            inquiry.send(request, to: node, over: upstream)
        }
    }

    /// The request for bytes that `node` has offered, or for the whole window if it is nil: then the node waits for the
    /// upstream itself. `timeouts`: those of the origin.
    func request(
        for range: ByteRange?, of question: PeerQuestion, from node: String, timeouts: TransferTimeouts
    ) -> UpstreamRequest {
        let window = range.map { UpstreamRequest.Window.closed($0) } ?? question.window
        var request = request(to: node, question, window, state.withLock { $0.settings })
        request.timeouts = timeouts
        request.timeouts.connect = .seconds(1)
        if range != nil { request.timeouts.firstByte = min(timeouts.firstByte ?? Self.offerLimit, Self.offerLimit) }
        return request
    }

    /// A request to a node at a path of its API, with the proof of this one.
    func request(to node: String, at path: String, timeouts: TransferTimeouts) -> UpstreamRequest {
        let settings = state.withLock { $0.settings }
        var request = UpstreamRequest(
            url: node + path, headers: ["CDN-Loop": loopName], originHeaders: proof(settings),
            originName: Self.questionsName, timeouts: timeouts, maxTransfers: Self.maxQuestions,
            allowPrivateAddresses: true, tls: settings.tls)
        request.followsRedirects = false
        return request
    }

    private func proof(_ settings: PeerSettings) -> HeaderList {
        var fields: HeaderList = [Self.field: loopName]
        if let key = settings.key { fields.append("Authorization", "Bearer \(key)") }
        return fields
    }

    private func request(
        to node: String, _ question: PeerQuestion, _ window: UpstreamRequest.Window, _ settings: PeerSettings
    ) -> UpstreamRequest {
        var own = proof(settings)
        for condition in question.conditions.fields { own.append(condition.name, condition.value) }
        var request = UpstreamRequest(
            url: "\(node)/v1/assets/\(question.asset)/content", headers: ["CDN-Loop": loopName], originHeaders: own,
            window: window, originName: Self.transfersName, maxTransfers: settings.maxTransfers, priority: .live,
            allowPrivateAddresses: true, tls: settings.tls)
        request.followsRedirects = false
        request.requiresHTTP1 = { _ in true }
        return request
    }

    /// Records the result of a request to a node. `error` nil: it has answered.
    func record(_ result: PeerFigures.Result, of node: String, _ error: CacheError? = nil) {
        let now = uptime()
        let isNewlyAside = state.withLock { state in
            guard var entry = state.nodes[node] else { return false }
            defer { state.nodes[node] = entry }
            entry.figures.requests[result, default: 0] += 1
            entry.figures.lastError = error?.message
            guard error != nil else {
                entry.misses = 0
                return false
            }
            entry.misses += 1
            guard entry.misses >= Self.mostMisses else { return false }
            entry.asideUntil = now + Self.pause
            return entry.misses == Self.mostMisses
        }
        guard isNewlyAside, let error else { return }
        logger.warning(
            "a node of the fleet does not answer; it is not asked for some seconds",
            metadata: ["node": "\(node)", "error": "\(error.message)"])
    }

    /// A transfer of offered bytes failed: the node is not asked for some seconds.
    func failed(_ node: String, _ error: CacheError) {
        state.withLock { $0.nodes[node]?.misses = Self.mostMisses - 1 }
        record(error.code.isTimeout ? .timedOut : .failed, of: node, error)
    }

    /// A node has recognised this process: its URL is that of this node.
    func isSelf(_ node: String) {
        state.withLock { $0.nodes[node]?.figures.isSelf = true }
    }
}

extension CacheError.Code {
    var isTimeout: Bool { if case .upstreamTimedOut = self { true } else { false } }
}
