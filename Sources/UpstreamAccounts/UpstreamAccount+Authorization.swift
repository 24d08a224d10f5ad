package import CacheCore

extension UpstreamAccount {
    /// Authorizes a request to the origin's own host. Called for each request and each redirect, just before it is
    /// sent.
    ///
    /// - Parameters:
    ///   - url: The URL of this request.
    ///   - headers: The fields of the request, with `Range` as it is sent. Fields that a proxy must not change are
    ///     signed: `Range`, `Content-Type`, `Content-MD5`, `X-Amz-*` and `X-Goog-*`.
    ///   - body: The body; for S3 it is not signed.
    ///   - region: The region of the bucket, if it is not that of the settings.
    /// - Throws: `.upstreamUnreachable` if there are no usable credentials.
    package func authorize(
        method: String, url: UpstreamURL, headers: HeaderList, body: [UInt8] = [], region: String? = nil,
        at now: Timestamp
    ) throws(CacheError) -> AuthorizedRequest {
        let (held, skew, error) = held(at: now)
        guard let held else {
            let reason = error.map { " \($0)" } ?? ""
            throw CacheError(
                .upstreamUnreachable(), "The origin \"\(origin)\" has no usable credentials.\(reason)")
        }
        var request = AuthorizedRequest(url: url, headers: [:], revision: held.revision)
        switch held.material {
        case .keys(let keys):
            sign(&request, method, headers, body, with: keys, for: region ?? settings.region, at: now + skew)
        case .token(let token): request.headers.append("Authorization", "\(settings.scheme.rawValue) \(token)")
        case .signature(let signature):
            request.url = url.replacing(path: url.path, query: signature.added(to: url.query))
        }
        return request
    }

    /// Adds the fields of signature version 4.
    ///
    /// The path and the query are sent exactly as they are signed: servers disagree about characters that may stand
    /// unencoded, and S3 reads `+` in a path as a space.
    private func sign(
        _ request: inout AuthorizedRequest, _ method: String, _ headers: HeaderList, _ body: [UInt8],
        with keys: AccessKeys, for region: String, at time: Timestamp
    ) {
        let signature = SignatureV4(keys: keys, region: region, service: settings.service)
        let query = SignatureQuery(request.url.query)
        let path = signature.isS3 ? URIEncoding.reencoded(path: request.url.path) : request.url.path
        request.url = request.url.replacing(path: path, query: query.sent)
        let payload: SignatureV4.Payload = signature.isS3 ? .unsigned : .hashed(body)

        request.headers.append("X-Amz-Date", SignatureV4.date(time))
        if signature.isS3 { request.headers.append("X-Amz-Content-Sha256", payload.text) }
        if let token = keys.sessionToken { request.headers.append("X-Amz-Security-Token", token) }
        var signed = HeaderList([.init("Host", request.url.hostField)])
        for field in headers.fields where Self.isSigned(field.name) { signed.append(field.name, field.value) }
        for field in request.headers.fields { signed.set(field.name, field.value) }
        let form = SignatureV4.Request(method: method, path: path, query: query, headers: signed, payload: payload)
        request.headers.append("Authorization", signature.authorization(for: form, at: time))
    }

    private static func isSigned(_ name: String) -> Bool {
        let name = FieldText.lowered(name)
        return ["range", "content-type", "content-md5"].contains(name) || name.hasPrefix("x-amz-")
            || name.hasPrefix("x-goog-")
    }
}

extension UpstreamURL {
    /// The URL of the same host with another path and query.
    func replacing(path: String, query: String?) -> UpstreamURL {
        let tail = query.map { "?" + $0 } ?? ""
        return UpstreamURL(
            scheme: scheme, host: host, port: port, path: path, query: query,
            text: "\(scheme.rawValue)://\(hostField)\(path)\(tail)")
    }
}
