package import CacheCore

extension AssetCache {
    /// Finds out what an asset is: from what is known while that is fresh, else by `HEAD`, else by a one-byte range.
    ///
    /// From now on the asset is fetched from the reference's URL, as signed URLs change. The answer is kept: a later read
    /// begins with it. `refresh` asks the upstream in any case; an answer with the same validator keeps every extent.
    ///
    /// Throws `ProbeFailure` with the upstream's status, or which time-out it was.
    package func probe(
        _ reference: AssetReference, timeout: Duration, refresh: Bool, priority: TransferPriority = .live
    ) async throws(ProbeFailure) -> ProbeReport {
        do {
            let target = try await resolve(reference)
            let asset = try await open(target)
            defer { context.openAssets.release(asset) }
            if !refresh, let record = asset.record, asset.isFresh(at: context.wallClock.now()) {
                asset.rebind()
                return report(on: asset, record, method: .cached, head: nil)
            }
            return try await withDeadline(timeout, .total, clock: clock) { [self] () async throws(CacheError) in
                try await ask(
                    asset, HeadQuestion(target: target, context: context, priority: priority), within: timeout)
            }
        } catch {
            throw error.cause as? ProbeFailure ?? ProbeFailure(error: error)
        }
    }

    /// Asks by `HEAD`, then by a range of one byte, then by a plain `GET` that is cut after its head: some upstreams answer
    /// `GET` alone, some refuse ranges. `HEAD` has half of the time.
    private func ask(
        _ asset: OpenAsset, _ asked: HeadQuestion, within timeout: Duration
    ) async throws(CacheError) -> ProbeReport {
        var question = asked
        if let head = await head(&question, within: timeout / 2),
            case .whole(let generation) = judge(head, of: asset, window: .whole), isBelievable(generation, of: asset)
        {
            return try report(asset, generation, method: .head, head: head)
        }
        let first = UpstreamRequest.Window.first
        var head = try await ask(.get, first, &question)
        var judgement = judge(head, of: asset, window: first)
        if judgement.refusesRange {
            head = try await ask(.get, .whole, &question)
            judgement = judge(head, of: asset, window: .whole)
        }
        switch judgement {
        case .window(_, let generation), .whole(let generation), .unchanged(let generation),
            .changed(let generation, _):
            return try report(asset, generation, method: .get, head: head)
        case .unsatisfiable(let length):
            guard length == 0 else {
                throw CacheError(.upstreamProtocol, "The upstream refused the first byte of an asset that has bytes.")
            }
            let expectation = expectation(of: asset, window: first)
            return try report(
                asset, HeadJudgement.emptyAsset(head, expecting: expectation), method: .get, head: head)
        case .refused(let error):
            throw CacheError(
                error.code, error.message, cause: ProbeFailure(error: error, timings: head.timings))
        }
    }

    /// Nil where it is not answered in time.
    private func head(_ question: inout HeadQuestion, within limit: Duration) async -> UpstreamHead? {
        let asked = question
        let answer = try? await withDeadline(limit, .total, clock: clock) {
            [self] () async throws(CacheError) -> (UpstreamHead, HeadQuestion) in
            var question = asked
            return (try await ask(.head, .whole, &question), question)
        }
        if let answer { question = answer.1 }
        return answer?.0
    }

    private func ask(
        _ method: UpstreamRequest.Method, _ window: UpstreamRequest.Window, _ question: inout HeadQuestion
    ) async throws(CacheError) -> UpstreamHead {
        do {
            return try await question.ask(method, for: window)
        } catch {
            throw CacheError(error.error.code, error.error.message, cause: error)
        }
    }

    /// Whether an answer to `HEAD` may be trusted. Some handlers announce no length, or that of another coding, and leave
    /// validators out: a contradiction to bytes on disk is checked by `GET`.
    private func isBelievable(_ generation: Generation, of asset: OpenAsset) -> Bool {
        let (known, isBare) = asset.look { ($0.record?.generation, $0.isBare) }
        guard generation.length ?? 0 > 0 else { return false }
        guard known?.validators.strong == nil || generation.validators.strong != nil else { return false }
        return isBare || known?.length == nil || generation.length == known?.length
    }

    /// Keeps the description: the same generation confirmed, or the next one opened. One that neither proves nor denies that
    /// the bytes on disk are the upstream's leaves them stale.
    private func report(
        _ asset: OpenAsset, _ generation: Generation, method: ProbeReport.Method, head: UpstreamHead
    ) throws(CacheError) -> ProbeReport {
        let (known, isBare) = asset.look { ($0.record, $0.isBare) }
        let trust = asset.target.settings.trustValidators
        var generation = generation
        if let known, !isBare {
            let isSame = generation.isSameRepresentation(as: known.generation, trusting: trust)
            if isSame || generation.weaklyMatches(known.generation) {
                generation = generation.confirming(known.generation)
            } else if generation.isDescribed(as: known.generation) {
                asset.expire()
                return report(on: asset, asset.record ?? known, method: method, head: head)
            } else {
                var next = known
                next.generation = generation
                next.generation.number = known.generation.number + 1
                context.openAssets.supersede(asset, by: next.generation)
                return report(on: asset, next, method: method, head: head, cachedBytes: 0)
            }
        } else if let known {
            generation.acceptsRanges = known.generation.acceptsRanges ?? generation.acceptsRanges
        }
        asset.confirm(generation)
        guard let record = asset.record else {
            throw CacheError(.internal, "A probed asset has no record.")
        }
        return report(on: asset, record, method: method, head: head)
    }

    private func judge(_ head: UpstreamHead, of asset: OpenAsset, window: UpstreamRequest.Window) -> HeadJudgement {
        HeadJudgement.judge(head, expecting: expectation(of: asset, window: window))
    }

    /// A probe compares afterwards: what it is told stands for itself.
    private func expectation(of asset: OpenAsset, window: UpstreamRequest.Window) -> WindowExpectation {
        WindowExpectation(
            window: window, known: nil, now: context.wallClock.now(), freshness: asset.freshness,
            trust: asset.target.settings.trustValidators, storeRules: asset.target.settings.storeRules,
            path: asset.target.path)
    }

    private func report(
        on asset: OpenAsset, _ record: AssetRecord, method: ProbeReport.Method, head: UpstreamHead?,
        cachedBytes: Int64? = nil
    ) -> ProbeReport {
        let (path, url) = (asset.target.path, asset.target.url.withoutQuery)
        return ProbeReport(
            assetID: asset.id, key: record.key, url: url, finalURL: head?.finalURL.withoutQuery ?? url,
            generation: record.generation,
            uti: MediaType.uniformTypeIdentifier(type: record.generation.contentType, path: path),
            cachedBytes: cachedBytes ?? asset.look { $0.ledger.extents.byteCount }, method: method,
            upstreamStatus: head?.status, redirects: head?.redirects ?? 0, timings: head?.timings ?? TransferTimings())
    }
}

extension String {
    /// A URL's query may be a signature: it is not shown.
    var withoutQuery: String { split(separator: "?", maxSplits: 1).first.map(String.init) ?? self }
}
