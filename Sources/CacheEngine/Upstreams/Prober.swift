package import CacheCore
import CacheTracing

/// Determines the metadata of assets.
package struct Prober: Sendable {
    let openAssets: OpenAssets
    let upstreams: Upstreams
    let tracer: Tracer
    let wallClock: any WallClock
    let resolver: AssetResolver
    let clock: any Clock<Duration>

    init(of context: EngineContext, resolver: AssetResolver, clock: any Clock<Duration>) {
        openAssets = context.openAssets
        upstreams = context.upstreams
        tracer = context.tracer
        wallClock = context.wallClock
        self.resolver = resolver
        self.clock = clock
    }

    /// Determines the metadata of an asset: from the stored description while it is fresh, otherwise by `HEAD`,
    /// otherwise by a one-byte range.
    ///
    /// From now on the asset is fetched from the URL of the reference, because signed URLs change. The result is
    /// stored, and a later read starts with it. `refresh` forces a request; a response with the same validator keeps
    /// all extents.
    ///
    /// Throws `ProbeFailure` with the upstream's status or the timeout that has expired.
    package func probe(
        _ reference: AssetReference, timeout: Duration, refresh: Bool, priority: TransferPriority = .live
    ) async throws(ProbeFailure) -> ProbeReport {
        do {
            let target = try await resolver.resolve(reference)
            let asset = try await resolver.open(target)
            defer { openAssets.release(asset) }
            if !refresh, let record = asset.record, asset.isFresh(at: wallClock.now()) {
                asset.rebind()
                return report(on: asset, record, method: .cached, head: nil)
            }
            return try await withDeadline(timeout, .total, clock: clock) { [self] () async throws(CacheError) in
                try await ask(
                    asset,
                    HeadProbe(target: target, over: upstreams, tracer: tracer, priority: priority),
                    within: timeout)
            }
        } catch {
            throw error.cause as? ProbeFailure ?? ProbeFailure(error: error)
        }
    }

    /// Asks by `HEAD`, then by a range of one byte, then by a plain `GET` that is cut after its head. Some upstreams
    /// support `GET` only, and some refuse ranges. `HEAD` may use half of the time.
    ///
    /// An object store with an account is not asked by `HEAD`: its 403 for a missing key without permission to list
    /// states its reason in the body (Amazon S3 API reference, "HeadObject": a response to `HEAD` has none).
    private func ask(
        _ asset: OpenAsset, _ asked: HeadProbe, within timeout: Duration
    ) async throws(CacheError) -> ProbeReport {
        var question = asked
        if asset.target.settings.auth.kind != .s3, let head = await head(&question, within: timeout / 2),
            head.status < 300,
            case .whole(let generation) = judge(head, of: asset, window: .whole), isBelievable(generation, of: asset)
        {
            return try report(asset, generation, method: .head, head: head)
        }
        let first = UpstreamRequest.Window.first
        var head = try await ask(.get, first, &question)
        var judgement = judge(head, of: asset, window: first)
        if judgement.refusesRange {
            let refused = head.status
            if let stated = StatedLength(head, now: wallClock.now()) {
                upstreams.health.stated(stated, by: asset.target)
            }
            head = try await ask(.get, .whole, &question)
            judgement = judge(head, of: asset, window: .whole)
            if judgement.storesBody {
                upstreams.health.observed(
                    .rangesRefused, of: asset.target,
                    evidence:
                        "Status \(refused) for a request with Range, \(head.status) for the same request without it.")
            }
        } else if case .window = judgement {
            upstreams.health.supportsRanges(asset.target)
        }
        guard !(300..<400).contains(head.status) else {
            let error = CacheError(
                .upstreamRefused(status: head.status),
                "The upstream answered with status \(head.status), a redirect that cannot be followed.")
            throw CacheError(error.code, error.message, cause: ProbeFailure(error: error, timings: head.timings))
        }
        switch judgement {
        case .window(_, let generation), .whole(let generation), .unchanged(let generation),
            .changed(let generation, _):
            return try report(asset, generation, method: .get, head: head)
        case .unsatisfiable(let length):
            guard length == 0 else {
                throw CacheError(.upstreamProtocol, "The upstream answered 416 for byte 0 of a nonempty asset.")
            }
            let expectation = expectation(of: asset, window: first)
            return try report(
                asset, ResponseVerdict.emptyAsset(head, expecting: expectation), method: .get, head: head)
        case .refused(let error):
            throw CacheError(
                error.code, error.message, cause: ProbeFailure(error: error, timings: head.timings))
        }
    }

    /// The response to `HEAD`; nil if there is none within `limit`.
    private func head(_ question: inout HeadProbe, within limit: Duration) async -> UpstreamHead? {
        let asked = question
        let answer = try? await withDeadline(limit, .total, clock: clock) {
            [self] () async throws(CacheError) -> (UpstreamHead, HeadProbe) in
            var question = asked
            return (try await ask(.head, .whole, &question), question)
        }
        if let answer { question = answer.1 }
        return answer?.0
    }

    private func ask(
        _ method: UpstreamRequest.Method, _ window: UpstreamRequest.Window, _ question: inout HeadProbe
    ) async throws(CacheError) -> UpstreamHead {
        do {
            return try await question.ask(method, for: window)
        } catch {
            throw CacheError(error.error.code, error.error.message, cause: error)
        }
    }

    /// Whether a response to `HEAD` is trusted. Some servers omit the length and the validators, or state the length of
    /// another coding. A contradiction to bytes on disk is therefore checked by `GET`.
    private func isBelievable(_ generation: Generation, of asset: OpenAsset) -> Bool {
        let (known, isBare) = asset.look { ($0.record?.generation, $0.isBare) }
        guard generation.length ?? 0 > 0 else { return false }
        guard known?.validators.strong == nil || generation.validators.strong != nil else { return false }
        return isBare || known?.length == nil || generation.length == known?.length
    }

    /// Stores the description: the same generation is confirmed, or the next one starts. If the response neither proves
    /// nor disproves that the bytes on disk are current, they become stale.
    private func report(
        _ asset: OpenAsset, _ generation: Generation, method: ProbeReport.Method, head: UpstreamHead
    ) throws(CacheError) -> ProbeReport {
        let (known, isBare) = asset.look { ($0.record, $0.isBare) }
        let trust = asset.target.settings.trustValidators
        var generation = generation
        if let known, !isBare {
            // A response that is passed on replaces nothing.
            guard generation.passedStatus == nil else {
                asset.expire()
                return report(on: asset, asset.record ?? known, method: method, head: head)
            }
            let isSame = generation.isSameRepresentation(as: known.generation, trusting: trust)
            if isSame || generation.weaklyMatches(known.generation) {
                generation = generation.confirming(known.generation)
            } else if generation.isDescribed(as: known.generation) || generation.contradicts(known.generation) {
                asset.expire()
                return report(on: asset, asset.record ?? known, method: method, head: head)
            } else {
                var next = known
                next.generation = generation
                next.generation.number = known.generation.number + 1
                openAssets.supersede(asset, by: next.generation)
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

    private func judge(_ head: UpstreamHead, of asset: OpenAsset, window: UpstreamRequest.Window) -> ResponseVerdict {
        ResponseVerdict.judge(head, expecting: expectation(of: asset, window: window))
    }

    /// An expectation without a known generation: the probe compares the generations afterwards.
    private func expectation(of asset: OpenAsset, window: UpstreamRequest.Window) -> WindowExpectation {
        WindowExpectation(
            window: window, known: nil, now: wallClock.now(), freshness: asset.freshness,
            trust: asset.target.settings.trustValidators, storeRules: asset.target.settings.storeRules,
            stated: upstreams.health.statedLength(of: asset.target), path: asset.target.path)
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
    /// The URL without its query; it may be a signature and is not shown.
    var withoutQuery: String { split(separator: "?", maxSplits: 1).first.map(String.init) ?? self }
}
