import CacheAPI

/// The permissions of the client's token, as `GET /v1/access` reports them.
struct TokenAccess: Hashable {
    /// The token for messages; nil: the service requires none.
    private let token: String?
    /// The prefixes of asset keys with which a limited token can list assets; nil without limits.
    let assetPrefixes: [String]?
    /// The permitted operations, such as `GET /v1/stats`.
    private let operations: Set<String>

    init(_ document: AccessDocument) {
        assetPrefixes = document.assetPrefixes
        let limits = assetPrefixes.map { ", limited to " + $0.joined(separator: ", ") } ?? ""
        token = document.token.map { "\($0.id) (scope \($0.scope)\(limits))" }
        operations = Set(document.operations.map { "\($0.method) \($0.path)" })
    }

    /// Throws unless all operations are permitted.
    func require(_ needs: [String]) throws(ClientError) {
        guard let missing = needs.first(where: { !operations.contains($0) }) else { return }
        throw refusal("does not permit \(missing), which this command needs")
    }

    /// The prefix of a list: `prefix`, or for a limited token the only own prefix below `origin`. Nil: the origin alone
    /// selects enough. Throws with all own prefixes if the choice is not unique.
    func prefix(_ prefix: String?, origin: String?) throws(ClientError) -> String? {
        guard prefix == nil, let own = assetPrefixes, !own.isEmpty else { return prefix }
        let mount = origin.map { "/o/\($0)/" } ?? ""
        guard !own.contains(mount) else { return nil }
        let fitting = own.filter { $0.hasPrefix(mount) }
        if fitting.count == 1 { return fitting[0] }
        throw refusal("requires one of its prefixes: " + own.map { "--prefix \($0)" }.joined(separator: " or "))
    }

    private func refusal(_ reason: String) -> ClientError {
        ClientError(
            .problem(status: 403, code: "tokenScope"), "The token \(token ?? "") \(reason). (code tokenScope)",
            remedy: "Set LARDER_TOKEN or LARDER_TOKEN_FILE to a token with the permission.")
    }
}
