import CacheCore

/// A shared access signature of Azure Storage: parameters that are added to the query of each request.
///
/// Source: Azure Storage REST API Reference, "Create a service SAS" and "Create an account SAS".
struct SharedAccessSignature: Hashable, Sendable {
    /// The parameters as in the file, without a leading `?`. They contain a secret.
    let query: String
    /// The signed expiry (`se`); nil if a stored access policy determines it.
    let expiresAt: Timestamp?

    /// Parses the content of a file: one line. Throws `.upstreamProtocol`; the error does not contain the line.
    init(_ bytes: [UInt8]) throws(CacheError) {
        var text = TokenText.trimmed(bytes)[...]
        if text.first == "?" { text = text.dropFirst() }
        guard text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "#") }) else {
            throw CacheError(.upstreamProtocol, "The SAS file must contain one line with a query string.")
        }
        query = String(text)
        let parameters = QueryParameters(query)
        guard !(parameters["sig"] ?? "").isEmpty else {
            throw CacheError(.upstreamProtocol, "The query string in the SAS file has no sig parameter.")
        }
        guard let end = parameters["se"] else {
            expiresAt = nil
            return
        }
        guard let time = SignedLinkExpiry.azureTime(end) else {
            throw CacheError(.upstreamProtocol, "The se parameter in the SAS file is not a time.")
        }
        expiresAt = time
    }

    /// The query of a request with the signature's parameters. They replace parameters of the same name.
    func added(to query: String?) -> String {
        let own = Set(self.query.split(separator: "&").map { $0.prefix { $0 != "=" } })
        let others = (query ?? "").split(separator: "&").filter { !own.contains($0.prefix { $0 != "=" }) }
        return (others + [self.query[...]]).joined(separator: "&")
    }
}

extension SharedAccessSignature: CustomStringConvertible {
    /// Without the signature.
    var description: String { "SharedAccessSignature" }
}
