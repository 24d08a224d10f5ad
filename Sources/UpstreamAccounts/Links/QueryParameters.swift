import CacheCore

/// The decoded parameters of a query, by name without case.
struct QueryParameters {
    private var values: [String: String] = [:]

    /// `query`: without the `?`. Of repeated parameters, the first one counts.
    init(_ query: some StringProtocol) {
        for parameter in query.split(separator: "&") {
            let parts = parameter.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let name = FieldText.lowered(String(decoding: PercentEncoding.decoded(parts[0]), as: UTF8.self))
            guard values[name] == nil else { continue }
            values[name] = parts.count == 2 ? String(decoding: PercentEncoding.decoded(parts[1]), as: UTF8.self) : ""
        }
    }

    /// The value of a parameter, empty without `=`; nil if the parameter is absent. `name`: in lower case.
    subscript(name: String) -> String? { values[name] }
}
