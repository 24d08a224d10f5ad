import CCurl
import CacheCore

/// The base URL of a service: scheme, host, port and an optional path, without a slash at its end. Or a Unix socket, as
/// in `unix:/run/larder.sock`.
struct ServiceAddress: Hashable, Sendable, CustomStringConvertible {
    /// An address that cannot be used; its description is a sentence.
    struct Fault: Error, CustomStringConvertible {
        let description: String
    }

    static let standard = "http://127.0.0.1:8080"

    let description: String
    /// The base URL of requests.
    let url: String
    /// The path of the Unix socket; nil: the service listens at the host of the URL.
    let socketPath: String?

    /// The address of a listener.
    init(_ listener: ListenAddress, isEncrypted: Bool) {
        description = "\(listener)"
        let scheme = isEncrypted ? "https" : "http"
        switch listener {
        case .host: (url, socketPath) = ("\(scheme)://\(listener)", nil)
        case .unix(let path): (url, socketPath) = ("\(scheme)://localhost", path)
        }
    }

    init(_ text: String) throws(Fault) {
        guard !text.hasPrefix("unix:") else {
            guard case .unix(let path)? = ListenAddress(text) else {
                throw Fault(description: "\"\(text)\" is not unix: and the absolute path of a socket.")
            }
            (description, url, socketPath) = (text, "http://localhost", path)
            return
        }
        guard let url = curl_url() else { throw Fault(description: "No memory is left for a URL.") }
        defer { curl_url_cleanup(url) }
        func part(_ part: CURLUPart) -> String? {
            var value: UnsafeMutablePointer<CChar>?
            guard curl_url_get(url, part, &value, 0) == CURLUE_OK, let value else { return nil }
            defer { curl_free(value) }
            return String(cString: value)
        }
        guard !text.utf8.contains(0), curl_url_set(url, CURLUPART_URL, text, 0) == CURLUE_OK,
            ["http", "https"].contains(part(CURLUPART_SCHEME))
        else { throw Fault(description: "\"\(text)\" is not a URL such as \(Self.standard).") }
        guard part(CURLUPART_USER) == nil, part(CURLUPART_PASSWORD) == nil else {
            throw Fault(description: "The URL contains credentials; set LARDER_TOKEN or LARDER_TOKEN_FILE instead.")
        }
        guard part(CURLUPART_QUERY) == nil, part(CURLUPART_FRAGMENT) == nil, var whole = part(CURLUPART_URL) else {
            throw Fault(description: "\"\(text)\" has a query or a fragment; remove it.")
        }
        while whole.last == "/" { whole.removeLast() }
        (description, self.url, socketPath) = (whole, whole, nil)
    }
}
