import CacheCore
import CacheStore
import Logging

extension AssetCache {
    /// Reads the origin's fallback in place of a failed read: always complete, whatever range and conditions the
    /// client sent.
    ///
    /// Nil if the origin has no fallback, if the upstream is not the cause of the failure, or if the fallback cannot
    /// be read within the origin's time limit either; the last case is logged.
    func fallback(for target: AssetTarget, after failure: ReadFailure, isHead: Bool) async -> ContentRead? {
        guard let fallback = target.settings.fallback, failure.error.code.deservesFallback else { return nil }
        var outcome = ReadOutcome(requestClass: .error, detail: "fallback")
        outcome.forwarding = failure.outcome.forwarding
        outcome.upstreamStatus = failure.outcome.upstreamStatus
        do {
            let read = try await withDeadline(target.settings.readTimeout, .read, clock: clock) {
                [self] () async throws(CacheError) in try await whole(of: fallback, for: target, isHead: isHead)
            }
            return try read.standingIn(for: target, as: outcome)
        } catch {
            context.logger.warning(
                "fallback could not be read", metadata: ["origin": "\(target.originName)", "error": "\(error)"])
            return nil
        }
    }

    private func whole(
        of fallback: OriginSettings.Fallback, for target: AssetTarget, isHead: Bool
    ) async throws(CacheError) -> ContentRead {
        let request = ContentRequest(isHead: isHead)
        switch fallback {
        case .asset(let id):
            return try await begin(
                try await resolve(.known(id)),
                ReadAttempt(
                    request: request, directives: RequestDirectives(), began: context.wallClock.now(),
                    limit: target.settings.readTimeout))
        case .file(let path): return try await whole(of: path, for: target, request)
        }
    }

    private func whole(
        of path: String, for target: AssetTarget, _ request: ContentRequest
    ) async throws(CacheError) -> ContentRead {
        guard let directory = settings.fallbackDirectory else {
            throw CacheError(.notFound, "The fallback \(path) cannot be read: set fallbackDirectory.")
        }
        let (file, length) = try await context.diskThreads.run { [store = context.store] in
            let file = try store.openForeign(path, below: directory)
            return (file, try file.size())
        }
        let now = context.wallClock.now()
        let generation = Generation(
            length: length, contentType: MediaType.effectiveType(header: nil, path: path).type, receivedAt: now)
        let asset = OpenAsset(foreign: file, described: generation, for: target, context: context)
        context.openAssets.retain(asset)
        let plan = ContentPlan.make(request, generation: generation, now: now, boundary: "")
        do {
            let reader = try asset.join(opening: .whole, priority: .live, mustConfirm: false)
            return ContentRead(
                asset: asset, reader: reader, plan: plan, outcome: ReadOutcome(requestClass: .hit), age: nil,
                cachedBefore: ByteRangeSet([0..<length]))
        } catch {
            context.openAssets.release(asset)
            throw error
        }
    }
}
