import CacheCore
import CacheStore
import Cryptography
import EtcdClient

/// The jobs of a fleet in etcd.
///
/// | key below `/larder/FLEET/jobs/` | value |
/// |---|---|
/// | `heads/ID` | ``FleetJobHead`` |
/// | `items/ID/NUMBER` | ordered items, in pieces of at most 512 KiB |
/// | `results/ID/NUMBER` | ``FleetJobResults`` of 256 items |
/// | `requests/DIGEST` | identifier and digest of the request with an idempotency key |
/// | `claims/ID` | the node that runs the job, with the lease of the node |
///
/// All keys of a job but its claim have the lease of the job. Values are sealed, except those of claims. Every change of
/// a job compares the revision of its head, so that two nodes cannot change it at the same time.
struct FleetJobStore: Sendable {
    /// A job at one revision.
    struct Entry: Sendable {
        var head: FleetJobHead
        var revision: Int64
        /// Nil: no node runs it.
        var claim: Claim?
    }

    /// The node that runs a job, and the revision at which it began.
    struct Claim: Hashable, Sendable {
        var node: String
        var process: String
        var revision: Int64
    }

    /// The revisions of all heads, and the claims, by job.
    struct Overview: Sendable {
        var heads: [String: Int64] = [:]
        var claims: [String: Claim] = [:]
    }

    /// A new state of a job.
    struct Change: Sendable {
        var id: String
        var head: FleetJobHead
        var results: [Int: FleetJobResults] = [:]
        /// The state that it replaces; nil: none.
        var revision: Int64?
        /// The claim that must be in force; nil: any, or none.
        var claim: Int64?
        /// Whether the claim ends.
        var releasesClaim = false
    }

    /// The time for which a job is kept after its end, and an unfinished one without a node.
    static let lifetime = Duration.seconds(7 * 86400)
    private static let batch = 100

    let desired: DesiredState
    /// The names of this node and of its process.
    let node, process: String

    /// The prefix of all keys.
    var prefix: String { desired.root + "jobs/" }
    private var headsPrefix: String { prefix + "heads/" }
    private var claimsPrefix: String { prefix + "claims/" }

    private func headKey(_ id: String) -> String { headsPrefix + id }
    private func claimKey(_ id: String) -> String { claimsPrefix + id }
    private func itemsPrefix(_ id: String) -> String { prefix + "items/\(id)/" }
    private func resultsPrefix(_ id: String) -> String { prefix + "results/\(id)/" }

    private func requestKey(_ key: IdempotencyKey) -> String {
        prefix + "requests/" + HashFunction.sha256.digest(of: Array(key.key.utf8)).hexDigits
    }

    /// Numbers have the order of their texts.
    private static func digits(_ number: Int) -> String {
        let text = String(number)
        return String(repeating: "0", count: max(0, 6 - text.count)) + text
    }

    // MARK: Reading

    func overview() async throws(CacheError) -> Overview {
        let result = try await desired.etcd.commit(
            EtcdTransaction([.list(headsPrefix, keysOnly: true), .list(claimsPrefix)]))
        guard result.entries.count == 2 else { throw EtcdClient.malformed }
        var overview = Overview()
        for entry in result.entries[0] {
            overview.heads[String(entry.key.dropFirst(headsPrefix.count))] = entry.revision
        }
        for entry in result.entries[1] {
            overview.claims[String(entry.key.dropFirst(claimsPrefix.count))] = Self.claim(entry)
        }
        return overview
    }

    /// The heads of these jobs with their revisions. Those that this node cannot read are left out.
    func heads(_ ids: [String]) async throws(CacheError) -> [String: (head: FleetJobHead, revision: Int64)] {
        var (heads, rest): ([String: (FleetJobHead, Int64)], ArraySlice) = ([:], ids[...])
        while !rest.isEmpty {
            let result = try await desired.etcd.commit(
                EtcdTransaction(rest.prefix(Self.batch).map { .get(headKey($0)) }))
            rest = rest.dropFirst(Self.batch)
            for entry in result.entries.joined() {
                guard let head = try? head(entry) else { continue }
                heads[String(entry.key.dropFirst(headsPrefix.count))] = (head, entry.revision)
            }
        }
        return heads
    }

    /// The present state of a job; nil if there is none. Throws `.fleetConflict` if it cannot be decrypted.
    func entry(_ id: String) async throws(CacheError) -> Entry? {
        guard !id.contains("/") else { return nil }
        let result = try await desired.etcd.commit(EtcdTransaction([.get(headKey(id)), .get(claimKey(id))]))
        guard result.entries.count == 2 else { throw EtcdClient.malformed }
        guard let entry = result.entries[0].first else { return nil }
        return Entry(
            head: try head(entry), revision: entry.revision, claim: result.entries[1].first.map(Self.claim))
    }

    private func head(_ entry: EtcdEntry) throws(CacheError) -> FleetJobHead {
        try Self.decoded(FleetJobHead.self, try desired.opened(entry))
    }

    private static func claim(_ entry: EtcdEntry) -> Claim {
        let words = String(decoding: entry.value, as: UTF8.self).split(separator: " ")
        return Claim(
            node: words.first.map(String.init) ?? "", process: words.last.map(String.init) ?? "",
            revision: entry.revision)
    }

    /// The items of a job with their progress, without the files of playlists: all, or the pieces with the first `count`
    /// ones. Throws `storageCorrupt` if some are missing.
    func items(
        of id: String, _ head: FleetJobHead, first count: Int = .max
    ) async throws(CacheError) -> [JobItemRecord] {
        var items: [JobItemRecord] = []
        for number in 0..<head.chunks where items.count < count {
            let result = try await desired.etcd.commit(
                EtcdTransaction([.get(itemsPrefix(id) + Self.digits(number))]))
            for entry in result.entries.joined() {
                items += try FleetJobChunks.items(of: [try desired.opened(entry)], from: items.count)
            }
        }
        guard items.count >= min(count, head.items) else {
            throw CacheError(.storageCorrupt, "Items of the job \(id) are missing in etcd.")
        }
        let result = try await desired.etcd.commit(EtcdTransaction([.list(resultsPrefix(id))]))
        for entry in result.entries.joined() {
            guard let number = Int(entry.key.dropFirst(resultsPrefix(id).count)) else { continue }
            let results = try Self.decoded(FleetJobResults.self, try desired.opened(entry))
            results.restore(number, to: &items, round: head.round)
        }
        return items
    }

    private static func decoded<Value: Decodable>(
        _ type: Value.Type, _ bytes: [UInt8]
    ) throws(CacheError) -> Value {
        do throws(CacheError) {
            return try JSONParser.parse(bytes).decode(type, isStrict: false)
        } catch {
            throw CacheError(.fleetConflict, "A job is of another version of Larder: use one version in the fleet.")
        }
    }

    /// The earlier use of an idempotency key; nil if the key is new.
    func insertion(with key: IdempotencyKey) async throws(CacheError) -> JobInsertion? {
        let result = try await desired.etcd.commit(EtcdTransaction([.get(requestKey(key))]))
        guard let entry = result.entries.first?.first else { return nil }
        let words = String(decoding: try desired.opened(entry), as: UTF8.self).split(separator: " ")
        guard words.count == 2 else { throw EtcdClient.malformed }
        return .repeated(jobID: String(words[0]), isSameBody: words[1] == key.bodyHash)
    }

    // MARK: Changes

    /// A lease for the keys of a new job.
    func grantLease() async throws(CacheError) -> Int64 { try await desired.etcd.grantLease(for: Self.lifetime) }

    func renew(_ head: FleetJobHead) async throws(CacheError) { _ = try await desired.etcd.keepAlive(head.lease) }

    /// Removes a job, or the pieces of one that was not inserted.
    func remove(lease: Int64) async { await desired.etcd.abandon(lease) }

    /// Stores the items of a job before its head, one piece in a request.
    func put(_ chunks: [[UInt8]], of id: String, lease: Int64) async throws(CacheError) {
        for (number, chunk) in chunks.enumerated() {
            let key = itemsPrefix(id) + Self.digits(number)
            _ = try await desired.etcd.commit(
                EtcdTransaction([.put(key, try desired.sealed(chunk, as: key), lease: lease)]))
        }
    }

    /// Inserts the head of a job with its claim, and ends the jobs that it supersedes. Returns the revision; nil if one of
    /// these has changed, or the idempotency key is in use.
    func insert(
        _ id: String, _ head: FleetJobHead, request: IdempotencyKey?, ending superseded: [Change], nodeLease: Int64
    ) async throws(CacheError) -> Int64? {
        var transaction = try transaction([Change(id: id, head: head)] + superseded)
        transaction.conditions.append(.absent(claimKey(id)))
        transaction.operations.append(.put(claimKey(id), Array("\(node) \(process)".utf8), lease: nodeLease))
        if let request {
            let key = requestKey(request)
            let value = try desired.sealed(Array("\(id) \(request.bodyHash)".utf8), as: key)
            transaction.conditions.append(.absent(key))
            transaction.operations.append(.put(key, value, lease: head.lease))
        }
        let result = try await desired.etcd.commit(transaction)
        return result.isCommitted ? result.revision : nil
    }

    /// Stores the new state of a job. Returns its revision; nil if the job or its claim has changed.
    func commit(_ change: Change) async throws(CacheError) -> Int64? {
        let result = try await desired.etcd.commit(try transaction([change]))
        return result.isCommitted ? result.revision : nil
    }

    /// Claims a job with a new state or as it is. `present`: the claim that this one replaces; nil: no node runs it.
    /// Returns the revision; nil if the job or its claim has changed.
    func claim(
        _ id: String, at revision: Int64, as head: FleetJobHead? = nil, over present: Claim? = nil, nodeLease: Int64
    ) async throws(CacheError) -> Int64? {
        var transaction =
            if let head { try transaction([Change(id: id, head: head, revision: revision)]) } else {
                EtcdTransaction(if: [.revision(revision, of: headKey(id))], [])
            }
        transaction.conditions.append(
            present.map { .revision($0.revision, of: claimKey(id)) } ?? .absent(claimKey(id)))
        transaction.operations.append(.put(claimKey(id), Array("\(node) \(process)".utf8), lease: nodeLease))
        let result = try await desired.etcd.commit(transaction)
        return result.isCommitted ? result.revision : nil
    }

    /// Ends the claim of this node.
    func release(_ id: String, _ claim: Int64) async throws(CacheError) {
        _ = try await desired.etcd.commit(
            EtcdTransaction(if: [.revision(claim, of: claimKey(id))], [.delete(claimKey(id))]))
    }

    private func transaction(_ changes: [Change]) throws(CacheError) -> EtcdTransaction {
        var transaction = EtcdTransaction([])
        for change in changes {
            let (id, key) = (change.id, headKey(change.id))
            transaction.conditions.append(change.revision.map { .revision($0, of: key) } ?? .absent(key))
            if let claim = change.claim { transaction.conditions.append(.revision(claim, of: claimKey(id))) }
            let value = try desired.sealed(change.head.jsonBytes, as: key)
            transaction.operations.append(.put(key, value, lease: change.head.lease))
            for (number, results) in change.results {
                let key = resultsPrefix(id) + Self.digits(number)
                let value = try desired.sealed(results.jsonBytes, as: key)
                transaction.operations.append(.put(key, value, lease: change.head.lease))
            }
            if change.releasesClaim { transaction.operations.append(.delete(claimKey(id))) }
        }
        return transaction
    }
}
