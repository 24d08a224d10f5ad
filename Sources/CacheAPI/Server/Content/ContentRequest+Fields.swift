import CacheCore
import HTTPTypes
import ReaderAccess

extension ContentRequest {
    /// Makes a content request with the fields that its response may depend on (RFC 9111 §4.1).
    ///
    /// These are the end-to-end fields without routing information, message framing and Larder's own fields.
    /// Credentials are apart, for origins that forward them.
    ///
    /// - Parameter forwardsAuthorization: Whether `Authorization` may be a credential of the upstream.
    init(_ call: ContentCall, forwardsAuthorization: Bool = true) {
        self.init(isHead: call.isHead, fields: call.fields)
        for authorization in call.fields[values: .authorization] where forwardsAuthorization {
            credentials.append("Authorization", authorization)
        }
        for cookies in call.fields[values: .cookie].compactMap(Self.withoutSignature) {
            credentials.append("Cookie", cookies)
        }
    }

    /// The same for the fields of any request. The fields that `Connection` lists are removed too (RFC 9110 §7.6.1).
    init(isHead: Bool, fields given: HTTPFields) {
        let named = given[values: .connection].flatMap { FieldText.members(of: $0) }
        let withheld = Self.withheld.union(named.map { FieldText.lowered($0) })
        var fields = HeaderList()
        for field in given {
            let name = field.name.canonicalName
            guard !withheld.contains(name), !name.hasPrefix("x-forwarded-"), !name.hasPrefix("larder-") else {
                continue
            }
            fields.append(field.name.rawName, field.value)
        }
        let loops = given[values: .cdnLoop].filter { !$0.isEmpty }
        self.init(
            isHead: isHead, headers: fields, cdnLoop: loops.isEmpty ? nil : loops.joined(separator: ", "))
    }

    /// The cookies without the one that authorizes requests to this service (RFC 9246 §3.3); nil if none is left.
    private static func withoutSignature(_ cookies: String) -> String? {
        let name = SigningPackage.name + "="
        guard cookies.contains(name) else { return cookies }
        let kept = cookies.split(separator: ";").filter { !FieldText.trimmed($0).hasPrefix(name) }
        return kept.isEmpty ? nil : kept.joined(separator: ";")
    }

    /// Names of fields that are never passed on, in lower case.
    private static let withheld: Set<String> = [
        "authorization", "cdn-loop", "connection", "content-length", "cookie", "cookie2", "expect", "forwarded", "host",
        "http2-settings", "keep-alive", "max-forwards", "proxy-authenticate", "proxy-authorization",
        "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "via", "x-real-ip", "x-request-id",
    ]
}
