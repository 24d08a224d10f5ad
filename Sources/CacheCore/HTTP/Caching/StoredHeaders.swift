/// Which header fields of a response are kept and passed on with the content.
package enum StoredHeaders {
    /// No more fields are kept than this…
    package static let maxFields = 256
    /// …and no more bytes of names and values together.
    package static let maxBytes = 64 << 10

    /// Not kept (RFC 9111 §3.1): fields of the connection (RFC 9110 §7.6.1) and of the proxy, what is known in another
    /// form, made anew for every response or said of one message's bytes, cookies, and what would speak for the host that serves rather than for the
    /// asset.
    private static let dropped: Set<String> = [
        "accept-ranges", "age", "alt-svc", "clear-site-data", "connection", "content-digest", "content-encoding",
        "content-length", "content-range", "content-type", "etag", "keep-alive", "last-modified", "proxy-authenticate",
        "proxy-authentication-info", "proxy-authorization", "proxy-connection", "set-cookie", "set-cookie2",
        "strict-transport-security", "te", "trailer", "transfer-encoding", "upgrade", "www-authenticate",
        "x-request-id",
    ]

    /// The fields to keep, in order and number: not those that `Connection` names, or a qualified `no-cache` or
    /// `private`; nor this service's own (`Larder-…`), those of its CORS rules, illegal ones, and those beyond the limits.
    package static func of(_ headers: HeaderList) -> HeaderList {
        fields(of: headers, areWithheld: false)
    }

    /// The fields that a qualified `no-cache` or `private` names: they belong to the response they came with, and are not
    /// kept (RFC 9111 §5.2.2.4, §5.2.2.7).
    static func withheld(_ headers: HeaderList) -> HeaderList { fields(of: headers, areWithheld: true) }

    private static func fields(of headers: HeaderList, areWithheld: Bool) -> HeaderList {
        let withheld = CacheControl.effective(in: headers).withheldFields
        if areWithheld, withheld.isEmpty { return [:] }
        let chosen = passedOn(headers).filter { withheld.contains(FieldText.lowered($0.name)) == areWithheld }
        return HeaderList(withinLimits(chosen))
    }

    /// `Larder-Cache-Control` is for this cache alone: kept, and not passed on.
    static let ownField = "larder-cache-control"

    private static func passedOn(_ headers: HeaderList) -> [HeaderList.Field] {
        let named = headers.values("Connection").flatMap { FieldText.members(of: $0) }.map { FieldText.lowered($0) }
        let dropped = dropped.union(named)
        return headers.fields.filter { field in
            let name = FieldText.lowered(field.name)
            return !dropped.contains(name) && !isReplaced(name) && FieldText.isToken(name)
                && FieldText.isValue(field.value)
        }
    }

    /// Fields that a downstream cache must obey (RFC 9111 §4.1, §5.2, §5.3); the limits cut other fields first.
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

    /// As `of`, and with the time of receipt where the response has not one usable `Date` (RFC 9110 §6.6.1). The sum of a
    /// part says nothing of the asset.
    static func dated(_ head: UpstreamHead, at now: Timestamp) -> HeaderList {
        var kept = of(head.headers)
        if head.status == 206 { kept.remove("Content-MD5") }
        let dates = kept.values("Date")
        let isUsable = dates.count == 1 && HTTPDate.parse(dates[0], now: now) != nil
        if !isUsable { kept.set("Date", HTTPDate.format(now)) }
        return kept
    }

    private static func isReplaced(_ name: String) -> Bool {
        name.hasPrefix("larder-") && name != ownField || name.hasPrefix("access-control-")
    }
}
