import CacheCore
import CacheStore
import Synchronization

/// The versions of assets that the upstream has shown to readers, for assets that all values of the forwarded fields
/// share.
///
/// A version is proved by a response of the upstream to a request for one byte with the reader's own fields.
final class AccessProofs: Sendable {
    /// An asset and a reader.
    struct Subject: Hashable, Sendable {
        let asset: AssetID
        /// A keyed digest of the reader's fields.
        let reader: String
    }

    private struct Proof {
        let version: String
        let end: Timestamp
    }

    /// The time for which a proof holds.
    static let lifetime = Duration.seconds(60)
    /// The largest number of proofs. At the limit, those that have ended are dropped, then all.
    private let limit: Int
    /// Guards the proofs.
    private let proofs = Mutex<[Subject: Proof]>([:])

    init(limit: Int = 65_536) { self.limit = limit }

    /// The version that the reader was shown; nil if there is no proof, or if it has ended.
    func version(for subject: Subject, at now: Timestamp) -> String? {
        proofs.withLock { $0[subject].flatMap { now < $0.end ? $0.version : nil } }
    }

    /// Records a proof.
    func add(_ version: String, for subject: Subject, at now: Timestamp) {
        proofs.withLock { proofs in
            if proofs.count >= limit { proofs = proofs.filter { now < $0.value.end } }
            if proofs.count >= limit { proofs = [:] }
            proofs[subject] = Proof(version: version, end: now + Self.lifetime)
        }
    }
}

/// Readers' own credentials for the upstream (`forward`).
struct ForwardedFields: Sendable {
    let context: EngineContext
    private let proofs = AccessProofs()
    /// The requests for proofs in progress.
    private let calls = SharedCalls<String?>()

    init(context: EngineContext) { self.context = context }

    /// The target of a reader's request: with the reader's fields, and a key of its own for each value of them. If the
    /// origin shares its assets, the key contains the version that the upstream shows this reader instead.
    ///
    /// Throws the upstream's refusal if the reader has no right to a shared asset.
    func target(of request: ContentRequest, at plain: AssetTarget) async throws(CacheError) -> AssetTarget {
        let names = plain.settings.forwarded
        guard !names.isEmpty else { return plain }
        var target = plain
        let fields = request.fields(named: names)
        target.forwarded = fields
        let reader = reader(with: fields)
        if plain.settings.sharesForwarded {
            if let shared = try await shared(target, reader) { return shared }
        } else if fields.fields.isEmpty {
            return target
        }
        return target.keyed(by: reader)
    }

    /// A digest of the reader's fields, which cannot be guessed without the key of the store.
    private func reader(with fields: HeaderList) -> String {
        let text = fields.fields.map { "\(FieldText.lowered($0.name)):\($0.value)" }.joined(separator: "\n")
        return context.store.catalog.keyedDigest(of: "forwarded fields\n" + text)
    }

    /// The asset of the version that the upstream shows this reader. Nil: the version has no strong validator.
    private func shared(_ target: AssetTarget, _ reader: String) async throws(CacheError) -> AssetTarget? {
        let subject = AccessProofs.Subject(asset: target.id, reader: reader)
        if let known = proofs.version(for: subject, at: context.wallClock.now()) {
            let shared = target.keyed(by: known)
            // Another reader may have started a new generation of the asset since the proof.
            if try await holds(known, shared) { return shared }
        }
        let version = try await calls.run(target.key + " " + reader) { () async throws(CacheError) in
            let asked = context.wallClock.now()
            guard let version = try await askVersion(of: target) else { return nil }
            proofs.add(version, for: subject, at: asked)
            return version
        }
        guard let version else { return nil }
        let shared = target.keyed(by: version)
        return try await holds(version, shared) ? shared : nil
    }

    /// The version in the response to a request for one byte; nil without a strong validator. Throws the upstream's
    /// refusal.
    private func askVersion(of target: AssetTarget) async throws(CacheError) -> String? {
        var probe = HeadProbe(target: target, context: context, priority: .live)
        let head: UpstreamHead
        do {
            head = try await probe.ask(.get, for: .closed(0..<1))
        } catch {
            throw error.error
        }
        if head.status >= 400, head.status != 416 {
            throw CacheError(
                .upstreamRefused(
                    status: head.status,
                    .init(challenges: Challenges.of(head, toReaderOf: target.readerURL))),
                "The upstream answered \(head.status) to the reader's own credentials.")
        }
        let settings = target.settings
        let expectation = WindowExpectation(
            window: .closed(0..<1), known: nil, now: context.wallClock.now(), freshness: settings.freshness,
            trust: settings.trustValidators, storeRules: settings.storeRules, path: target.path)
        switch ResponseVerdict.judge(head, expecting: expectation) {
        case .window(_, let generation), .whole(let generation), .changed(let generation, _):
            return version(of: generation)
        case .unchanged, .unsatisfiable, .refused: return nil
        }
    }

    /// The name of a version: a digest of its strong validator and its length. Nil without them.
    private func version(of generation: Generation) -> String? {
        guard let strong = generation.validators.strong, let length = generation.length else { return nil }
        return context.store.catalog.keyedDigest(of: "version\n\(length)\n\(strong)")
    }

    /// Whether the cached generation of the asset, if there is one, is of this version.
    private func holds(_ version: String, _ target: AssetTarget) async throws(CacheError) -> Bool {
        var known = context.openAssets[target.id]?.record?.generation
        if known == nil { known = try await context.store.catalog.asset(target.id)?.record.generation }
        return known.map { self.version(of: $0) == version } ?? true
    }
}

extension AssetTarget {
    /// The same content under a key that ends with the first 16 digits of a digest.
    fileprivate func keyed(by digest: String) -> AssetTarget {
        let key = key + " " + String(digest.prefix(16))
        return AssetTarget(
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
