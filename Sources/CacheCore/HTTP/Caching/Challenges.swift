/// Challenges of upstreams to readers (RFC 9110 §11.6.1).
package enum Challenges {
    /// The maximum number of bytes of all values together; further values are dropped.
    private static let maxBytes = 8 << 10

    /// The values of `WWW-Authenticate` of a 401, unchanged.
    ///
    /// - Parameter url: The requested URL, if it was requested with the reader's own `Authorization`; nil gives none.
    ///   Another server, after a redirect, gives none either, because the reader's credentials are not sent there.
    package static func of(_ head: UpstreamHead, toReaderOf url: String?) -> [String] {
        guard let url, head.status == 401,
            head.finalURL.isEmpty || UpstreamURL.address(of: head.finalURL) == UpstreamURL.address(of: url)
        else { return [] }
        var room = maxBytes
        return head.headers.values("WWW-Authenticate").filter { value in
            room -= value.utf8.count
            return room >= 0 && !value.isEmpty && FieldText.isValue(value)
        }
    }
}
