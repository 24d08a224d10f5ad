import CacheCore
import CacheStore
package import EtcdClient
import Logging

/// This node's part in a fleet: it applies the desired state in etcd, and tells the other nodes how far it has come.
///
/// Every three seconds, and after each change, it reads the state at one revision and applies what it lacks: origins and
/// policy first, then the purges in the order of their numbers. Reading the present state in place of a log of changes
/// needs no care for compaction, gaps and reconnections. A purge is recorded as applied after it has taken effect, so that
/// a process that is killed in between repeats it.
package final class FleetMember: Sendable {
    /// What a node does that reaches neither etcd nor any other node.
    package enum CatchUp: String, Sendable, CaseIterable {
        /// It is not ready: purges may have been made.
        case require
        /// It serves on.
        case serve
    }

    package struct Settings: Hashable, Sendable {
        package var fleet: String
        package var node: String
        /// The base URL for other nodes; empty: it serves none.
        package var url: String
        package var etcd: EtcdSettings
        /// The keys of the nodes.
        package var keys: [String]
        /// The time without etcd after which the node asks the others.
        package var maxLag: Duration
        package var catchUp: CatchUp
        package var version: String
        /// The base URL of the router; nil: each node runs the items of its jobs itself.
        package var router: String?

        package init(
            fleet: String, node: String, url: String, etcd: EtcdSettings, keys: [String], maxLag: Duration,
            catchUp: CatchUp, version: String
        ) {
            self.fleet = fleet
            self.node = node
            self.url = url
            self.etcd = etcd
            self.keys = keys
            self.maxLag = maxLag
            self.catchUp = catchUp
            self.version = version
        }
    }

    struct State {
        /// What this store has applied; nil: nothing of this fleet yet.
        var record: FleetRecord?
        /// The uptime of the last contact with etcd; nil: none since the start.
        var contact: Duration?
        var lastError: String?
        /// The last revision of etcd that was read, and the uptime of the last decision about the readiness.
        var revision: Int64 = 0
        var decidedAt = Duration.zero
        /// The nodes at the last contact.
        var nodes: [FleetNode] = []
        /// The nodes that were read for a client, and the uptime before.
        var readNodes: (at: Duration, nodes: [FleetNode])?
        var lease: Int64?
        /// The faults of the fleet's origins on this node, by name.
        var originFaults: [String: String] = [:]
        /// Purges after the recorded one that this node has carried out itself.
        var carriedOut: Set<Int64> = []
        /// The reason why routers should choose other nodes; nil: none.
        var fault: String? = "The node has not read the state of its fleet yet."
        /// The state of the service, for the other nodes.
        var readiness = Readiness.starting
    }

    static let interval = Duration.seconds(3)
    /// The names of the policy and of the tokens among the faults; no origin can have them.
    private static let (policyName, tokensName) = ("(policy)", "(tokens)")
    private static let isConfigured = "The configuration file of this node defines it, too: remove it there."
    /// The longest time for an attempt to read the state, and for the questions to other nodes.
    private static let decisionReserve = Duration.seconds(15)
    private static let keepAliveInterval = Duration.seconds(5)
    /// The pause before a lost stream of changes is requested again.
    private static let streamPause = Duration.seconds(1)
    /// The time by which a lease outlives ``Settings/maxLag``: a router has stopped sending requests until then.
    private static let leaseReserve = Duration.seconds(20)
    /// The interval at which a node describes its usage again.
    private static let refreshInterval = Duration.seconds(30)

    package let settings: Settings
    let desired: DesiredState
    let jobs: FleetJobs
    private let services: any Upstream
    let context: EngineContext
    let configuration: CacheConfiguration
    private let evictions: EvictionAdministration
    /// One reading of the state at a time.
    private let turn = AsyncMutex()
    /// One reading of the nodes at a time.
    let reading = AsyncMutex()
    /// Guards the state.
    let state = OrderedMutex(.leaf, State())
    private let (wakes, wake) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))

    /// `services`: the client for requests to etcd. Nil without settings.
    init?(
        _ settings: Settings?, services: any Upstream, context: EngineContext, configuration: CacheConfiguration,
        evictions: EvictionAdministration, prefetch: PrefetchQueue
    ) {
        guard let settings else { return nil }
        self.settings = settings
        self.services = services
        desired = DesiredState(
            EtcdClient(settings.etcd, over: services), fleet: settings.fleet, keys: settings.keys,
            uptime: context.uptime)
        jobs = FleetJobs(
            FleetJobStore(desired: desired, node: settings.node, process: context.upstreams.loopName),
            prefetch: prefetch, of: context)
        prefetch.join(jobs)
        self.context = context
        self.configuration = configuration
        self.evictions = evictions
        updateRouter(keys: settings.keys)
    }

    private func updateRouter(keys: [String]) {
        guard let url = settings.router, let key = keys.first else { return }
        jobs.update(router: ItemRouter(url: url, key: key, peers: context.peers, upstream: services))
    }

    /// The reason why this node is not ready; nil: it is up to date, or may serve without etcd.
    package var fault: String? {
        let now = context.uptime()
        return state.withLock { state in
            // A suspended process has decided before its suspension.
            let isOld = now - state.decidedAt > settings.maxLag + Self.decisionReserve
            return state.fault ?? (isOld ? "The node has not read the state of its fleet for too long." : nil)
        }
    }

    /// The service has another state.
    func changed(_ readiness: Readiness) {
        state.withLock { $0.readiness = readiness }
        wake.yield()
    }

    /// Loads the applied state; call it before the first request is served.
    func prepare() async throws(CacheError) {
        let record = try await context.store.catalog.fleetRecord()
        state.withLock { $0.record = record?.fleet == settings.fleet ? record : nil }
        publish()
    }

    /// Follows the fleet until cancellation, then leaves it.
    func run(clock: any Clock<Duration>) async {
        await withDiscardingTaskGroup { group in
            group.addTask {
                await self.desired.signal(
                    self.wake, below: self.desired.statePrefix, every: Self.interval, pause: Self.streamPause,
                    clock: clock)
            }
            group.addTask {
                // Apart from the readings, so that a long purge does not end the lease.
                while (try? await clock.sleep(for: Self.keepAliveInterval)) != nil { await self.keepAlive() }
            }
            group.addTask { await self.jobs.run(clock: clock) }
            for await _ in wakes { await follow() }
        }
        // Without the lease no purge waits for this node.
        if let lease = state.withLock({ $0.lease }) { await desired.etcd.abandon(lease) }
    }

    /// Replaces the keys of the nodes.
    package func update(keys: [String]) {
        desired.update(keys: keys)
        updateRouter(keys: keys)
        wake.yield()
    }

    /// Applies the present state, and decides about the readiness.
    private func follow() async {
        do throws(CacheError) {
            try await synchronize()
        } catch {
            guard error.code != .cancelled, error.code != .shuttingDown else { return }
            await lost(error)
        }
    }

    /// Applies the present state. Throws the error of etcd or of the catalog.
    func synchronize() async throws(CacheError) {
        try await turn.pass { () async throws(CacheError) in
            var isCurrent = false
            while !isCurrent {
                let applied = state.withLock { $0.record?.purges }
                let snapshot = try await desired.snapshot(after: applied ?? .max - 1)
                guard let identity = snapshot.identity else {
                    try await desired.begin(as: context.random.identifier())
                    continue
                }
                try await begin(as: identity, in: snapshot)
                try await applySettings(of: snapshot)
                let isApplied = try await applyPurges(of: snapshot)
                // Purges that were complete before this node had an entry did not wait for it.
                let isNew = try await describe(in: snapshot.nodes)
                isCurrent = isApplied && !isNew
            }
            reached()
        }
    }

    // MARK: Application

    /// Begins with the state if it is another one than this store has applied. Its content may have been purged; origins of
    /// the former state stay mounted as this node's own, because etcd may have lost them.
    private func begin(as identity: String, in snapshot: DesiredState.Snapshot) async throws(CacheError) {
        let (former, last) = state.withLock { state in
            defer { state.revision = snapshot.revision }
            return (state.record, state.revision)
        }
        if let former, former.identity == identity {
            // An earlier revision: etcd was restored, and can assign revisions again.
            if snapshot.revision < last { state.withLock { $0.record?.forgetRevisions() } }
            return
        }
        try await confirmAll(
            because: former == nil ? "the node is new in its fleet" : "the state of the fleet is another one")
        try await keep(
            FleetRecord(
                fleet: settings.fleet, identity: identity, store: former?.store ?? context.random.identifier(),
                purges: snapshot.lastPurge, purgeID: snapshot.lastPurgeID))
        // Only content of this node may lack purges. Copies at nodes with the same number are current, unless the numbers are
        // those of a former state.
        if former == nil { context.peers.joined() }
    }

    private func applySettings(of snapshot: DesiredState.Snapshot) async throws(CacheError) {
        guard var record = state.withLock({ $0.record }) else { return }
        let configured = snapshot.origins.keys.filter(configuration.isConfigured)
        for name in configured { record.origins[name] = nil }
        let changed = snapshot.origins.filter { record.origins[$0.key] != $0.value && !configured.contains($0.key) }
        var (changes, faults) = (FleetChanges(), [String: String]())
        changes.removedOrigins = Set(record.origins.keys).subtracting(snapshot.origins.keys)
        if !changed.isEmpty { (changes.origins, faults) = try await desired.origins(changed.keys.sorted()) }
        for name in configured { faults[name] = Self.isConfigured }
        changes.policy = policy(in: snapshot, besides: record.policy, &faults)
        for origin in changes.origins { record.origins[origin.value.name] = origin.revision }
        for name in changes.removedOrigins { record.origins[name] = nil }
        record.policy = changes.policy?.revision ?? record.policy
        try await readTokens(of: snapshot, &record, &changes, &faults)
        if record != state.withLock({ $0.record }) {
            let unusable = try await configuration.adopt(record, changes)
            faults.merge(unusable) { $1 }
        }
        note(
            faults,
            keeping: { snapshot.origins[$0] != nil && changed[$0] == nil && !self.configuration.isConfigured($0) },
            in: record)
    }

    /// Reads the changed tokens of the API. Those that this node cannot read have no effect here, and are a fault.
    private func readTokens(
        of snapshot: DesiredState.Snapshot, _ record: inout FleetRecord, _ changes: inout FleetChanges,
        _ faults: inout [String: String]
    ) async throws(CacheError) {
        let applied = record.tokens ?? [:]
        guard applied != snapshot.tokens else { return }
        let changed = snapshot.tokens.filter { applied[$0.key] != $0.value }
        let (tokens, unreadable) = try await desired.tokens(changed.keys.sorted())
        changes.tokens = tokens
        // A token that was replaced by an unreadable one is no longer valid.
        changes.removedTokens = Set(applied.keys).subtracting(snapshot.tokens.keys).union(unreadable)
        if !unreadable.isEmpty {
            faults[Self.tokensName] = "The tokens \(unreadable.joined(separator: ", ")) \(DesiredState.isSealed)"
        }
        record.tokens = applied.filter { !changes.removedTokens.contains($0.key) }
            .merging(tokens.map { ($0.id, $0.revision) }) { $1 }
    }

    /// The policy of the fleet if it has changed. One of another version is a fault.
    private func policy(
        in snapshot: DesiredState.Snapshot, besides applied: Int64, _ faults: inout [String: String]
    ) -> Revised<PolicySettings>? {
        guard let policy = snapshot.policy, policy.revision != applied else { return nil }
        guard let settings = try? StoredSettings.policy(policy.value) else {
            faults[Self.policyName] = DesiredState.isLater
            return nil
        }
        return Revised(value: settings, revision: policy.revision)
    }

    /// Replaces the faults but for those of unchanged origins, and logs the new ones.
    private func note(_ faults: [String: String], keeping isUnchanged: (String) -> Bool, in record: FleetRecord) {
        // One synchronisation at a time calls this, so the faults do not change in between.
        let known = state.withLock { $0.originFaults }
        let present = known.filter { isUnchanged($0.key) }.merging(faults) { $1 }
        state.withLock { ($0.record, $0.originFaults) = (record, present) }
        let new = faults.filter { known[$0.key] != $0.value }
        for (name, fault) in new.sorted(by: { $0.key < $1.key }) {
            context.logger.error(
                "an origin of the fleet cannot be used on this node",
                metadata: ["origin": "\(name)", "error": "\(fault)"])
        }
    }

    /// Returns whether all purges are applied.
    private func applyPurges(of snapshot: DesiredState.Snapshot) async throws(CacheError) -> Bool {
        guard var record = state.withLock({ $0.record }) else { return false }
        let isOther = snapshot.lastPurge == record.purges && snapshot.lastPurgeID != record.purgeID
        if snapshot.lastPurge < record.purges || isOther {
            try await confirmAll(because: "the purges of the fleet are not those that this node has applied")
            (record.purges, record.purgeID) = (snapshot.lastPurge, snapshot.lastPurgeID)
            record.forgetRevisions()
            try await keep(record)
            return false
        }
        let purges = snapshot.purges.map { purge in
            (purge.number, value: try? JSONParser.parse(purge.value).decode(FleetPurge.self, isStrict: false))
        }
        if snapshot.lastPurge > record.purges, purges.first?.0 != record.purges + 1 {
            try await confirmAll(because: "the node was away for longer than purges are kept")
            record.purges = purges.first.map { $0.0 - 1 } ?? snapshot.lastPurge
            record.purgeID = purges.isEmpty ? snapshot.lastPurgeID : purges[0].value?.previous ?? ""
            try await keep(record)
        }
        for (number, purge) in purges where number > record.purges {
            try await apply(purge, number, after: record.purgeID)
            record = state.withLock(\.record) ?? record
            record.purges = number
            record.purgeID = number == snapshot.lastPurge ? snapshot.lastPurgeID : purge?.id ?? ""
            try await keep(record)
        }
        return record.purges >= snapshot.lastPurge
    }

    /// Applies a purge, unless this node has made it. `purge` nil: it cannot be read. `previous`: the identifier of the purge
    /// before, as this node has applied it.
    private func apply(_ purge: FleetPurge?, _ number: Int64, after previous: String) async throws(CacheError) {
        if let purge, purge.previous != previous {
            try await confirmAll(because: "the purges of the fleet do not continue those that this node has applied")
            state.withLock { $0.record?.forgetRevisions() }
        }
        if !state.withLock({ $0.carriedOut.contains(number) }) { try await carryOut(purge, number) }
    }

    private func keep(_ record: FleetRecord) async throws(CacheError) {
        try await context.store.catalog.apply(record)
        state.withLock { state in
            state.record = record
            state.carriedOut = state.carriedOut.filter { $0 > record.purges }
        }
        publish()
    }

    private func carryOut(_ purge: FleetPurge?, _ number: Int64) async throws(CacheError) {
        guard let purge, let request = try? PurgeRequest(purge.request) else {
            // A purge of a later version may select anything.
            context.logger.error(
                "a purge of the fleet cannot be read; use one version of Larder in the fleet",
                metadata: ["purge": "\(number)"])
            return try await confirmAll(because: "a purge of the fleet cannot be read")
        }
        let report: EvictionReport
        do throws(CacheError) {
            report = try await evictions.carryOut(request, at: purge.at, by: purge.tokenOwner)
        } catch {
            guard request.isErasure, case .invalidField = error.code else { throw error }
            context.logger.error(
                "an erasure of the fleet is carried out as a purge on this node",
                metadata: ["purge": "\(number)", "error": "\(error)"])
            report = try await evictions.carryOut(
                request.with("shred", nil), at: purge.at, by: purge.tokenOwner)
        }
        context.logger.notice(
            "purge of the fleet applied", metadata: ["purge": "\(number)", "assets": "\(report.assets)"])
    }

    /// Makes all assets stale, so that the upstream confirms them before their next use.
    private func confirmAll(because reason: Logger.Message) async throws(CacheError) {
        context.logger.warning("all content is confirmed by its upstream before its next use: \(reason)")
        _ = try await evictions.purge(AssetSelection(), isSoft: true, isDryRun: false, runsLater: true)
    }

    // MARK: Purges of this node

    /// Makes a purge that all nodes carry out, this one with `carryOut`. Returns its number.
    ///
    /// It is stored for the others first: an error of `carryOut` lets this node try again until it succeeds. Only an
    /// erasure is carried out here first, because it is refused if an asset is not encrypted.
    func purge<Report: Sendable>(
        _ request: PurgeRequest, by owner: TokenOwner?, carryOut: () async throws(CacheError) -> Report
    ) async throws(CacheError) -> (report: Report, number: Int64) {
        let purge = FleetPurge(
            request.json, id: context.random.identifier(), at: context.wallClock.now(), by: owner)
        let result = try await turn.pass { () async throws(CacheError) -> (Report, Int64) in
            let early = request.isErasure ? try await carryOut() : nil
            let number = try await desired.add(purge)
            let report: Report
            if let early { report = early } else { report = try await carryOut() }
            state.withLock { _ = $0.carriedOut.insert(number) }
            return (report, number)
        }
        wake.yield()
        return (result.0, result.1)
    }

    // MARK: Membership

    /// Renews the lease, and stores the entry of this node if it has changed. Returns whether it had none before.
    private func describe(in nodes: [FleetNode]) async throws(CacheError) -> Bool {
        guard let record = state.withLock({ $0.record }) else { return false }
        let present = nodes.first { $0.name == settings.node }
        let isTaken = present.map { $0.store != record.store } ?? false
        state.withLock { $0.nodes = nodes }
        context.peers.discovered(nodes.filter { $0.name != settings.node && !$0.url.isEmpty }.map(\.url))
        guard !isTaken else {
            throw CacheError(
                .fleetConflict,
                "Another node of the fleet is named \(settings.node): give each node its own fleet.node.")
        }
        let policy = configuration.policy.settings
        let node = FleetNode(
            name: settings.node, store: record.store, process: context.upstreams.loopName, url: settings.url,
            version: settings.version,
            state: state.withLock { $0.readiness.rawValue },
            purges: record.purges, capacityBytes: policy.capacityBytes, usedBytes: context.space.with { $0.usedBytes },
            at: context.wallClock.now())
        // The next process with this store has written the entry already.
        if let present, present.process != node.process, node.state == Readiness.draining.rawValue { return false }
        let (lease, isRenewed) = try await lease()
        jobs.update(lease: lease, isReady: node.state == Readiness.ready.rawValue)
        let isCurrent =
            present.map { !node.differsFromEntry($0) && node.at.since($0.at) < Self.refreshInterval } ?? false
        guard !isRenewed || !isCurrent else { return false }
        if try await desired.save(node, over: present, lease: lease) {
            state.withLock { state in
                state.nodes.removeAll { $0.name == node.name }
                state.nodes.append(node)
                state.nodes.sort { $0.name < $1.name }
            }
        } else {
            wake.yield()  // another process has written the entry meanwhile
        }
        return present == nil
    }

    /// Renews the lease. After an error the next reading does.
    private func keepAlive() async {
        if let lease = state.withLock({ $0.lease }) { _ = try? await desired.etcd.keepAlive(lease) }
    }

    /// The lease of this node, and whether it existed before.
    private func lease() async throws(CacheError) -> (id: Int64, isRenewed: Bool) {
        if let lease = state.withLock({ $0.lease }), try await desired.etcd.keepAlive(lease) { return (lease, true) }
        let lease = try await desired.etcd.grantLease(for: settings.maxLag + Self.leaseReserve)
        state.withLock { $0.lease = lease }
        return (lease, false)
    }

    // MARK: Contact

    private func reached() {
        let now = context.uptime()
        let wasLost = state.withLock { state in
            defer { (state.contact, state.decidedAt, state.lastError, state.fault) = (now, now, nil, nil) }
            return state.lastError != nil || state.fault != nil
        }
        if wasLost { context.logger.notice("the state of the fleet is applied") }
        publish()
    }

    /// etcd has not answered: after ``Settings/maxLag`` the other nodes decide whether this one may serve on.
    private func lost(_ error: CacheError) async {
        let now = context.uptime()
        let (isFirst, lag) = state.withLock { state in
            defer { state.lastError = error.message }
            return (state.lastError == nil, now - (state.contact ?? .zero))
        }
        if isFirst {
            context.logger.error(
                "the state of the fleet cannot be read; reads go on, changes are refused",
                metadata: ["error": "\(error)"])
        }
        guard lag > settings.maxLag || error.code == .fleetConflict else { return }
        let fault = error.code == .fleetConflict ? error.message : await faultByPeers()
        let decidedAt = context.uptime()
        let isNew = state.withLock { state in
            defer { (state.fault, state.decidedAt) = (fault, decidedAt) }
            return fault != nil && state.fault != fault
        }
        if isNew, let fault { context.logger.error("the node is not ready", metadata: ["reason": "\(fault)"]) }
    }

    /// Nil if the node may serve: etcd has failed for all nodes that answer.
    private func faultByPeers() async -> String? {
        let answers = await context.peers.lags()
        if answers.contains(where: { $0.map { $0 < settings.maxLag } ?? false }) {
            return "Other nodes reach etcd, and this one does not: it may lack purges."
        }
        guard answers.isEmpty, settings.catchUp == .require else { return nil }
        return "Neither etcd nor another node answers; fleet.catchUp: serve would serve on."
    }

    /// Makes the state known to other nodes with each answer.
    private func publish() {
        let (purges, contact, isAll) = state.withLock { state in
            (state.record?.purges ?? 0, state.contact, state.carriedOut.isEmpty)
        }
        context.peers.applied(purges: purges, contact: contact, isAll: isAll)
    }
}
