import CacheCore
import CacheStore
import CacheTracing

/// The answers of the upstream to readers, for assets that all values of the forwarded fields share.
///
/// An answer is the response of the upstream to a request for one byte with the reader's own fields. It holds for a
/// minute. Of too many answers the least recently used ones are dropped.
final class AccessProofs: Sendable {
    /// An asset and a reader.
    struct Subject: Hashable, Sendable {
        let asset: AssetID
        /// A keyed digest of the reader's fields.
        let reader: String
    }

    /// An answer of the upstream.
    enum Answer: Sendable {
        /// The version that the reader was shown.
        case version(String)
        /// The version has no strong validator, so that its bytes cannot be shared.
        case unnamed
        /// The reader has no right to the asset.
        case refused(CacheError)
    }

    /// An answer with its end and its number; it differs from those of all others.
    struct Entry: Sendable {
        let answer: Answer
        let end: Timestamp
        let number: Int
    }

    private struct State {
        var granted: BoundedTable<Subject, Entry>
        /// Apart, so that invented credentials displace no granted ones.
        var refused: BoundedTable<Subject, Entry>
        var count = 0
    }

    /// How long an answer holds.
    static let lifetime = Duration.seconds(60)
    /// Guards the answers.
    private let state: OrderedMutex<State>

    init(limit: Int = 65_536) {
        state = OrderedMutex(
            .leaf, State(granted: BoundedTable(capacity: limit), refused: BoundedTable(capacity: limit)))
    }

    /// The answer to the reader; nil if there is none, or if it has ended.
    func answer(to subject: Subject, at now: Timestamp) -> Entry? {
        state.withLock { state in
            (state.granted[subject] ?? state.refused[subject]).flatMap { now < $0.end ? $0 : nil }
        }
    }

    /// Records an answer to a request that was sent at `now`.
    @discardableResult
    func add(_ answer: Answer, to subject: Subject, at now: Timestamp) -> Entry {
        state.withLock { state in
            state.count += 1
            let entry = Entry(answer: answer, end: now + Self.lifetime, number: state.count)
            let isRefused = if case .refused = answer { true } else { false }
            state.granted[subject] = isRefused ? nil : entry
            state.refused[subject] = isRefused ? entry : nil
            return entry
        }
    }
}

/// Readers' own credentials for the upstream (`forward`).
struct ForwardedFields: Sendable {
    let catalog: Catalog
    let openAssets: OpenAssets
    let upstreams: Upstreams
    let tracer: Tracer
    let wallClock: any WallClock
    private let proofs = AccessProofs()
    /// The requests for proofs in progress.
    private let calls = SharedCalls<AccessProofs.Entry>()

    init(of context: EngineContext) {
        catalog = context.store.catalog
        openAssets = context.openAssets
        upstreams = context.upstreams
        tracer = context.tracer
        wallClock = context.wallClock
    }

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

    /// A digest of the reader's fields; they cannot be guessed without the key of the store.
    private func reader(with fields: HeaderList) -> String {
        let text = fields.fields.map { "\(FieldText.lowered($0.name)):\($0.value)" }.joined(separator: "\n")
        return catalog.keyedDigest(of: "forwarded fields\n" + text)
    }

    /// The asset of the version that the upstream shows this reader. Nil: the version has no strong validator. Throws
    /// the refusal of the upstream, repeated for a minute.
    private func shared(_ target: AssetTarget, _ reader: String) async throws(CacheError) -> AssetTarget? {
        let subject = AccessProofs.Subject(asset: target.id, reader: reader)
        let known = proofs.answer(to: subject, at: wallClock.now())
        // Another reader may have started a new generation of the asset since the answer.
        let found = if let known { try await lookUp(known.answer, target) } else { LookUp.outdated }
        switch found {
        case .shared(let target): return target
        case .unshared: return nil
        case .outdated: break
        }
        let answered = try await calls.run(target.key + " " + reader) { () async throws(CacheError) in
            let asked = wallClock.now()
            // A call that ended after the look-up may have brought a newer answer.
            if let newer = proofs.answer(to: subject, at: asked), newer.number != known?.number { return newer }
            return proofs.add(try await ask(target), to: subject, at: asked)
        }
        if case .shared(let target) = try await lookUp(answered.answer, target) { return target }
        return nil
    }

    /// The asset that an answer leads to.
    private enum LookUp {
        case shared(AssetTarget)
        /// The bytes cannot be shared.
        case unshared
        /// The cached generation of the asset is of another version.
        case outdated
    }

    /// Looks up the asset of an answer. Throws a refusal.
    private func lookUp(_ answer: AccessProofs.Answer, _ target: AssetTarget) async throws(CacheError) -> LookUp {
        switch answer {
        case .refused(let error): throw error
        case .unnamed: return .unshared
        case .version(let version):
            let shared = target.keyed(by: version)
            return try await holds(version, shared) ? .shared(shared) : .outdated
        }
    }

    /// The answer of the upstream to the reader. Throws the error of a request without an answer.
    private func ask(_ target: AssetTarget) async throws(CacheError) -> AccessProofs.Answer {
        do throws(CacheError) {
            return try await askVersion(of: target).map { .version($0) } ?? .unnamed
        } catch {
            guard case .upstreamRefused(let status, _) = error.code, [401, 403].contains(status) else { throw error }
            return .refused(error)
        }
    }

    /// The version in the response to a request for one byte; nil without a strong validator. Throws the upstream's
    /// refusal.
    private func askVersion(of target: AssetTarget) async throws(CacheError) -> String? {
        var probe = HeadProbe(target: target, over: upstreams, tracer: tracer, priority: .live)
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
            window: .closed(0..<1), known: nil, now: wallClock.now(), freshness: settings.freshness,
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
        return catalog.keyedDigest(of: "version\n\(length)\n\(strong)")
    }

    /// Whether the cached generation of the asset, if there is one, is of this version.
    private func holds(_ version: String, _ target: AssetTarget) async throws(CacheError) -> Bool {
        var known = openAssets[target.id]?.record?.generation
        if known == nil { known = try await catalog.asset(target.id)?.record.generation }
        return known.map { self.version(of: $0) == version } ?? true
    }
}

extension AssetTarget {
    /// The same content under a key that ends with the first 16 digits of a digest.
    fileprivate func keyed(by digest: String) -> AssetTarget {
        let key = key + " " + String(digest.prefix(16))
        return AssetTarget(
            id: AssetID(naming: key), key: key, originName: originName, settings: settings, url: url, path: path,
            variant: variant, forwarded: forwarded, cdnLoop: cdnLoop, storesNothing: storesNothing)
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
