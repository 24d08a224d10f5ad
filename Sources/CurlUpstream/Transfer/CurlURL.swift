import CCurl
import CacheCore
import Glibc

/// Parses and resolves URLs with `curl_url`, the same parser that libcurl uses for transfers.
enum CurlURL {
    /// Maximum length of a URL in bytes.
    static let maxBytes = 8192

    /// Parses an absolute http or https URL. Throws `.malformedRequest` with the reason. The message never contains the
    /// URL, which may have a signature.
    static func parse(_ text: String) throws(CacheError) -> UpstreamURL {
        let url = try ParsedURL()
        try check(text)
        try url.set(CURLUPART_URL, text, UInt32(CURLU_URLENCODE | CURLU_DISALLOW_USER))
        return try url.upstreamURL()
    }

    /// Resolves a redirect's `location` against `base`. Throws `.upstreamUnusable` if it is not a usable URL, and
    /// `.upstreamForbidden` if it leads from https to http.
    static func resolve(_ location: String, from base: UpstreamURL) throws(CacheError) -> UpstreamURL {
        let target: UpstreamURL
        do {
            let url = try ParsedURL()
            try check(location)
            try url.set(CURLUPART_URL, base.text, 0)
            try url.set(CURLUPART_URL, location, UInt32(CURLU_URLENCODE | CURLU_ALLOW_SPACE | CURLU_DISALLOW_USER))
            target = try url.upstreamURL()
        } catch {
            let code: CacheError.Code = error.code == .internal ? .internal : .upstreamUnusable()
            throw CacheError(code, "\(base.host) redirects to an unusable URL: \(error.message)")
        }
        if base.scheme == .https, target.scheme == .http {
            throw CacheError(.upstreamForbidden, "\(base.host) redirects from https to http, which is not allowed.")
        }
        return target
    }

    /// Checks length and control characters before libcurl receives the text.
    private static func check(_ text: String) throws(CacheError) {
        guard text.utf8.count <= maxBytes else {
            throw CacheError(.malformedRequest, "The URL is longer than \(maxBytes) bytes.")
        }
        guard text.utf8.allSatisfy({ $0 >= 32 && $0 != 127 }) else {
            throw CacheError(.malformedRequest, "The URL contains a control character.")
        }
    }
}

/// Owner of one `CURLU` handle, freed with it.
private struct ParsedURL: ~Copyable {
    private let pointer: OpaquePointer

    init() throws(CacheError) {
        guard let pointer = curl_url() else { throw CacheError(.internal, "No memory is left for a URL.") }
        self.pointer = pointer
    }

    deinit { curl_url_cleanup(pointer) }

    func set(_ part: CURLUPart, _ text: String, _ flags: UInt32) throws(CacheError) {
        let code = curl_url_set(pointer, part, text, flags)
        guard code == CURLUE_OK else { throw CacheError(.malformedRequest, Self.sentence(for: code)) }
    }

    /// The normalised URL. Throws `.malformedRequest` unless it has a supported scheme, a host, a valid port and no
    /// credentials.
    func upstreamURL() throws(CacheError) -> UpstreamURL {
        guard let scheme = get(CURLUPART_SCHEME).flatMap({ UpstreamURL.Scheme(rawValue: $0.lowercased()) }) else {
            throw CacheError(.malformedRequest, Self.sentence(for: CURLUE_UNSUPPORTED_SCHEME))
        }
        guard get(CURLUPART_USER) == nil, get(CURLUPART_PASSWORD) == nil else {
            throw CacheError(.malformedRequest, Self.sentence(for: CURLUE_USER_NOT_ALLOWED))
        }
        guard get(CURLUPART_ZONEID) == nil else {
            throw CacheError(.malformedRequest, "The URL's address has a zone identifier, which is not allowed.")
        }
        guard let named = asciiHost?.lowercased(), !named.isEmpty, named.utf8.allSatisfy({ $0 < 128 }) else {
            throw CacheError(.malformedRequest, Self.sentence(for: CURLUE_BAD_HOSTNAME))
        }
        guard let port = get(CURLUPART_PORT, UInt32(CURLU_DEFAULT_PORT)).flatMap({ Int($0) }), port > 0 else {
            throw CacheError(.malformedRequest, Self.sentence(for: CURLUE_BAD_PORT_NUMBER))
        }
        let path = get(CURLUPART_PATH) ?? "/"
        let query = get(CURLUPART_QUERY)
        let place = port == scheme.defaultPort ? named : "\(named):\(port)"
        let text = "\(scheme.rawValue)://\(place)\(path)" + (query.map { "?\($0)" } ?? "")
        let host = named.hasPrefix("[") ? String(named.dropFirst().dropLast()) : named
        return UpstreamURL(scheme: scheme, host: host, port: port, path: path, query: query, text: text)
    }

    /// The host in its ASCII form (IDNA). The IDN library decodes names in the locale's encoding, so this thread's
    /// locale is UTF-8 during the call.
    private var asciiHost: String? {
        guard let plain = get(CURLUPART_HOST) else { return nil }
        guard !plain.utf8.allSatisfy({ $0 < 128 }) else { return plain }
        guard let locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", nil) else { return nil }
        let before = uselocale(locale)
        defer {
            uselocale(before)
            freelocale(locale)
        }
        return get(CURLUPART_HOST, UInt32(CURLU_PUNYCODE))
    }

    private func get(_ part: CURLUPart, _ flags: UInt32 = 0) -> String? {
        var text: UnsafeMutablePointer<CChar>?
        guard curl_url_get(pointer, part, &text, flags) == CURLUE_OK, let text else { return nil }
        defer { curl_free(text) }
        return String(cString: text)
    }

    /// The message for an error code of `curl_url`.
    private static func sentence(for code: CURLUcode) -> String {
        switch code {
        case CURLUE_UNSUPPORTED_SCHEME, CURLUE_BAD_SCHEME, CURLUE_NO_SCHEME:
            "The URL must begin with http:// or https://."
        case CURLUE_USER_NOT_ALLOWED, CURLUE_BAD_USER, CURLUE_BAD_LOGIN, CURLUE_BAD_PASSWORD:
            "The URL contains a user name or password; set credentials as the origin's headers instead."
        case CURLUE_BAD_PORT_NUMBER: "The URL's port is not a number from 1 to 65535."
        case CURLUE_NO_HOST, CURLUE_BAD_HOSTNAME, CURLUE_BAD_IPV6: "The URL has no valid host name or address."
        case CURLUE_BAD_SLASHES: "The URL's scheme is not followed by two slashes."
        default: "The URL cannot be parsed: \(String(cString: curl_url_strerror(code)).lowercased())."
        }
    }
}
