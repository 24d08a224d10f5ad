import CacheCore
import CacheStore

/// Repetition of refusals from the negative cache.
extension ContentReader {
    /// The stored refusal of the target's upstream, as a failure, if it may be repeated without a request; nil
    /// otherwise.
    func keptRefusal(of target: AssetTarget, _ attempt: ReadAttempt) -> ReadFailure? {
        guard let refusal = context.refusals[target.id], isUsable(refusal, for: attempt),
            let left = refusal.timeToLive(at: attempt.began)
        else { return nil }
        let outcome = ReadOutcome(requestClass: .negative, timeToLive: left, detail: "negative")
        return ReadFailure(refusal.error, outcome: outcome, age: refusal.age(at: attempt.began))
    }

    /// Whether a stored refusal is fresh, and the request's directives permit its use.
    func isUsable(_ refusal: NegativeCache.Refusal, for attempt: ReadAttempt) -> Bool {
        let asked = attempt.directives
        return refusal.isComplete(for: attempt) && refusal.timeToLive(at: attempt.began) != nil && !asked.noCache
            && asked.maxAge.map { refusal.age(at: attempt.began) <= $0 } ?? true
    }

    /// A read of the upstream's own body of a stored refusal that may be repeated; nil if there is none, if the origin
    /// no longer passes on such bodies, or if memory for it is not available. The caller then uses a problem document.
    func repeated(of target: AssetTarget, _ attempt: ReadAttempt) -> ContentRead? {
        guard target.settings.errorBodies == .upstream, target.settings.fallback == nil,
            let failure = keptRefusal(of: target, attempt), let passed = context.refusals[target.id]?.passed
        else { return nil }
        var generation = passed.generation
        if let bytes = passed.bytes { generation.length = Int64(bytes.count) }
        // Without memory for the body, or a descriptor for its file, the refusal has a problem document.
        return try? whole(
            of: context.store.createInMemory(holding: passed.bytes ?? []), generation, for: target, attempt.request,
            failure.outcome, age: failure.age)
    }
}

extension NegativeCache.Refusal {
    /// Whether the refusal answers the request: a body that is passed on is complete, or not asked for.
    func isComplete(for attempt: ReadAttempt) -> Bool {
        passed.map { $0.bytes != nil || attempt.request.isHead } ?? true
    }
}
