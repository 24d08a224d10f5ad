import CacheCore
import CacheEngine
import HTTPTypes

/// The heads of content's answers, on both roads.
extension ContentRead {
    /// The fields of a 200, 206 or 304 that do not depend on who asks; ``sign(_:)`` adds the rest. `Content-Length` where
    /// it is known, for HEAD as well.
    var plannedFields: HTTPFields {
        var fields = HTTPFields(plan.headers)
        fields[.contentDate] = plan.headers["Date"]
        fields[.date] = nil
        fields[.age] = age.map(\.wholeSecondsText)
        return fields
    }

    /// Adds what Larder says of every answer to a content request.
    func sign(_ fields: inout HTTPFields) {
        fields[.cacheStatus] = CacheStatus.field(outcome, after: plan.headers.values("Cache-Status"))
        fields[.larderAssetID] = assetID.description
        fields.append(.via)
        Self.harden(&fields)
    }

    /// Content shares its web origin with the API. A browser must not take it for another type than it is declared, nor
    /// run its scripts with the API's rights.
    private static func harden(_ fields: inout HTTPFields) {
        fields[.xContentTypeOptions] = "nosniff"
        guard let type = fields[.contentType], isActive(type) else { return }
        fields.append(HTTPField(name: .contentSecurityPolicy, value: "sandbox"))
    }

    /// Whether browsers may run scripts of a document with this `Content-Type`: HTML, SVG, other XML, and parts of such types.
    /// A list counts by all of its members, of which browsers choose one.
    private static func isActive(_ type: String) -> Bool {
        let type = FieldText.lowered(type)
        return ["html", "xml", "svg", "xsl", "multipart/x-mixed-replace"].contains { type.contains($0) }
    }
}

extension HTTPField {
    static let via = HTTPField(name: .via, value: "1.1 larder")
}

extension HTTPFields {
    /// The fields that can be sent; a name or value that HTTP cannot carry is left out.
    init(_ list: HeaderList) {
        self.init(
            list.fields.compactMap { field in
                HTTPField.Name(field.name).map { HTTPField(name: $0, value: field.value) }
            })
    }
}

extension Duration {
    /// As `Age` and `max-age` have it: whole seconds, none where it is negative.
    var wholeSecondsText: String { String(max(0, components.seconds)) }
}
