import CacheCore
package import CacheStore

/// The tokens that were made over the API, as the catalog has them. Thread-safe.
package final class TokenTable: Sendable {
    /// The largest number of tokens, and of bytes of all documents together.
    private static let (mostTokens, mostBytes) = (10_000, 16 << 20)

    private let stored = OrderedMutex(.leaf, StoredTokens())
    /// Guards the function that is called after each change.
    private let follower = OrderedMutex<(@Sendable (StoredTokens) -> Void)?>(.leaf, nil)

    init() {}

    subscript(id: String) -> StoredToken? { stored.withLock { $0.tokens[id] } }

    /// Calls a function now and after each change, on any thread. Of two changes at once, the later one can be reported first.
    package func follow(_ changed: @escaping @Sendable (StoredTokens) -> Void) {
        follower.withLock { $0 = changed }
        changed(stored.withLock { $0 })
    }

    /// Puts tokens in force, unless later ones are.
    func adopt(_ tokens: StoredTokens) {
        let isChange = stored.withLock { stored in
            guard tokens.version > stored.version else { return false }
            defer { stored = tokens }
            return stored.tokens != tokens.tokens
        }
        if isChange { follower.withLock { $0 }?(tokens) }
    }

    /// Throws `.conflict` if there is no room for a new document.
    func check(_ id: String, _ document: String) throws(CacheError) {
        let others = stored.withLock { $0.tokens }.values.filter { $0.id != id }
        guard others.count < Self.mostTokens else {
            throw CacheError(.conflict, "There are \(others.count) tokens, the largest number: delete one first.")
        }
        guard others.reduce(document.utf8.count, { $0 + $1.document.utf8.count }) <= Self.mostBytes else {
            throw CacheError(.conflict, "All tokens together have at most \(Self.mostBytes) bytes: delete one first.")
        }
    }
}

/// The tokens of the API: each change is stored, and then put in force.
extension CacheConfiguration {
    /// The document of a token of the API, and its revision; nil: there is none of that name.
    package func token(_ id: String) -> (document: String, revision: Int64)? {
        tokens[id].map { ($0.document, $0.revision) }
    }

    func loadTokens() async throws(CacheError) { tokens.adopt(try await context.store.catalog.tokens()) }

    /// Returns the new revision. Throws `.preconditionFailed` if the precondition does not hold, and `.conflict` if there are too
    /// many tokens.
    func setToken(
        _ id: String, _ document: String, if precondition: Precondition
    ) async throws(CacheError) -> Int64 {
        try tokens.check(id, document)
        let stored = try await context.store.catalog.saveToken(id, document, if: precondition)
        tokens.adopt(stored)
        return stored.tokens[id]?.revision ?? 0
    }

    /// Throws `.preconditionFailed` if the precondition does not hold.
    func deleteToken(_ id: String, if precondition: Precondition) async throws(CacheError) {
        tokens.adopt(try await context.store.catalog.deleteToken(id, if: precondition))
    }
}
