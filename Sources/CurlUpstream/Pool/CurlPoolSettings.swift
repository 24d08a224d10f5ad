import CacheCore

/// How a pool of curl workers is set up.
package struct CurlPoolSettings: Sendable {
    /// Worker threads.
    package var workers: Int
    /// Transfers at once, of all origins.
    package var maxTransfers: Int
    /// What is gathered of a body before it goes to the sink.
    package var bufferBytes: Int
    package var userAgent: String
    /// All header bytes of one response, interim responses and trailers included.
    package var maxHeaderBytes: Int
    /// All header lines of one response, likewise.
    package var maxHeaderLines: Int
    /// Transfers of one host that a worker carries before another worker takes some.
    package var transfersPerWorker: Int
    /// For all transfers together; nil: no limit.
    package var maxBytesPerSecond: Int64?
    /// Connections a worker keeps open at most, those in use among them.
    package var connectionsPerWorker: Int
    /// Why an address is refused; tests put a rule of their own here.
    var refusal: @Sendable (_ address: [UInt8]) -> String? = AddressGuard.refusal(of:)

    /// `workers`: nil is one for each core, two at least.
    package init(
        workers: Int? = nil, maxTransfers: Int = 64, bufferBytes: Int = 256 << 10, userAgent: String = "larder/0.1",
        maxHeaderBytes: Int = 256 << 10, maxHeaderLines: Int = 1000, transfersPerWorker: Int = 8,
        maxBytesPerSecond: Int64? = nil, connectionsPerWorker: Int = 256
    ) {
        self.workers = max(1, workers ?? max(2, WorkerThread.coreCount))
        self.maxTransfers = max(1, maxTransfers)
        self.bufferBytes = max(16 << 10, bufferBytes)
        self.userAgent = userAgent
        self.maxHeaderBytes = maxHeaderBytes
        self.maxHeaderLines = maxHeaderLines
        self.transfersPerWorker = max(1, transfersPerWorker)
        self.maxBytesPerSecond = maxBytesPerSecond
        self.connectionsPerWorker = max(1, connectionsPerWorker)
    }
}
