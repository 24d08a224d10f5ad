package import CacheCore
import CacheStore

extension AssetCache {
    /// What `read` would do: the same steps by the same planner on a copy of the asset. Not a byte is fetched, nothing is
    /// opened, kept or counted.
    package func explain(
        _ reference: AssetReference, request: ContentRequest
    ) async throws(CacheError) -> Explanation {
        var target = try await resolve(reference)
        var attempt = attempt(request, at: target, ReadOptions())
        if let refusal = keptRefusal(of: target, attempt) { return negative(target, refusal) }
        for _ in 0..<4 {
            let asset = try await copy(of: target)
            guard let variant = chosenVariant(of: asset, attempt) else { return explanation(asset, attempt) }
            target = variant
            attempt.forwarding = .varyMiss
        }
        throw CacheError(.assetChanged, "The reader's fields choose another representation each time.")
    }

    /// The asset as the next reader would find it; nobody else's, so that nothing that is done to it is done.
    private func copy(of target: AssetTarget) async throws(CacheError) -> OpenAsset {
        if let open = context.openAssets[target.id] { return open.copy(for: target) }
        let isRemoving = context.openAssets.moment(for: target.id, context.commits).isRemoving
        let stored = isRemoving ? nil : try await context.store.catalog.asset(target.id)
        if let open = context.openAssets[target.id] { return open.copy(for: target) }
        guard let stored else { return OpenAsset(target: target, context: context) }
        return OpenAsset(
            target: target, record: stored.record, extents: stored.extents, file: nil, context: context)
    }

    private func explanation(_ known: OpenAsset, _ attempt: ReadAttempt) -> Explanation {
        let asked = attempt.directives
        guard asked.noStore || asked.onlyIfCached, !isServedUnasked(known, attempt) else {
            return explanation(of: known, attempt)
        }
        guard asked.onlyIfCached else {
            return explanation(of: OpenAsset(target: known.target.unkept, context: context), attempt)
        }
        var explanation = explanation(of: known, attempt)
        explanation.answer = Explanation.Answer(requestClass: .error, code: .notCached)
        (explanation.forecast, explanation.joined) = (FillForecast(), [])
        return explanation
    }

    private func explanation(of asset: OpenAsset, _ attempt: ReadAttempt) -> Explanation {
        guard let generation = asset.record?.generation else { return unknown(asset, attempt) }
        let source = source(of: asset.target)
        let plan = plan(attempt.request, generation, of: asset)
        var standing = standing(of: asset, attempt)
        var forecast = asset.forecast(of: plan.neededRanges, attempt, asking: standing.question)
        let isUnconfirmed =
            standing.mustConfirm && source.refusal != nil && forecast.requests.contains { $0.isDescription }
        let standsIn = isUnconfirmed && generation.servesErrors(at: attempt.began, under: standing.rules)
        if standsIn {
            standing = Standing(isKnown: true, isSettling: false, use: .stale, rules: standing.rules)
            forecast = asset.forecast(of: plan.neededRanges, attempt)
        }
        let cached = asset.look { $0.ledger.lookUp(plan.neededRanges).cached }
        let outcome = outcome(attempt, plan, generation, cached: cached, standing, keeps: asset.target)
        var explanation = Explanation(
            of: asset.target, source: source,
            standing: self.standing(of: generation, standing, at: attempt.began, standsIn: standsIn),
            answer: Explanation.Answer(
                status: plan.status, requestClass: outcome.requestClass, contentRange: plan.headers["Content-Range"],
                contentLength: plan.contentLength))
        explanation.length = generation.length
        explanation.wanted = plan.neededRanges
        explanation.cached = cached
        explanation.forecast = forecast
        explanation.joined = asset.numbers(of: forecast.joined)
        explanation.refuse(isAtOnce: isUnconfirmed && !standsIn || explanation.asksForItsFirstByte)
        return explanation
    }

    private func source(of target: AssetTarget) -> Explanation.Source {
        let addresses = context.addresses(of: target)
        let (place, whyNot) = context.health.foresee(target, of: addresses.count)
        return Explanation.Source(
            url: place.map { addresses[$0].withoutQuery }, mirrors: target.settings.mirrors.map(\.withoutQuery),
            whyNot: whyNot)
    }

    /// An asset that nobody has described: its first request is all that can be told.
    private func unknown(_ asset: OpenAsset, _ attempt: ReadAttempt) -> Explanation {
        var forecast = asset.forecast(of: [], attempt)
        if attempt.request.isHead || attempt.request.asksForNoMore(than: attempt.opening) {
            forecast.requestCount = forecast.requests.count
            forecast.requestedBytes = forecast.requests.isEmpty ? 0 : attempt.opening.knownLength
        }
        var explanation = Explanation(
            of: asset.target, source: source(of: asset.target),
            standing: Explanation.Standing(use: .unknown, reason: "Nobody has fetched any of it yet."),
            answer: Explanation.Answer(requestClass: asset.target.keepsNothing ? .bypass : .miss))
        explanation.forecast = forecast
        explanation.joined = asset.numbers(of: forecast.joined)
        explanation.refuse(isAtOnce: true)
        return explanation
    }

    private func negative(_ target: AssetTarget, _ refusal: ReadFailure) -> Explanation {
        let left = refusal.outcome.timeToLive ?? .zero
        return Explanation(
            of: target, source: source(of: target),
            standing: Explanation.Standing(
                use: .fresh, freshUntil: context.wallClock.now() + left, age: refusal.age),
            answer: Explanation.Answer(requestClass: .negative, code: refusal.error.code))
    }

    private func standing(
        of generation: Generation, _ standing: Standing, at now: Timestamp, standsIn: Bool
    ) -> Explanation.Standing {
        let since = generation.freshUntil.map { "It has been stale since \(RFC3339.format($0))" }
        let stale = since ?? "It has no lifetime: the upstream gave it none, or an administrator has ended it"
        let (use, reason): (Explanation.Use, String?) =
            switch standing.use {
            case .fresh, nil: (.fresh, nil)
            case .stale where standsIn: (.stale, stale + "; it stands in, as the upstream may not be asked.")
            case .stale: (.stale, stale + "; the request accepts that.")
            case .staleWhileRevalidate: (.staleWhileRevalidate, stale + "; it is served and confirmed behind.")
            case .confirm where generation.isFresh(at: now): (.confirm, "The request asks for a younger answer.")
            case .confirm: (.confirm, stale + "; the upstream is asked first.")
            case .confirmOnRequest: (.confirm, "The request asks for a confirmation.")
            }
        return Explanation.Standing(
            use: use, freshUntil: generation.freshUntil, age: generation.age(at: now), reason: reason)
    }
}

extension Explanation {
    fileprivate init(of target: AssetTarget, source: Source, standing: Standing, answer: Answer) {
        self.init(
            assetID: target.id, key: target.key, origin: target.originName, source: source, standing: standing,
            answer: answer)
    }

    /// Whether one of the requests to come brings the first byte of the answer.
    fileprivate var asksForItsFirstByte: Bool {
        guard let first = wanted.first?.lowerBound, cached.run(containing: first) == nil else { return false }
        return forecast.requests.contains { $0 == .whole || $0.range?.contains(first) == true }
    }

    /// Takes the requests back where nobody may be asked; the answer too, where it waits for one of them: `isAtOnce`.
    fileprivate mutating func refuse(isAtOnce: Bool) {
        guard let refusal = source.refusal, !forecast.requests.isEmpty else { return }
        forecast = FillForecast()
        guard isAtOnce else { return }
        answer = Answer(requestClass: .error, code: refusal.code)
        joined = []
    }
}

extension Standing {
    /// What a reader makes the upstream be asked besides bytes.
    fileprivate var question: FillForecast.Question {
        if mustConfirm { return .confirm }
        return use == .staleWhileRevalidate ? .confirmBehind : .none
    }
}

extension ContentRequest {
    /// Whether the first request for an unknown asset brings all that is asked for.
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
    /// How many bytes it brings at most; nil: nobody knows.
    fileprivate var knownLength: Int64? {
        switch self {
        case .closed(let range): range.length
        case .suffix(let count): count
        case .whole, .from: nil
        }
    }
}

extension OpenAsset {
    /// The same as another object, without its readers and its file.
    fileprivate func copy(for target: AssetTarget) -> OpenAsset {
        let (record, ledger, fills) = look { ($0.record, $0.ledger.withoutReaders, $0.fills) }
        let copy = OpenAsset(target: target, context: context)
        copy.change { state in
            (state.record, state.ledger, state.fills) = (record, ledger, fills)
            return ((), [])
        }
        return copy
    }

    fileprivate func forecast(
        of ranges: [ByteRange], _ attempt: ReadAttempt, asking question: FillForecast.Question = .none
    ) -> FillForecast {
        look { $0.ledger.forecast(of: ranges, opening: attempt.opening, asking: question) }
    }

    /// The numbers that the fills have in the book.
    fileprivate func numbers(of fills: [FillLedger.FillID]) -> [UInt64] {
        let transfers = look { state in fills.compactMap { state.fills[$0] } }
        return transfers.compactMap { context.fillBook.number(of: $0) }
    }
}
