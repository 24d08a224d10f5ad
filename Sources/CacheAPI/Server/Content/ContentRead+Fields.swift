import CacheCore
import CacheEngine
import HTTPTypes

/// Response fields of content reads.
extension ContentRead {
    /// The fields of a 200, 206 or 304 response that do not depend on the client, with `Content-Length` if it is known,
    /// for HEAD as well. ``sign(_:)`` adds the rest.
    ///
    /// - Parameter sharing: The caches that may share the response.
    func plannedFields(_ sharing: ResponseSharing, at now: @autoclosure () -> Timestamp) -> HTTPFields {
        let headers = sharing.restricted(plan.headers, age: age, timeToLive: outcome.timeToLive, at: now())
        var fields = HTTPFields(headers)
        fields[.age] = sharing.restartsAge ? nil : age.map(\.wholeSecondsText)
        return fields
    }

    /// Adds Larder's own fields, which every response to a content request has.
    func sign(_ fields: inout HTTPFields) {
        fields[.cacheStatus] = CacheStatus.field(outcome, after: plan.headers.values("Cache-Status"))
        fields[.larderAssetID] = assetID.description
        fields.append(.via)
        Self.harden(&fields)
    }

    /// Adds security fields. Content has the same web origin as the API, so a browser must neither guess its type nor
    /// run its scripts with access to the API.
    ///
    /// Several servers send `text/plain` for files of unknown type. Browsers do not take it for a type with scripts (WHATWG
    /// MIME Sniffing §7), but with `nosniff` they refuse to play media of this type.
    private static func harden(_ fields: inout HTTPFields) {
        let type = FieldText.lowered(fields[.contentType] ?? "")
        let isPlain = type.utf8.starts(with: "text/plain".utf8) && !type.utf8.contains(UInt8(ascii: ","))
        if !isPlain { fields[.xContentTypeOptions] = "nosniff" }
        guard isPlain || isActive(type) else { return }
        fields.append(HTTPField(name: .contentSecurityPolicy, value: "sandbox"))
    }

    /// Whether browsers may run scripts of a document with this `Content-Type` in lower case: HTML, SVG, other XML, and
    /// multipart documents with such parts. If the value is a list, every member counts, because browsers choose one.
    private static func isActive(_ type: String) -> Bool {
        let words: [StaticString] = ["html", "xml", "svg", "xsl", "multipart/x-mixed-replace"]
        var type = type
        // The search of the library costs a tenth of a small response.
        return type.withUTF8 { text in
            words.contains { word in
                let word = UnsafeBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount)
                guard text.count >= word.count else { return false }
                return (0...text.count - word.count).contains { start in
                    text[start] == word[0] && text[start..<start + word.count].elementsEqual(word)
                }
            }
        }
    }
}

extension HTTPField {
    /// Larder's entry in `Via` (RFC 9110 §7.6.3).
    static let via = HTTPField(name: .via, value: "1.1 larder")
}

extension HTTPFields {
    /// Converts the fields of a list. A field with an invalid name is omitted.
    init(_ list: HeaderList) {
        self.init(
            list.fields.compactMap { field in
                HTTPField.Name(field.name).map { HTTPField(name: $0, value: field.value) }
            })
    }
}

extension Duration {
    /// Whole seconds for `Age` and `max-age`, rounded down; 0 for a negative duration.
    var wholeSecondsText: String { String(max(0, components.seconds)) }
}
