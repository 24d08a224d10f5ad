package import CacheCore

/// The result of a probe.
package struct ProbeReport: Sendable {
    /// The source of the metadata: a request, or the cache.
    package enum Method: String, Sendable { case head = "HEAD", get = "GET", cached }

    package var assetID: AssetID
    package var key: String
    /// The URL without its query; it may be a signature.
    package var url: String
    /// The URL after redirects, likewise without its query.
    package var finalURL: String
    package var generation: Generation
    /// The uniform type identifier for AVFoundation; nil if none is known.
    package var uti: String?
    package var cachedBytes: Int64
    package var method: Method
    /// The status of the response; nil if no request was sent.
    package var upstreamStatus: Int?
    package var redirects: Int
    package var timings: TransferTimings
}
