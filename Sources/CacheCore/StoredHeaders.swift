/// Which header fields of a response are kept and passed on with the content.
package enum StoredHeaders {
    /// No more fields are kept than this…
    package static let maxFields = 64
    /// …and no more bytes of names and values together.
    package static let maxBytes = 16 << 10

    /// Not kept: fields of the connection (RFC 9110 §7.6.1) and of the proxy, what is known in another form or made
    /// anew for every response, cookies, and what would speak for the host that serves rather than for the asset.
    private static let dropped: Set<String> = [
        "accept-ranges", "age", "alt-svc", "cache-status", "clear-site-data", "connection", "content-encoding",
        "content-length", "content-range", "content-type", "date", "etag", "keep-alive", "last-modified",
        "proxy-authenticate", "proxy-authentication-info", "proxy-authorization", "proxy-connection", "set-cookie",
        "set-cookie2", "strict-transport-security", "te", "trailer", "transfer-encoding", "upgrade", "via",
        "www-authenticate", "x-request-id",
    ]

    /// The fields to keep, in order: not those that `Connection` names, nor this service's own (`Larder-…`), illegal
    /// ones and those beyond the limits.
    package static func of(_ headers: HeaderList) -> HeaderList {
        let named = headers.values("Connection").flatMap { FieldText.members(of: $0) }.map { FieldText.lowered($0) }
        let dropped = dropped.union(named)
        var kept: [HeaderList.Field] = []
        var room = maxBytes
        for field in headers.fields where kept.count < maxFields {
            let name = FieldText.lowered(field.name)
            let size = field.name.utf8.count + field.value.utf8.count
            guard !dropped.contains(name), !name.hasPrefix("larder-"), FieldText.isToken(name),
                FieldText.isValue(field.value), size <= room
            else { continue }
            kept.append(field)
            room -= size
        }
        return HeaderList(kept)
    }
}
