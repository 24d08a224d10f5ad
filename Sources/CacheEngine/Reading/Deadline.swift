import CacheCore

/// Runs `body`; after `limit` it is cancelled and `.upstreamTimedOut(timeout)` is thrown. Where the caller is cancelled
/// first, what `body` makes of that is the outcome.
func withDeadline<Value: Sendable>(
    _ limit: Duration, _ timeout: CacheError.Timeout, clock: any Clock<Duration>,
    body: @escaping @Sendable () async throws(CacheError) -> Value
) async throws(CacheError) -> Value {
    let outcome = await withTaskGroup(of: Result<Value, CacheError>?.self) { group in
        // It begins on this thread: no other one has to wake for it.
        group.addImmediateTask {
            do throws(CacheError) { return .success(try await body()) } catch { return .failure(error) }
        }
        group.addTask {
            // A sleep that is cancelled has lost the race: it is no time-out.
            guard (try? await clock.sleep(for: limit)) != nil else {
                return .failure(CacheError(.cancelled, "The reader gave up."))
            }
            return nil
        }
        let first = await group.next() ?? nil
        group.cancelAll()
        return first
    }
    guard let outcome else {
        throw CacheError(.upstreamTimedOut(timeout), "The upstream sent nothing within \(limit.inSeconds) s.")
    }
    return try outcome.get()
}
