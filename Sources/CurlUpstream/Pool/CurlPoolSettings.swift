import CacheCore

/// Configuration of a `CurlWorkerPool`.
package struct CurlPoolSettings: Sendable {
    /// Number of worker threads.
    package var workers: Int
    /// Maximum concurrent transfers of all origins.
    package var maxTransfers: Int
    /// Size of a coalescing buffer in bytes: body bytes are passed to the sink when it is full, and at the end of a
    /// loop iteration.
    let bufferBytes = 256 << 10
    /// Value of the `User-Agent` field.
    package var userAgent: String
    /// Maximum header bytes of one response, including interim responses and trailers.
    let maxHeaderBytes = 256 << 10
    /// Maximum header lines of one response, counted like the bytes.
    var maxHeaderLines: Int
    /// Concurrent transfers of one host per worker before another worker is used too.
    var transfersPerWorker: Int
    /// Maximum rate of all transfers together in bytes per second; nil: no limit.
    package var maxBytesPerSecond: Int64?
    /// Maximum open connections of a worker, idle ones and those in use.
    let connectionsPerWorker = 256
    /// The maximum age of a resolved name.
    package var nameMaxAge = Duration.seconds(30)
    /// The maximum age of a kept connection.
    package var connectionMaxAge = Duration.seconds(600)
    /// Whether the workers have the priority of threads that serve readers.
    private(set) var isRaised = true
    /// Returns the kind of a refused address (4 or 16 bytes in network order), or nil if it is allowed. Tests replace
    /// it.
    var refusal: @Sendable (_ address: [UInt8]) -> String? = AddressGuard.refusal(of:)

    /// `workers` nil: one per core, at least two. Values below a parameter's minimum are raised to it.
    package init(
        workers: Int? = nil, maxTransfers: Int = 64, userAgent: String = "larder/0.1", maxHeaderLines: Int = 1000,
        transfersPerWorker: Int = 8, maxBytesPerSecond: Int64? = nil
    ) {
        self.workers = max(1, workers ?? max(2, WorkerThread.coreCount))
        self.maxTransfers = max(1, maxTransfers)
        self.userAgent = userAgent
        self.maxHeaderLines = maxHeaderLines
        self.transfersPerWorker = max(1, transfersPerWorker)
        self.maxBytesPerSecond = maxBytesPerSecond
    }

    /// Settings of a pool for requests of the service itself, apart from the upstreams: one worker of normal priority.
    /// Every address is allowed, because only the administrator chooses the servers.
    package static func ownRequests(userAgent: String) -> Self {
        var settings = guardedRequests(userAgent: userAgent)
        settings.refusal = { _ in nil }
        return settings
    }

    /// Settings of such a pool with the guard of addresses.
    package static func guardedRequests(userAgent: String) -> Self {
        var settings = Self(workers: 1, userAgent: userAgent)
        settings.isRaised = false
        return settings
    }

    /// `nameMaxAge` in the unit of libcurl, rounded up.
    var nameSeconds: Int { Int(nameMaxAge.inSeconds.rounded(.up)) }
    /// `connectionMaxAge` in the unit of libcurl, rounded up; 0 would mean no limit.
    var connectionSeconds: Int { max(1, Int(connectionMaxAge.inSeconds.rounded(.up))) }
}
