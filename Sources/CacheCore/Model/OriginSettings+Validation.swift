extension OriginSettings {
    /// The longest wait that may be set.
    package static let maxWait = Duration.seconds(86_400)
    /// The longest lifetime an administrator may give.
    package static let maxLifetime = Duration.seconds(CacheControl.maxSeconds)
    /// The most fields that `ignoreVary` may name.
    package static let maxIgnoredFields = 32
    /// The most that `mirrors` may name.
    package static let maxMirrors = 8
    /// The longest cached run that may be fetched again with the gaps beside it.
    package static let maxGapMergeBytes: Int64 = 16 << 20
    /// The most that may be fetched beyond what a reader asked for.
    package static let maxSpeculativeBytes: Int64 = 1 << 30
    /// How many failures in a row may be what opens a circuit.
    package static let circuitFailures = 1...1000
    /// The longest that a circuit may stay open at first.
    package static let maxCircuitPause = Duration.seconds(3600)

    /// Fields an origin may not set: they belong to the transfer, or would make answers that cannot be cached.
    package static let forbiddenHeaders = [
        "Accept-Encoding", "Connection", "Content-Length", "Expect", "Host", "If-Match", "If-Modified-Since",
        "If-None-Match", "If-Range", "If-Unmodified-Since", "Keep-Alive", "Proxy-Authorization", "Proxy-Connection",
        "Range", "TE", "Trailer", "Transfer-Encoding", "Upgrade",
    ]

    /// Throws `.invalidField` with the API's name of the first field that cannot be used.
    package func validate() throws(CacheError) {
        if let fault = BaseURL.fault(in: baseURL) { throw CacheError(.invalidField("baseURL"), fault) }
        try validateMirrors()
        try validateHeaders()
        try validateFreshness()
        try validateKeyQuery()
        try validateTimeouts()
        try require((0...20).contains(retries), "retries", "A broken transfer is begun again 0 to 20 times.")
        try require((1...1024).contains(maxTransfers), "maxTransfers", "An origin has 1 to 1024 transfers at once.")
        try require(
            maxBytesPerSecond.map { $0 > 0 } ?? true, "maxBytesPerSecond",
            "The bytes per second are above 0, or null for no limit.")
        try validateFills()
        try require(
            tls.caFile.map { !$0.isEmpty && !$0.utf8.contains(0) } ?? true, "tls.caFile", "The CA file is a path.")
        try validateRules()
        try validateStorage()
        try validateFiles()
    }

    /// The first mirror that is the base URL, or a mirror before it, once more.
    package var repeatedMirror: Int? {
        mirrors.indices.first { index in
            ([baseURL] + mirrors[..<index]).contains { BaseURL.isSamePlace($0, mirrors[index]) }
        }
    }

    /// Whether `path` leads to something below the directory it is taken from: it is relative, and none of its components
    /// is empty, `.` or `..`.
    package static func isInside(path: String) -> Bool {
        path.utf8.count <= 1024 && !path.utf8.contains(0)
            && path.split(separator: "/", omittingEmptySubsequences: false).allSatisfy {
                !["", ".", ".."].contains($0)
            }
    }

    private func validateMirrors() throws(CacheError) {
        try require(
            mirrors.count <= Self.maxMirrors, "mirrors", "An origin has at most \(Self.maxMirrors) mirrors.")
        for (index, mirror) in mirrors.enumerated() {
            if let fault = BaseURL.fault(in: mirror) { throw CacheError(.invalidField("mirrors[\(index)]"), fault) }
        }
        if let index = repeatedMirror {
            throw CacheError(.invalidField("mirrors[\(index)]"), "The same URL is the base URL, or a mirror already.")
        }
    }

    private func validateFills() throws(CacheError) {
        try require(
            (0...(1 << 30)).contains(readAheadBytes), "readAheadBytes", "The read-ahead is at most 1 GiB, not negative."
        )
        try require(finishIfRemainingBytes >= 0, "finishIfRemainingBytes", "What is finished is not negative.")
        try require(
            finishIfRemainingPercent.map { (0...100).contains($0) } ?? true, "finishIfRemainingPercent",
            "What is finished is 0 to 100 percent, or null.")
        try require(
            (0...Self.maxGapMergeBytes).contains(gapMergeBytes), "gapMergeBytes",
            "What is read through is at most 16 MiB, not negative.")
        try require(
            (0...Self.maxSpeculativeBytes).contains(speculativeBytes), "speculativeBytes",
            "What is fetched unasked is at most 1 GiB, not negative.")
        guard let circuitBreaker else { return }
        try require(
            Self.circuitFailures.contains(circuitBreaker.failures), "circuitBreaker.failures",
            "1 to 1000 failures in a row open a circuit.")
        try require(
            circuitBreaker.pause > .zero && circuitBreaker.pause <= Self.maxCircuitPause, "circuitBreaker.pauseSeconds",
            "A circuit stays open for more than 0 and at most 3600 seconds.")
    }

    private func validateStorage() throws(CacheError) {
        try require(
            storeRules.maxBytes.map { $0 >= 0 } ?? true, "storeRules.maxBytes",
            "The length is not negative, or null for any.")
        for (name, types) in [("never", storeRules.never), ("always", storeRules.always)] {
            try require(
                types.count <= Self.maxStoreTypes && types.allSatisfy { StoreRules.isPattern($0) },
                "storeRules.\(name)", "At most \(Self.maxStoreTypes) media types, as video/mp4 or video/*.")
        }
        try quota.validate(at: "quota")
    }

    private func validateHeaders() throws(CacheError) {
        try require(headers.fields.count <= 64, "headers", "An origin has at most 64 header fields.")
        for field in headers.fields {
            try require(FieldText.isToken(field.name), "headers", "A header field's name is not a token.")
            try require(
                !Self.forbiddenHeaders.contains { HeaderList.same($0, field.name) }, "headers.\(field.name)",
                "The transfer sets \(field.name) itself.")
            try require(
                FieldText.isValue(field.value) && field.value.utf8.count <= 8192, "headers.\(field.name)",
                "The value of \(field.name) is too long, or holds control characters or blanks at an end.")
        }
    }

    private func validateFreshness() throws(CacheError) {
        guard case .ttl(let duration) = freshness else { return }
        try require(
            duration >= .zero && duration <= Self.maxLifetime, "freshness.ttlSeconds",
            "The lifetime is not negative and at most 2^31 seconds.")
    }

    private func validateKeyQuery() throws(CacheError) {
        switch keyQuery {
        case .all, .none: return
        case .include(let names), .exclude(let names):
            try require(
                (1...256).contains(names.count) && names.allSatisfy { !$0.isEmpty && $0.utf8.count <= 256 }, "keyQuery",
                "Between 1 and 256 names of query parameters, none empty.")
        }
    }

    private func validateTimeouts() throws(CacheError) {
        let waits: [(name: String, duration: Duration?)] = [
            ("connectSeconds", timeouts.connect), ("firstByteSeconds", timeouts.firstByte),
            ("idleSeconds", timeouts.idle), ("totalSeconds", timeouts.total), ("readSeconds", readTimeout),
        ]
        for wait in waits {
            guard let duration = wait.duration else { continue }
            try require(
                duration > .zero && duration <= Self.maxWait, "timeouts.\(wait.name)",
                "A wait is above 0 seconds and at most a day.")
        }
    }

    private func validateRules() throws(CacheError) {
        try require(
            staleIfError.map { $0 >= .zero && $0 <= Self.maxLifetime } ?? true, "staleIfErrorSeconds",
            "Stale use lasts at most 2^31 seconds and is not negative.")
        try require(
            negativeCaching.map { $0 > .zero && $0 <= Self.maxLifetime } ?? true, "negativeCaching.maxSeconds",
            "A refusal is repeated for more than 0 and at most 2^31 seconds.")
        try require(
            ignoreVary.count <= Self.maxIgnoredFields, "ignoreVary",
            "At most \(Self.maxIgnoredFields) header fields are ignored.")
        for (index, name) in ignoreVary.enumerated() {
            try require(
                FieldText.isToken(name) && name.utf8.count <= 256 && name != "*", "ignoreVary[\(index)]",
                "That is no name of a header field.")
        }
    }

    private func validateFiles() throws(CacheError) {
        try require(
            credentialsFile.map(Self.isInside(path:)) ?? true, "credentialsFile",
            "The file of credentials is a relative path that does not leave its directory.")
        guard case .file(let path) = fallback else { return }
        try require(
            Self.isInside(path: path), "fallback.file",
            "The fallback is a relative path that does not leave its directory.")
    }

    private func require(_ holds: Bool, _ field: String, _ message: String) throws(CacheError) {
        if !holds { throw CacheError(.invalidField(field), message) }
    }
}
