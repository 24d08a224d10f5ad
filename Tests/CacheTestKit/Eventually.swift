/// Waits until `condition` holds, looking every few milliseconds; false where it still does not after `limit`.
///
/// For what comes to rest after an answer, and has nobody to tell it.
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
