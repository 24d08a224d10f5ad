/// Which of several representations of one asset a request gets (RFC 9111 §4.1).
package enum Variation {
    /// Request fields that select no variant. Most never reach the upstream, or always with the same value. The CORS fields
    /// change only `Access-Control-*` in the response, and Larder drops those and applies its own CORS rules.
    private static let neutral: Set<String> = [
        "accept-encoding", "access-control-request-headers", "access-control-request-method", "authorization", "cookie",
        "host", "if-range", "origin", "proxy-authorization", "range", "te",
    ]

    /// Whether `Vary` holds `*`: no other request gets the same answer (RFC 9110 §12.5.5).
    package static func isOnEverything(_ headers: HeaderList) -> Bool {
        headers.values("Vary").contains { FieldText.members(of: $0).contains("*") }
    }

    /// The fields of `request` by which a response with these headers was chosen, in the order of their names; none where
    /// the request has none of them, as the requests have by which an asset is found at first.
    ///
    /// `variant`: the fields by which the asset itself was chosen. They count also where this response does not name them in
    /// its `Vary`: another response to the same request did.
    ///
    /// Values are compared after blanks round list members are normalised, lines of one name joined (§4.1).
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
