/// The parameters of a query, in the encoding that signatures need.
struct SignatureQuery {
    /// The encoded name and value. Nil: the parameter has no `=`.
    private var parameters: [(name: String, value: String?)] = []

    /// `query`: without the `?`. Empty parameters are left out.
    init(_ query: String?) {
        for parameter in (query ?? "").split(separator: "&") {
            let parts = parameter.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            parameters.append(
                (URIEncoding.reencoded(parameter: parts[0]), parts.dropFirst().first.map(URIEncoding.reencoded)))
        }
    }

    /// The query as it is sent: in the original order. Nil without parameters.
    var sent: String? {
        guard !parameters.isEmpty else { return nil }
        return parameters.map { parameter in parameter.name + (parameter.value.map { "=" + $0 } ?? "") }
            .joined(separator: "&")
    }

    /// The canonical query: sorted by name, then by value; each parameter with `=`.
    var canonical: String {
        parameters.map { (Array($0.name.utf8), Array(($0.value ?? "").utf8)) }
            .sorted { $0.0 == $1.0 ? $0.1.lexicographicallyPrecedes($1.1) : $0.0.lexicographicallyPrecedes($1.0) }
            .map { String(decoding: $0.0, as: UTF8.self) + "=" + String(decoding: $0.1, as: UTF8.self) }
            .joined(separator: "&")
    }
}
