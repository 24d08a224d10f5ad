import CacheCore
import CacheStore
import Synchronization

/// The readers' proven rights to assets that all values of the forwarded fields share.
///
/// A right is proved by a response of the upstream to a request for one byte with the reader's own fields.
final class AccessProofs: Sendable {
    struct Proof: Hashable, Sendable {
        let asset: AssetID
        /// The number of the cached generation; 0: nothing was cached.
        let generation: Int64
        /// A keyed digest of the reader's fields.
        let reader: String
    }

    /// The time for which a proof holds.
    static let lifetime = Duration.seconds(60)
    /// The largest number of proofs. At the limit, those that have ended are dropped, then all.
    private let limit: Int
    /// Guards the ends of the proofs.
    private let ends = Mutex<[Proof: Timestamp]>([:])
    /// Concurrent readers with the same fields wait for one proof.
    private let turns = (0..<64).map { _ in AsyncMutex() }

    init(limit: Int = 65_536) { self.limit = limit }

    /// Whether the proof was given and has not ended.
    func holds(_ proof: Proof, at now: Timestamp) -> Bool { ends.withLock { $0[proof].map { now < $0 } ?? false } }

    /// Runs `body` while no other task runs one for this proof.
    func pass<Value: Sendable>(
        _ proof: Proof, _ body: () async throws(CacheError) -> Value
    ) async throws(CacheError) -> Value {
        try await turns[Int(UInt(bitPattern: proof.hashValue) % 64)].pass(body)
    }

    /// Records a proof.
    func add(_ proof: Proof, at now: Timestamp) {
        ends.withLock { ends in
            if ends.count >= limit { ends = ends.filter { now < $0.value } }
            if ends.count >= limit { ends = [:] }
            ends[proof] = now + Self.lifetime
        }
    }
}

/// Readers' own credentials for the upstream (`forward`).
struct ForwardedFields: Sendable {
    let context: EngineContext
    private let proofs = AccessProofs()

    init(context: EngineContext) { self.context = context }

    /// The target of a reader's request: with the reader's fields, and a key of its own for each value of them unless
    /// the origin shares its assets.
    ///
    /// Throws the upstream's refusal if the reader has no right to a shared asset.
    func target(of request: ContentRequest, at plain: AssetTarget) async throws(CacheError) -> AssetTarget {
        let names = plain.settings.forwarded
        guard !names.isEmpty else { return plain }
        var target = plain
        target.forwarded = request.fields(named: names)
        if plain.settings.sharesForwarded, try await mayShare(target) { return target }
        guard !target.forwarded.fields.isEmpty else { return target }
        return target.keyed(target.key + " " + String(reader(of: target).prefix(16)))
    }

    /// A digest of the reader's fields, which cannot be guessed without the key of the store.
    private func reader(of target: AssetTarget) -> String {
        let text = target.forwarded.fields.map { "\(FieldText.lowered($0.name)):\($0.value)" }.joined(separator: "\n")
        return context.store.catalog.keyedDigest(of: "forwarded fields\n" + text)
    }

    /// Whether the reader may get the shared bytes. Asks the upstream for one byte with the reader's fields, unless the
    /// right to the cached version is proved already. False: the upstream shows this reader another version.
    private func mayShare(_ target: AssetTarget) async throws(CacheError) -> Bool {
        let reader = reader(of: target)
        let known = try await knownGeneration(of: target)
        let proof = AccessProofs.Proof(asset: target.id, generation: known?.number ?? 0, reader: reader)
        if proofs.holds(proof, at: context.wallClock.now()) { return true }
        return try await proofs.pass(proof) { () async throws(CacheError) in
            if proofs.holds(proof, at: context.wallClock.now()) { return true }
            let asked = context.wallClock.now()
            let head = try await head(for: target)
            guard isVersion(head, known, of: target, at: asked) else { return false }
            proofs.add(proof, at: asked)
            return true
        }
    }

    /// The head of a response to a request for one byte. Throws the upstream's refusal.
    private func head(for target: AssetTarget) async throws(CacheError) -> UpstreamHead {
        var probe = HeadProbe(target: target, context: context, priority: .live)
        let head: UpstreamHead
        do {
            head = try await probe.ask(.get, for: .closed(0..<1))
        } catch {
            throw error.error
        }
        guard (200..<300).contains(head.status) || head.status == 304 || head.status == 416 else {
            throw CacheError(
                .upstreamRefused(status: head.status),
                "The upstream answered \(head.status) to the reader's own credentials.")
        }
        return head
    }

    /// The cached version; nil if there is none.
    private func knownGeneration(of target: AssetTarget) async throws(CacheError) -> Generation? {
        if let record = context.openAssets[target.id]?.record { return record.generation }
        return try await context.store.catalog.asset(target.id)?.record.generation
    }

    /// Whether the response describes the cached version. A version that is not fresh is confirmed by the read itself.
    private func isVersion(
        _ head: UpstreamHead, _ known: Generation?, of target: AssetTarget, at now: Timestamp
    ) -> Bool {
        guard let known, known.isFresh(at: now) else { return true }
        let trust = target.settings.trustValidators
        let expectation = WindowExpectation(
            window: .closed(0..<1), known: nil, now: now, freshness: target.settings.freshness, trust: trust,
            storeRules: target.settings.storeRules, path: target.path)
        switch ResponseVerdict.judge(head, expecting: expectation) {
        case .window(_, let generation), .whole(let generation), .changed(let generation, _):
            return generation.isSameRepresentation(as: known, trusting: trust)
        case .unchanged, .unsatisfiable, .refused: return true
        }
    }
}

extension AssetTarget {
    /// The same content under another key.
    fileprivate func keyed(_ key: String) -> AssetTarget {
        AssetTarget(
            id: AssetID(naming: key), key: key, originName: originName, settings: settings, url: url, path: path,
            variant: variant, forwarded: forwarded, cdnLoop: cdnLoop, keepsNothing: keepsNothing)
    }
}

extension ContentRequest {
    /// The fields with these names, in the order of the names.
    fileprivate func fields(named names: [String]) -> HeaderList {
        HeaderList(
            names.flatMap { name in
                (credentials.values(name) + headers.values(name)).map { HeaderList.Field(name, $0) }
            })
    }
}
