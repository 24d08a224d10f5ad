package import CacheCore

/// What a probe found out.
package struct ProbeReport: Sendable {
    package enum Method: String, Sendable { case head = "HEAD", get = "GET", cached }

    package var assetID: AssetID
    package var key: String
    /// Without a query that may be a signature.
    package var url: String
    package var finalURL: String
    package var generation: Generation
    /// The AVFoundation type identifier, where one is known.
    package var uti: String?
    package var cachedBytes: Int64
    package var method: Method
    /// Nil where nothing was asked.
    package var upstreamStatus: Int?
    package var redirects: Int
    package var timings: TransferTimings

    package init(
        assetID: AssetID, key: String, url: String, finalURL: String, generation: Generation, uti: String?,
        cachedBytes: Int64, method: Method, upstreamStatus: Int?, redirects: Int, timings: TransferTimings
    ) {
        self.assetID = assetID
        self.key = key
        self.url = url
        self.finalURL = finalURL
        self.generation = generation
        self.uti = uti
        self.cachedBytes = cachedBytes
        self.method = method
        self.upstreamStatus = upstreamStatus
        self.redirects = redirects
        self.timings = timings
    }
}

/// A probe that did not succeed: why, and how far it came.
package struct ProbeFailure: Error, Sendable {
    package var error: CacheError
    package var timings: TransferTimings

    package init(error: CacheError, timings: TransferTimings = TransferTimings()) {
        self.error = error
        self.timings = timings
    }
}
