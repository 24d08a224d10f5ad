package import CacheCore
import CacheStore

extension ContentReader {
    /// Predicts the result of `read` without side effects: the same planner runs on a copy of the asset. Nothing is
    /// fetched, opened, stored or counted.
    ///
    /// `ranges`: the bytes that are read instead of those of the request; nil: those of the request.
    ///
    /// Throws the errors of resolving the reference and of reading the catalog, and `.assetChanged` if the variant
    /// selection does not end.
    package func explain(
        _ reference: AssetReference, request: ContentRequest, ranges: [ByteRange]? = nil
    ) async throws(CacheError) -> Explanation {
        var target = try await resolver.resolve(reference)
        var attempt = attempt(request, at: target, ReadOptions())
        if let refusal = keptRefusal(of: target, attempt) { return negative(target, refusal) }
        for _ in 0..<4 {
            let asset = try await copy(of: target)
            asset.reconsiderRanges()
            guard let variant = chosenVariant(of: asset, attempt) else { return explanation(asset, attempt, ranges) }
            target = variant
            attempt.forwarding = .varyMiss
        }
        throw CacheError(.assetChanged, "The request's header fields select a different variant in each round (Vary).")
    }

    /// The read of a playlist and of its files for a span of time, as ``explain(_:request:ranges:)``. The range fields of
    /// the request are replaced by the ranges of each file.
    package func explain(
        _ reference: AssetReference, request: ContentRequest, files: [MediaNeeds.File]
    ) async throws(CacheError) -> Explanation {
        var explanation = try await explain(reference, request: request)
        var explained: [Explanation.File] = []
        for file in files {
            do throws(CacheError) {
                if let error = file.error { throw error }
                var request = request
                request.headers.remove("Range")
                if let range = file.ranges?.first, file.ranges?.count == 1 {
                    request.headers.set("Range", range.fieldValue)
                }
                let read = try await explain(file.reference, request: request, ranges: file.ranges)
                explained.append(.init(time: file.time, result: .success(read)))
            } catch {
                explained.append(.init(time: file.time, result: .failure(error)))
            }
        }
        explanation.files = explained
        return explanation
    }

    /// A private copy of the asset in the state that the next reader would find. Changes to it have no effect on the
    /// cache.
    private func copy(of target: AssetTarget) async throws(CacheError) -> OpenAsset {
        if let open = context.openAssets[target.id] { return open.copy(for: target) }
        // The table is checked again after the catalog was read, because the asset may have been opened meanwhile.
        // While its removal is in progress its row is ignored.
        let isRemoving = context.openAssets.moment(for: target.id, context.commits).isRemoving
        let stored = isRemoving ? nil : try await context.store.catalog.asset(target.id)
        if let open = context.openAssets[target.id] { return open.copy(for: target) }
        guard let stored else { return OpenAsset(target: target, context: context) }
        return OpenAsset(
            target: target, record: stored.record, extents: stored.extents, file: nil, context: context)
    }

    /// Applies the request directives `no-store` and `only-if-cached`, which matter only if the response is not served
    /// from disk alone.
    private func explanation(
        _ known: OpenAsset, _ attempt: ReadAttempt, _ ranges: [ByteRange]?
    ) -> Explanation {
        let asked = attempt.directives
        guard asked.noStore || asked.onlyIfCached, !isServedWithoutRequest(known, attempt) else {
            return explanation(of: known, attempt, ranges)
        }
        guard asked.onlyIfCached else {
            return explanation(of: OpenAsset(target: known.target.unstored, context: context), attempt, ranges)
        }
        var explanation = explanation(of: known, attempt, ranges)
        explanation.answer = Explanation.Answer(requestClass: .error, code: .notCached)
        (explanation.forecast, explanation.joined) = (FillForecast(), [])
        return explanation
    }

    /// The explanation for an asset as it is. If the upstream cannot be asked and `stale-if-error` permits it, a stale
    /// response is predicted.
    private func explanation(
        of asset: OpenAsset, _ attempt: ReadAttempt, _ ranges: [ByteRange]?
    ) -> Explanation {
        guard let generation = asset.record?.generation else { return unknown(asset, attempt) }
        let source = source(of: asset.target)
        let plan = plan(attempt.request, generation, of: asset)
        let needed = ranges ?? plan.neededRanges
        var freshness = freshnessDecision(of: asset, attempt)
        var forecast = asset.forecast(of: needed, attempt, asking: freshness.question)
        let isUnconfirmed =
            freshness.mustConfirm && source.refusal != nil && forecast.requests.contains { $0.isDescription }
        let standsIn = isUnconfirmed && generation.servesErrors(at: attempt.began, under: freshness.rules)
        if standsIn {
            freshness = FreshnessDecision(isKnown: true, isSettling: false, use: .stale, rules: freshness.rules)
            forecast = asset.forecast(of: needed, attempt)
        }
        let cached = asset.look { $0.ledger.lookUp(needed).cached }
        let outcome = outcome(attempt, plan, generation, cached: cached, freshness, keeps: asset.target)
        var explanation = Explanation(
            of: asset.target, source: source,
            freshness: self.freshness(of: generation, freshness, at: attempt.began, standsIn: standsIn),
            answer: Explanation.Answer(
                status: plan.status, requestClass: outcome.requestClass, contentRange: plan.headers["Content-Range"],
                contentLength: plan.contentLength))
        explanation.length = generation.length
        explanation.wanted = needed
        explanation.cached = cached
        explanation.forecast = forecast
        explanation.joined = asset.numbers(of: forecast.joined)
        explanation.refuse(isAtOnce: isUnconfirmed && !standsIn || explanation.asksForItsFirstByte)
        return explanation
    }

    /// The address that the next request would use, by the state of the circuit breakers.
    private func source(of target: AssetTarget) -> Explanation.Source {
        let mirrors = target.settings.mirrors.map(\.withoutQuery)
        do { _ = try target.authorized(by: target.forwarded) } catch {
            return Explanation.Source(mirrors: mirrors, whyNot: error)
        }
        let addresses = context.upstreams.addresses(of: target)
        let (place, whyNot) = context.upstreams.health.foresee(target, of: addresses.count)
        let isShared = target.settings.forwarded.isEmpty && !target.storesNothing
        return Explanation.Source(
            url: place.map { addresses[$0].withoutQuery }, mirrors: mirrors,
            peers: isShared
                ? context.peers.candidates(for: target.id, isEncrypted: target.settings.isEncrypted) : [],
            whyNot: whyNot)
    }

    /// The explanation for an asset that the upstream has not described yet: only the first request can be predicted.
    private func unknown(_ asset: OpenAsset, _ attempt: ReadAttempt) -> Explanation {
        var forecast = asset.forecast(of: [], attempt)
        if attempt.request.isHead || attempt.request.asksForNoMore(than: attempt.opening) {
            forecast.requestCount = forecast.requests.count
            forecast.requestedBytes = forecast.requests.isEmpty ? 0 : attempt.opening.knownLength
        }
        var explanation = Explanation(
            of: asset.target, source: source(of: asset.target),
            freshness: Explanation.Freshness(use: .unknown, reason: "No byte of the asset has been fetched yet."),
            answer: Explanation.Answer(requestClass: asset.target.storesNothing ? .bypass : .miss))
        explanation.forecast = forecast
        explanation.joined = asset.numbers(of: forecast.joined)
        explanation.refuse(isAtOnce: true)
        return explanation
    }

    /// The explanation for an asset with a fresh negative cache entry.
    private func negative(_ target: AssetTarget, _ refusal: ReadFailure) -> Explanation {
        let left = refusal.outcome.timeToLive ?? .zero
        return Explanation(
            of: target, source: source(of: target),
            freshness: Explanation.Freshness(
                use: .fresh, freshUntil: context.wallClock.now() + left, age: refusal.age),
            answer: Explanation.Answer(requestClass: .negative, code: refusal.error.code))
    }

    /// Converts the decision to its public form, with a sentence that gives the reason. `standsIn`: a stale response
    /// is served because the upstream is unavailable.
    private func freshness(
        of generation: Generation, _ freshness: FreshnessDecision, at now: Timestamp, standsIn: Bool
    ) -> Explanation.Freshness {
        let since = generation.freshUntil.map { "The response has been stale since \(RFC3339.format($0))" }
        let stale = since ?? "The response has no lifetime: the upstream gave it none, or an administrator has ended it"
        let (use, reason): (Explanation.Use, String?) =
            switch freshness.use {
            case .fresh, nil: (.fresh, nil)
            case .stale where standsIn: (.stale, stale + "; it is served because the upstream is unavailable.")
            case .stale: (.stale, stale + "; the request accepts a stale response.")
            case .staleWhileRevalidate: (.staleWhileRevalidate, stale + "; it is served while it is revalidated.")
            case .confirm where generation.isFresh(at: now): (.confirm, "The request demands a fresher response.")
            case .confirm: (.confirm, stale + "; it is revalidated before it is served.")
            case .confirmOnRequest: (.confirm, "The request demands revalidation.")
            }
        return Explanation.Freshness(
            use: use, freshUntil: generation.freshUntil, age: generation.age(at: now), reason: reason)
    }
}

extension Explanation {
    /// An explanation of a read of `target`, without a forecast.
    fileprivate init(of target: AssetTarget, source: Source, freshness: Explanation.Freshness, answer: Answer) {
        self.init(
            assetID: target.id, key: target.key, origin: target.originName, source: source, freshness: freshness,
            answer: answer)
    }

    /// Whether one of the predicted requests brings the first byte of the response.
    fileprivate var asksForItsFirstByte: Bool {
        guard let first = wanted.first?.lowerBound, cached.run(containing: first) == nil else { return false }
        return forecast.requests.contains { $0 == .whole || $0.range?.contains(first) == true }
    }

    /// Removes the predicted requests if no address may be asked. `isAtOnce`: the response waits for one of these
    /// requests, so the read fails, too.
    fileprivate mutating func refuse(isAtOnce: Bool) {
        guard let refusal = source.refusal, !forecast.requests.isEmpty else { return }
        forecast = FillForecast()
        guard isAtOnce else { return }
        answer = Answer(requestClass: .error, code: refusal.code)
        joined = []
    }
}

extension FreshnessDecision {
    /// The question to the upstream, besides bytes, that a read causes.
    fileprivate var question: FillForecast.Revalidation {
        if mustConfirm { return .confirm }
        return use == .staleWhileRevalidate ? .confirmBehind : .none
    }
}

extension ContentRequest {
    /// Whether the first request for an unknown asset brings all bytes that the client requests.
    fileprivate func asksForNoMore(than opening: UpstreamRequest.Window) -> Bool {
        guard case .ranges(let specs) = RangeHeader.parse(headers.combined("Range")), specs.count == 1 else {
            return false
        }
        return switch (specs[0], opening) {
        case (.closed(let first, let last), .closed(let window)): first..<(last + 1) == window
        case (.suffix(let wanted), .suffix(let count)): wanted == count
        default: false
        }
    }
}

extension UpstreamRequest.Window {
    /// The maximum size in bytes of the window's content; nil if only the upstream knows it.
    fileprivate var knownLength: Int64? {
        switch self {
        case .closed(let range): range.length
        case .suffix(let count): count
        case .whole, .from: nil
        }
    }
}

extension OpenAsset {
    /// A copy with the same record, extents and fills, without readers and without the file.
    fileprivate func copy(for target: AssetTarget) -> OpenAsset {
        let (record, ledger, fills) = look { ($0.record, $0.ledger.withoutReaders, $0.fills) }
        let copy = OpenAsset(target: target, context: context)
        copy.change { state in
            (state.record, state.ledger, state.fills) = (record, ledger, fills)
            return ((), [])
        }
        return copy
    }

    /// The ledger's forecast for one more reader of `ranges`, in order.
    fileprivate func forecast(
        of ranges: [ByteRange], _ attempt: ReadAttempt, asking question: FillForecast.Revalidation = .none
    ) -> FillForecast {
        look { $0.ledger.forecast(of: ranges, opening: attempt.opening, asking: question) }
    }

    /// The public numbers of the fills, from the fill registry.
    fileprivate func numbers(of fills: [FillLedger.FillID]) -> [UInt64] {
        let transfers = look { state in fills.compactMap { state.fills[$0] } }
        return transfers.compactMap { context.fillRegistry.number(of: $0) }
    }
}
