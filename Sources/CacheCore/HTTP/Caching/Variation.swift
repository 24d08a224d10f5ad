/// Selects the variant of an asset for a request (RFC 9111 §4.1).
package enum Variation {
    /// Request fields that select no variant. Most never reach the upstream, or always have the same value there. The
    /// CORS fields affect only `Access-Control-*` of the response, which Larder drops and replaces by its own CORS
    /// rules.
    private static let neutral: Set<String> = [
        "accept-encoding", "access-control-request-headers", "access-control-request-method", "authorization", "cookie",
        "host", "if-range", "origin", "proxy-authorization", "range", "te",
    ]

    /// Whether `Vary` contains `*`: the response matches no other request (RFC 9110 §12.5.5).
    package static func isOnEverything(_ headers: HeaderList) -> Bool {
        headers.values("Vary").contains { FieldText.members(of: $0).contains("*") }
    }

    /// The fields of `request` that select a response with these headers, sorted by name. Empty if the request has none
    /// of them, as is the case for the initial lookup of an asset.
    ///
    /// `variant`: the fields that selected the asset itself. They count even if this response does not name them in
    /// `Vary`, because another response to the same request did. `ignored`: names that the origin's settings exclude.
    ///
    /// Values are compared in normal form: whitespace around list members is normalized, and lines of one name are
    /// joined (§4.1).
    package static func fields(
        of request: HeaderList, chosenBy headers: HeaderList, and variant: HeaderList = [:], ignoring ignored: [String]
    ) -> HeaderList {
        let ignored = neutral.union(ignored.map { FieldText.lowered($0) })
        let named = headers.values("Vary").flatMap { FieldText.members(of: $0) }.map { FieldText.lowered($0) }
        let names = Set(named + variant.fields.map { FieldText.lowered($0.name) })
        var fields: HeaderList = [:]
        for name in names.subtracting(ignored).sorted() {
            guard let value = request.combined(name) else { continue }
            fields.append(name, FieldText.members(of: value).joined(separator: ", "))
        }
        return fields
    }
}
