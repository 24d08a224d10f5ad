import CacheCore
import CacheStore
import Cryptography
import EtcdClient

/// The desired state of a fleet in etcd: origins, policy, tokens, purges and nodes. Thread-safe.
///
/// | key below `/larder/FLEET/` | value |
/// |---|---|
/// | `state/origins/NAME` | ``StoredSettings`` of an origin, sealed with a key of the nodes |
/// | `state/policy` | ``StoredSettings`` of the policy |
/// | `state/tokens/ID` | the document of a token of the API, without its secret, sealed with a key of the nodes |
/// | `state/purges/NUMBER` | ``FleetPurge``, for seven days |
/// | `state/identity` | a random text, which the first node stores |
/// | `state/purge` | number and identifier of the last purge |
/// | `nodes/NAME` | ``FleetNode``, with the lease of the node |
/// | `jobs/…` | ``FleetJobStore`` |
/// | `schedules/…` | ``FleetSchedules`` |
///
/// The revision of an origin, a token or the policy is that of etcd, so that `If-Match` works at each node.
final class DesiredState: Sendable {
    /// The state at one revision.
    struct Snapshot: Sendable {
        /// The revision of etcd, and the identity of the state; nil: nothing is stored yet.
        var revision: Int64
        var identity: String?
        /// The number and the identifier of the last purge.
        var lastPurge: Int64 = 0
        var lastPurgeID = ""
        /// Purges after the requested number, in order; at most ``batch``.
        var purges: [(number: Int64, value: [UInt8])] = []
        /// Revisions by name.
        var origins: [String: Int64] = [:]
        /// Revisions by identifier.
        var tokens: [String: Int64] = [:]
        /// The stored text; nil: the fleet has no policy.
        var policy: Revised<String>?
        var nodes: [FleetNode] = []
    }

    /// The time for which a node can be away without missing a purge.
    static let purgeLifetime = Duration.seconds(7 * 86400)
    /// The number of purges that are kept. A node that has missed more has to confirm all content.
    private static let mostPurges: Int64 = 4000
    /// The largest purge: all together must leave room in etcd's quota of 2 GB.
    private static let maxBytes = 128 << 10
    private static let batch = 100
    /// The number of attempts to number a purge while other nodes do the same.
    private static let mostAttempts = 20
    /// The age at which the lease of purges is replaced, in relation to ``purgeLifetime`` short.
    private static let leaseAge = Duration.seconds(3600)

    let etcd: EtcdClient
    let root: String
    /// Guards the keys of the nodes: the first one seals, all open.
    private let keys: OrderedMutex<[SymmetricKey]>
    private let uptime: @Sendable () -> Duration
    /// Guards the lease for purges with the uptime of its creation.
    private let purgeLease = OrderedMutex<(id: Int64, since: Duration)?>(.leaf, nil)

    init(_ etcd: EtcdClient, fleet: String, keys: [String], uptime: @escaping @Sendable () -> Duration) {
        self.etcd = etcd
        root = "/larder/\(fleet)/"
        self.keys = OrderedMutex(.leaf, keys.map(Self.key))
        self.uptime = uptime
    }

    /// Replaces the keys of the nodes.
    func update(keys: [String]) { self.keys.withLock { $0 = keys.map(Self.key) } }

    private static func key(from text: String) -> SymmetricKey {
        HashFunction.sha256.derivedKey(from: SymmetricKey(Array(text.utf8)), for: "larder fleet settings")
    }

    /// The prefix of the keys whose change concerns all nodes.
    var statePrefix: String { root + "state/" }
    private var originsPrefix: String { root + "state/origins/" }
    private var tokensPrefix: String { root + "state/tokens/" }
    private var identityKey: String { root + "state/identity" }
    private var policyKey: String { root + "state/policy" }
    private var purgesPrefix: String { root + "state/purges/" }
    private var lastPurgeKey: String { root + "state/purge" }
    private var nodesPrefix: String { root + "nodes/" }

    /// The key of a purge; keys have the order of the numbers.
    private func purgeKey(_ number: Int64) -> String {
        let digits = String(number)
        return purgesPrefix + String(repeating: "0", count: max(0, 19 - digits.count)) + digits
    }

    // MARK: Reading

    /// Wakes a reader of the keys below `prefix` at intervals and after each change, until cancellation. Without the
    /// stream of changes, which begins again after a pause, the intervals alone wake it.
    func signal(
        _ wake: AsyncStream<Void>.Continuation, below prefix: String, every interval: Duration, pause: Duration,
        clock: any Clock<Duration>
    ) async {
        await withDiscardingTaskGroup { group in
            group.addTask {
                repeat { wake.yield() } while (try? await clock.sleep(for: interval)) != nil
                wake.finish()
            }
            group.addTask {
                repeat {
                    try? await self.etcd.watch(prefix) { wake.yield() }
                } while (try? await clock.sleep(for: pause)) != nil
            }
        }
    }

    /// The present state, with the purges after `number`.
    func snapshot(after number: Int64) async throws(CacheError) -> Snapshot {
        let end = EtcdTransaction.Operation.end(of: purgesPrefix)
        let result = try await etcd.commit(
            EtcdTransaction([
                .get(lastPurgeKey), .range(from: purgeKey(number + 1), to: end, limit: Self.batch),
                .list(originsPrefix, keysOnly: true), .get(policyKey), .list(nodesPrefix), .get(identityKey),
                .list(tokensPrefix, keysOnly: true),
            ]))
        guard result.entries.count == 7 else { throw EtcdClient.malformed }
        var snapshot = Snapshot(revision: result.revision)
        snapshot.identity = result.entries[5].first.map { String(decoding: $0.value, as: UTF8.self) }
        if let last = result.entries[0].first { (snapshot.lastPurge, snapshot.lastPurgeID) = try Self.purge(in: last) }
        for entry in result.entries[1] {
            guard let number = Int64(entry.key.dropFirst(purgesPrefix.count)) else { continue }
            snapshot.purges.append((number, entry.value))
        }
        snapshot.origins = Self.revisions(result.entries[2], below: originsPrefix)
        snapshot.tokens = Self.revisions(result.entries[6], below: tokensPrefix)
        if let entry = result.entries[3].first {
            snapshot.policy = Revised(value: String(decoding: entry.value, as: UTF8.self), revision: entry.revision)
        }
        snapshot.nodes = nodes(in: result.entries[4])
        return snapshot
    }

    /// The revisions by the part of the key behind the prefix.
    private static func revisions(_ entries: [EtcdEntry], below prefix: String) -> [String: Int64] {
        Dictionary(entries.map { (String($0.key.dropFirst(prefix.count)), $0.revision) }) { $1 }
    }

    /// The nodes with a live lease, in the order of their names.
    func nodes() async throws(CacheError) -> [FleetNode] {
        let result = try await etcd.commit(EtcdTransaction([.list(nodesPrefix)]))
        return nodes(in: result.entries.first ?? [])
    }

    /// Entries of another form are left out: they are of a later version.
    private func nodes(in entries: [EtcdEntry]) -> [FleetNode] {
        entries.compactMap { entry in
            guard var node: FleetNode = try? JSONParser.parse(entry.value).decode(isStrict: false) else { return nil }
            node.name = String(entry.key.dropFirst(nodesPrefix.count))
            node.revision = entry.revision
            return node
        }
    }

    /// Number and identifier, with a blank between them.
    private static func purge(in entry: EtcdEntry) throws(CacheError) -> (number: Int64, id: String) {
        let words = String(decoding: entry.value, as: UTF8.self).split(separator: " ")
        guard words.count == 2, let number = Int64(words[0]) else { throw EtcdClient.malformed }
        return (number, String(words[1]))
    }

    /// The present settings of these origins, and the faults of those that cannot be read, by name. One that was deleted
    /// meanwhile is left out.
    func origins(
        _ names: [String]
    ) async throws(CacheError) -> (origins: [Revised<Origin>], faults: [String: String]) {
        var (origins, faults): ([Revised<Origin>], [String: String]) = ([], [:])
        for entry in try await entries(names, below: originsPrefix) {
            let name = String(entry.key.dropFirst(originsPrefix.count))
            do throws(CacheError) {
                let settings = try StoredSettings.origin(String(decoding: try opened(entry), as: UTF8.self))
                origins.append(Revised(value: Origin(name: name, settings: settings), revision: entry.revision))
            } catch {
                faults[name] = error.code == .fleetConflict ? error.message : Self.isLater
            }
        }
        return (origins, faults)
    }

    /// The present documents of these tokens, and the identifiers of those that no key of this node opens. One that was
    /// deleted meanwhile is left out.
    func tokens(_ ids: [String]) async throws(CacheError) -> (tokens: [StoredToken], unreadable: [String]) {
        var (tokens, unreadable): ([StoredToken], [String]) = ([], [])
        for entry in try await entries(ids, below: tokensPrefix) {
            let id = String(entry.key.dropFirst(tokensPrefix.count))
            if let document = try? opened(entry) {
                tokens.append(
                    StoredToken(id: id, document: String(decoding: document, as: UTF8.self), revision: entry.revision))
            } else {
                unreadable.append(id)
            }
        }
        return (tokens, unreadable)
    }

    /// The entries with these names, read in batches.
    private func entries(_ names: [String], below prefix: String) async throws(CacheError) -> [EtcdEntry] {
        var (entries, rest): ([EtcdEntry], ArraySlice) = ([], names[...])
        while !rest.isEmpty {
            let result = try await etcd.commit(EtcdTransaction(rest.prefix(Self.batch).map { .get(prefix + $0) }))
            rest = rest.dropFirst(Self.batch)
            entries += result.entries.joined()
        }
        return entries
    }

    static let isLater = "Its settings are of another version of Larder: use one version in the fleet."

    // MARK: Changes

    /// Stores the identity of a state, unless another node has.
    func begin(as identity: String) async throws(CacheError) {
        _ = try await etcd.commit(
            EtcdTransaction(if: [.absent(identityKey)], [.put(identityKey, Array(identity.utf8))]))
    }

    /// Stores an origin; returns its revision. Throws `.preconditionFailed` if the precondition does not hold.
    func save(_ origin: Origin, if precondition: Precondition) async throws(CacheError) -> Int64 {
        let key = originsPrefix + origin.name
        let sealed = try sealed(Array(StoredSettings.text(of: origin.settings).utf8), as: key)
        return try await change(key, .put(key, sealed), if: precondition)
    }

    /// Deletes an origin. Throws `.preconditionFailed` if the precondition does not hold.
    func deleteOrigin(_ name: String, if precondition: Precondition) async throws(CacheError) -> Int64 {
        try await change(originsPrefix + name, .delete(originsPrefix + name), if: precondition)
    }

    /// Stores the policy; returns its revision. Throws `.preconditionFailed` if the precondition does not hold.
    func save(_ policy: PolicySettings, if precondition: Precondition) async throws(CacheError) -> Int64 {
        let value = Array(StoredSettings.text(of: policy).utf8)
        return try await change(policyKey, .put(policyKey, value), if: precondition)
    }

    /// Stores the document of a token of the API; returns its revision. Throws `.preconditionFailed` if the precondition does
    /// not hold.
    func saveToken(_ id: String, _ document: String, if precondition: Precondition) async throws(CacheError) -> Int64 {
        let key = tokensPrefix + id
        return try await change(key, .put(key, try sealed(Array(document.utf8), as: key)), if: precondition)
    }

    /// Deletes a token of the API. Throws `.preconditionFailed` if the precondition does not hold.
    func deleteToken(_ id: String, if precondition: Precondition) async throws(CacheError) {
        _ = try await change(tokensPrefix + id, .delete(tokensPrefix + id), if: precondition)
    }

    /// Stores a purge; returns its number. Throws `.payloadTooLarge` if it exceeds the limit of etcd.
    func add(_ purge: FleetPurge) async throws(CacheError) -> Int64 {
        var purge = purge
        guard purge.jsonBytes.count <= Self.maxBytes else {
            throw CacheError(
                .payloadTooLarge, "A purge in a fleet has at most \(Self.maxBytes) bytes: divide it into several ones.")
        }
        for _ in 0..<Self.mostAttempts {
            let present = try await etcd.commit(EtcdTransaction([.get(lastPurgeKey)])).entries.first?.first
            let number: Int64
            (number, purge.previous) = try present.map(Self.purge(in:)) ?? (0, "")
            let condition: EtcdTransaction.Condition =
                present.map { .revision($0.revision, of: lastPurgeKey) } ?? .absent(lastPurgeKey)
            let lease = try await leaseForPurges()
            do throws(CacheError) {
                let result = try await etcd.commit(
                    EtcdTransaction(
                        if: [condition],
                        [
                            .put(lastPurgeKey, Array("\(number + 1) \(purge.id)".utf8)),
                            .put(purgeKey(number + 1), purge.jsonBytes, lease: lease),
                            .delete(purgeKey(number + 1 - Self.mostPurges)),
                        ]))
                if result.isCommitted { return number + 1 }
            } catch  where error.code == .notFound {
                purgeLease.withLock { $0 = nil }  // etcd was restored from a backup
            }
        }
        throw CacheError(.fleetUnavailable, "Too many purges of the fleet are added at the same time.")
    }

    /// Stores the entry of a node. Returns whether it is the only one of that name.
    func save(_ node: FleetNode, over present: FleetNode?, lease: Int64) async throws(CacheError) -> Bool {
        let key = nodesPrefix + node.name
        let condition: EtcdTransaction.Condition = present.map { .revision($0.revision, of: key) } ?? .absent(key)
        return try await etcd.commit(
            EtcdTransaction(if: [condition], [.put(key, node.jsonBytes, lease: lease)])
        ).isCommitted
    }

    func change(
        _ key: String, _ operation: EtcdTransaction.Operation, if precondition: Precondition
    ) async throws(CacheError) -> Int64 {
        let conditions: [EtcdTransaction.Condition] =
            switch precondition {
            case .none: []
            case .revision(let revision): [.revision(revision, of: key)]
            case .exists: [.exists(key)]
            case .absent: [.absent(key)]
            }
        let result = try await etcd.commit(EtcdTransaction(if: conditions, [operation]))
        guard result.isCommitted else {
            throw CacheError(.preconditionFailed, "The resource has changed; read it again and retry.")
        }
        return result.revision
    }

    private func leaseForPurges() async throws(CacheError) -> Int64 {
        let now = uptime()
        if let lease = purgeLease.withLock({ $0 }), now - lease.since < Self.leaseAge { return lease.id }
        let lease = try await etcd.grantLease(for: Self.purgeLifetime)
        purgeLease.withLock { $0 = (lease, now) }
        return lease
    }

    // MARK: Secrets

    /// The name of the key is authenticated, so that a value cannot be moved to another origin.
    func sealed(_ plain: [UInt8], as key: String) throws(CacheError) -> [UInt8] {
        guard let sealed = keys.withLock(\.first)?.sealed(plain, authenticating: Array(key.utf8)) else {
            throw CacheError(.internal, "The state of the fleet could not be encrypted.")
        }
        return sealed
    }

    static let isSealed = "cannot be decrypted with a key of fleet.keyFile of this node."

    /// Throws `.fleetConflict` without the key.
    func opened(_ entry: EtcdEntry) throws(CacheError) -> [UInt8] {
        for key in keys.withLock(\.self) {
            if let plain = key.opened(entry.value, authenticating: Array(entry.key.utf8)) { return plain }
        }
        throw CacheError(.fleetConflict, "Its settings \(Self.isSealed)")
    }
}
