package import CacheCore
package import CacheEngine

/// The `ProbeReport` schema.
package struct ProbeDocument: Codable, Sendable {
    var outcome: String
    var assetId: AssetID
    var key, url, finalUrl: String
    var contentLength: Int64?
    var contentType: String?
    var contentTypeFrom: String
    var uti: String?
    var acceptsRanges: Bool?
    var etag, lastModified: String?
    var freshUntilAt: Timestamp?
    var cachedBytes: Int64
    var method: String
    var upstreamStatus: Int?
    var redirects: Int
    var timings: TimingsDocument
}

extension ProbeDocument {
    package init(_ report: ProbeReport) {
        let generation = report.generation
        self.init(
            outcome: "succeeded", assetId: report.assetID, key: report.key, url: report.url, finalUrl: report.finalURL,
            contentLength: generation.length, contentType: generation.contentType,
            contentTypeFrom: generation.contentTypeFrom.rawValue, uti: report.uti,
            acceptsRanges: generation.acceptsRanges, etag: generation.validators.entityTag?.description,
            lastModified: generation.validators.lastModified, freshUntilAt: generation.freshUntil,
            cachedBytes: report.cachedBytes, method: report.method.rawValue, upstreamStatus: report.upstreamStatus,
            redirects: report.redirects, timings: TimingsDocument(report.timings))
    }
}

/// The `Timings` schema.
package struct TimingsDocument: Codable, Sendable {
    package var nameLookupSeconds, connectSeconds, tlsSeconds, firstByteSeconds, totalSeconds: Double?
}

extension TimingsDocument {
    package init(_ timings: TransferTimings) {
        self.init(
            nameLookupSeconds: timings.nameLookup?.documentSeconds, connectSeconds: timings.connect?.documentSeconds,
            tlsSeconds: timings.tls?.documentSeconds, firstByteSeconds: timings.firstByte?.documentSeconds,
            totalSeconds: timings.total?.documentSeconds)
    }
}

/// The result of one probe of many.
enum ProbeResultDocument: Encodable, Sendable {
    case report(ProbeDocument)
    case problem(ProblemDocument)

    func encode(to encoder: any Encoder) throws {
        switch self {
        case .report(let report): try report.encode(to: encoder)
        case .problem(let problem): try problem.encode(to: encoder)
        }
    }
}
