/// Selects the header fields of a response that are stored and sent with the content.
package enum StoredHeaders {
    /// The maximum number of stored fields.
    package static let maxFields = 256
    /// The maximum number of bytes of all names and values together.
    package static let maxBytes = 64 << 10

    /// Fields that are not stored (RFC 9111 §3.1):
    /// - fields of the connection (RFC 9110 §7.6.1) and of proxies,
    /// - fields that are stored in another form or generated for every response,
    /// - fields about the bytes of one message, such as `Content-Digest`,
    /// - cookies, and fields about the host rather than the asset.
    private static let dropped: Set<String> = [
        "accept-ranges", "age", "alt-svc", "clear-site-data", "connection", "content-digest", "content-encoding",
        "content-length", "content-range", "content-type", "etag", "keep-alive", "last-modified", "proxy-authenticate",
        "proxy-authentication-info", "proxy-authorization", "proxy-connection", "set-cookie", "set-cookie2",
        "strict-transport-security", "te", "trailer", "transfer-encoding", "upgrade", "www-authenticate",
        "x-request-id",
    ]

    /// The fields to store, in their order. Excluded are fields named by `Connection` or by a qualified `no-cache` or
    /// `private`, `Larder-…`, `Access-Control-…` (replaced by CORS rules), invalid fields, and those beyond the limits.
    package static func of(_ headers: HeaderList) -> HeaderList {
        fields(of: headers, areWithheld: false)
    }

    /// The fields that a qualified `no-cache` or `private` names. They belong to the response that brought them, and
    /// are not stored (RFC 9111 §5.2.2.4, §5.2.2.7).
    static func withheld(_ headers: HeaderList) -> HeaderList { fields(of: headers, areWithheld: true) }

    private static func fields(of headers: HeaderList, areWithheld: Bool) -> HeaderList {
        let withheld = CacheControl.effective(in: headers).withheldFields
        if areWithheld, withheld.isEmpty { return [:] }
        let chosen = passedOn(headers).filter { withheld.contains(FieldText.lowered($0.name)) == areWithheld }
        return HeaderList(withinLimits(chosen))
    }

    /// `Larder-Cache-Control` is addressed to this cache alone: it is stored, but not sent to clients.
    static let ownField = "larder-cache-control"

    /// The valid end-to-end fields.
    private static func passedOn(_ headers: HeaderList) -> [HeaderList.Field] {
        let named = headers.values("Connection").flatMap { FieldText.members(of: $0) }.map { FieldText.lowered($0) }
        let dropped = dropped.union(named)
        return headers.fields.filter { field in
            let name = FieldText.lowered(field.name)
            return !dropped.contains(name) && !isReplaced(name) && FieldText.isToken(name)
                && FieldText.isValue(field.value)
        }
    }

    /// Fields that a downstream cache must obey (RFC 9111 §4.1, §5.2, §5.3). If the limits are exceeded, other fields
    /// are dropped first.
    private static let cachingFields: Set<String> = [
        "cache-control", "cdn-cache-control", "date", "expires", ownField, "vary",
    ]

    /// The fields that fit `maxFields` and `maxBytes`, in their original order.
    private static func withinLimits(_ fields: [HeaderList.Field]) -> [HeaderList.Field] {
        let isCaching = fields.map { cachingFields.contains(FieldText.lowered($0.name)) }
        let byPriority = fields.indices.filter { isCaching[$0] } + fields.indices.filter { !isCaching[$0] }
        var kept: Set<Int> = []
        var room = maxBytes
        for index in byPriority where kept.count < maxFields {
            let size = fields[index].name.utf8.count + fields[index].value.utf8.count
            guard size <= room else { continue }
            kept.insert(index)
            room -= size
        }
        return kept.sorted().map { fields[$0] }
    }

    /// Whether the field is a checksum that can be that of a part of the asset: of the body of a 206, or of one part of
    /// an upload. Amazon S3 states such values with ranges that are exactly a part, Azure with all ranges on request.
    ///
    /// `Repr-Digest` is always that of the whole (RFC 9530 §3), and `Content-Digest` is not stored.
    package static func isChecksumOfContent(_ name: String) -> Bool {
        let name = FieldText.lowered(name)
        return ["content-md5", "digest", "x-goog-hash", "x-ms-content-crc64"].contains(name)
            || name.hasPrefix("x-amz-checksum-")
    }

    /// As `of`, with the time of receipt if the response does not have exactly one valid `Date` (RFC 9110 §6.6.1).
    /// Without ``isChecksumOfContent(_:)`` unless the response is about the whole.
    static func dated(_ head: UpstreamHead, at now: Timestamp) -> HeaderList {
        var kept = of(head.headers)
        if head.status == 206 || head.status == 304 { kept.removeAll(where: isChecksumOfContent) }
        let dates = kept.values("Date")
        let isUsable = dates.count == 1 && HTTPDate.parse(dates[0], now: now) != nil
        if !isUsable { kept.set("Date", HTTPDate.format(now)) }
        return kept
    }

    /// Whether the service replaces the field: its own fields and those of CORS.
    private static func isReplaced(_ name: String) -> Bool {
        name.hasPrefix("larder-") && name != ownField || name.hasPrefix("access-control-")
    }
}
