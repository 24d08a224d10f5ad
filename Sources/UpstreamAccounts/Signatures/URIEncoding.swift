import CacheCore

/// The percent-encoding of signed requests.
enum URIEncoding {
    /// The path with each segment decoded once and encoded again. `/` and `%2F` remain distinct, and an encoded `.` or
    /// `..` segment remains encoded, because it would change the path otherwise.
    static func reencoded(path: String) -> String {
        path.split(separator: "/", omittingEmptySubsequences: false).map { segment in
            let encoded = PercentEncoding.encoded(PercentEncoding.decoded(segment))
            return encoded == "." || encoded == ".." ? String(segment) : encoded
        }.joined(separator: "/")
    }

    /// A parameter of a query, decoded once and encoded again. `+` means a space, as in forms.
    static func reencoded(parameter: some StringProtocol) -> String {
        PercentEncoding.encoded(PercentEncoding.decoded(String(parameter.map { $0 == "+" ? " " : $0 })))
    }
}
