package import CacheCore
package import CacheEngine

/// The body of `POST /v1/origins/{name}/test`.
package struct OriginTestRequest: Sendable {
    private struct Document: Decodable {
        var settings: JSON?
        var path: Checked<PathRule>?
    }

    private enum PathRule: TextRule {
        static let expectation = "A path below the base URL, of 1 to 4096 bytes, is expected here."
        static func permits(_ text: String) -> Bool { (1...4096).contains(text.utf8.count) }
    }

    /// The members of the schema.
    package static var keys: [String] { JSON.keys(of: Document.self) }

    /// Nil: those of the mounted origin.
    package var settings: OriginSettings?
    /// Nil: the base URL is requested.
    package var path: String?

    /// - Parameters:
    ///   - name: The name in the request's path.
    ///   - present: The stored settings; nil for a new origin.
    package init(_ json: JSON, name: String, present: OriginSettings?) throws(CacheError) {
        let document = try json.decode(Document.self)
        path = document.path?.text
        do throws(CacheError) {
            settings = try document.settings.map { (json) throws(CacheError) in
                try OriginSettings(json, name: name, present: present)
            }
        } catch {
            throw error.below("settings")
        }
    }
}

/// The `OriginTest` schema.
package struct OriginTestDocument: Codable, Sendable {
    package var outcome: String
    package var url, finalUrl: String
    package var status: Int?
    package var code, detail: String?
    package var acceptsRanges: Bool?
    package var contentLength: Int64?
    package var contentType, httpVersion: String?
    package var timings: TimingsDocument
}

extension OriginTestDocument {
    package init(_ test: OriginTest) {
        let head = test.head
        let length: Int64? =
            switch head?.headers["Content-Range"].flatMap(ContentRange.parse) {
            case .run(_, let length): length
            case .unsatisfied(let length): length
            case nil: head?.headers["Content-Length"].flatMap { Int64($0) }
            }
        self.init(
            outcome: test.outcome.rawValue, url: test.url, finalUrl: test.finalURL, status: head?.status,
            code: test.error?.code.name, detail: test.error?.message,
            acceptsRanges: head.flatMap { $0.status == 206 ? true : $0.headers["Accept-Ranges"].map { $0 == "bytes" } },
            contentLength: length,
            contentType: head?.headers["Content-Type"], httpVersion: head?.httpVersion,
            timings: TimingsDocument(test.timings))
    }
}
