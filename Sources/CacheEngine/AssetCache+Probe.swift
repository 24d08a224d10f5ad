package import CacheCore

extension AssetCache {
    /// Finds out what an asset is: from what is known while that is fresh, else by `HEAD`, else by a one-byte range.
    ///
    /// The answer is kept: a later read begins with it. `refresh` asks the upstream in any case; an answer with the same
    /// validator keeps every extent. Throws `ProbeFailure` with the upstream's status, or which time-out it was.
    package func probe(
        _ reference: AssetReference, timeout: Duration, refresh: Bool
    ) async throws(ProbeFailure) -> ProbeReport {
        do {
            let target = try await resolve(reference)
            let asset = try await open(target)
            defer { context.openAssets.release(asset) }
            if !refresh, let record = asset.record, record.generation.isFresh(at: context.wallClock.now()) {
                return report(on: asset, record, method: .cached, head: nil)
            }
            return try await withDeadline(timeout, .total, clock: clock) { [self] () async throws(CacheError) in
                try await ask(asset, target)
            }
        } catch {
            throw error.cause as? ProbeFailure ?? ProbeFailure(error: error)
        }
    }

    private func ask(_ asset: OpenAsset, _ target: AssetTarget) async throws(CacheError) -> ProbeReport {
        var question = HeadQuestion(target: target, context: context)
        if let head = try? await question.ask(.head, for: .whole),
            case .whole(let generation) = judge(head, of: asset, window: .whole), isBelievable(generation, of: asset)
        {
            return try report(asset, generation, method: .head, head: head)
        }
        // The upstream refuses or garbles HEAD: the first byte tells the same.
        let window = UpstreamRequest.Window.closed(0..<1)
        let head: UpstreamHead
        do {
            head = try await question.ask(.get, for: window)
        } catch {
            throw CacheError(error.error.code, error.error.message, cause: error)
        }
        switch judge(head, of: asset, window: window) {
        case .window(_, let generation), .whole(let generation), .unchanged(let generation), .changed(let generation):
            return try report(asset, generation, method: .get, head: head)
        case .unsatisfiable(let length):
            let expectation = expectation(of: asset, window: window)
            guard length == 0 else {
                throw CacheError(.upstreamProtocol, "The upstream refused the first byte of an asset that has bytes.")
            }
            return try report(
                asset, HeadJudgement.emptyAsset(head, expecting: expectation), method: .get, head: head)
        case .refused(let error):
            throw CacheError(
                error.code, error.message, cause: ProbeFailure(error: error, timings: head.timings))
        }
    }

    /// Whether an answer to `HEAD` may be taken at its word: handlers that never count a body announce none, and leave
    /// validators out.
    private func isBelievable(_ generation: Generation, of asset: OpenAsset) -> Bool {
        let known = asset.record?.generation.validators
        return generation.length ?? 0 > 0 && (known?.strong == nil || generation.validators.strong != nil)
    }

    /// Keeps what was found: the same generation confirmed, or the next one opened.
    private func report(
        _ asset: OpenAsset, _ generation: Generation, method: ProbeReport.Method, head: UpstreamHead
    ) throws(CacheError) -> ProbeReport {
        let known = asset.record
        let trust = asset.target.settings.trustValidators
        if let known, !generation.isSameRepresentation(as: known.generation, trusting: trust) {
            var next = known
            next.generation = generation
            next.generation.number = known.generation.number + 1
            context.openAssets.supersede(asset, by: next.generation)
            return report(on: asset, next, method: method, head: head, cachedBytes: 0)
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
