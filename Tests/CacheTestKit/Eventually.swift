/// Polls `condition` every 2 ms until it holds. Returns false if it does not hold after `limit`.
///
/// Polling is limited to this function. Its callers check state without a completion event: background commits,
/// deferred punches, eviction, jobs and closed connections settle after the response, and only a query shows the
/// result. If an event exists, a test awaits the event.
package func eventually(
    within limit: Duration = .seconds(300), _ condition: () async throws -> Bool
) async throws -> Bool {
    let clock = ContinuousClock()
    let end = clock.now + limit
    while clock.now < end {
        if try await condition() { return true }
        try await clock.sleep(for: .milliseconds(2))
    }
    return try await condition()
}
