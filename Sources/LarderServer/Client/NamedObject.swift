import CacheAPI
import CacheCore

/// An object of the service that a command names.
struct NamedObject {
    private let name: String
    /// The list with the objects of this kind, and the member with their names.
    private let list, member: String
    /// Other words that the user may have meant.
    private let others: [String]

    static func job(_ id: String, or others: [String] = []) -> Self {
        Self(name: id, list: "/v1/jobs?limit=1000", member: "jobId", others: others)
    }

    static func origin(_ name: String, or others: [String] = []) -> Self {
        Self(name: name, list: "/v1/origins", member: "name", others: others)
    }

    static func schedule(_ name: String, or others: [String] = []) -> Self {
        Self(name: name, list: "/v1/schedules", member: "name", others: others)
    }

    static func token(_ id: String) -> Self {
        Self(name: id, list: "/v1/tokens?limit=1000", member: "id", others: [])
    }

    /// The error, with a similar name as its remedy if the object may not exist.
    func explained(_ error: ClientError, _ client: ServiceClient) -> ClientError {
        guard case .problem(404...422, _) = error.kind, let suggestion = suggestion(client) else { return error }
        return ClientError(error.kind, error.message, remedy: suggestion)
    }

    /// A sentence with a similar name; nil: there is none, the object exists, or the token cannot read the list.
    func suggestion(_ client: ServiceClient) -> String? {
        // The suggestion is no part of the result of the command.
        let page: APIDocument<PageDocument<JSON>>? = try? client.document(ServiceRequest(.get, list))
        let names = page?.value.items.compactMap { $0[member]?.string } ?? []
        return names.contains(name) ? nil : UsageError.suggestion(for: name, among: names + others)
    }
}
