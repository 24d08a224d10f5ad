import CacheCore

extension Encodable {
    /// The document as a client gets it.
    var json: JSON { (try? JSONParser.parse(jsonBytes)) ?? .null }  // null fails each comparison
}
