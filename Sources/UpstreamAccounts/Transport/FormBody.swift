import CacheCore

/// A body of the type `application/x-www-form-urlencoded`.
struct FormBody {
    static let type = "application/x-www-form-urlencoded"

    private(set) var text = ""

    /// `fields`: names and values; fields without a value are left out.
    init(_ fields: [(name: String, value: String?)]) {
        for (name, value) in fields {
            guard let value else { continue }
            text += (text.isEmpty ? "" : "&") + PercentEncoding.encoded(name) + "=" + PercentEncoding.encoded(value)
        }
    }

    var bytes: [UInt8] { Array(text.utf8) }
}
