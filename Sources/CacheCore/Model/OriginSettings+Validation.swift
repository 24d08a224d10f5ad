/// Limits and validation of an origin's settings.
extension OriginSettings {
    /// The largest timeout that can be set.
    package static let maxWait = Duration.seconds(86_400)
    /// The longest lifetime that can be set.
    package static let maxLifetime = Duration.seconds(CacheControl.maxSeconds)
    /// The largest number of fields in `ignoreVary`.
    package static let maxIgnoredFields = 32
    /// The largest number of URLs in `mirrors`.
    package static let maxMirrors = 8
    /// The largest `gapMergeBytes`.
    package static let maxGapMergeBytes: Int64 = 16 << 20
    /// The largest `speculativeBytes`.
    package static let maxSpeculativeBytes: Int64 = 1 << 30
    /// The permitted numbers of consecutive failures that open a circuit.
    package static let circuitFailures = 1...1000
    /// The longest first pause of an open circuit.
    package static let maxCircuitPause = Duration.seconds(3600)

    /// Header fields that an origin may not set: Larder sets them itself, or they would cause responses that cannot be
    /// cached.
    package static let forbiddenHeaders = [
        "Accept-Encoding", "Connection", "Content-Length", "Expect", "Host", "If-Match", "If-Modified-Since",
        "If-None-Match", "If-Range", "If-Unmodified-Since", "Keep-Alive", "Proxy-Authorization", "Proxy-Connection",
        "Range", "TE", "Trailer", "Transfer-Encoding", "Upgrade",
    ]

    /// Throws `.invalidField` with the API name of the first invalid setting.
    package func validate() throws(CacheError) {
        if let fault = BaseURL.fault(in: baseURL) { throw CacheError(.invalidField("baseURL"), fault) }
        try validateMirrors()
        try validateHeaders()
        try validateFreshness()
        try validateKeyQuery()
        try validateTimeouts()
        try require((0...20).contains(retries), "retries", "The number of retries must be from 0 to 20.")
        try require((1...1024).contains(maxTransfers), "maxTransfers", "The number of transfers must be 1 to 1024.")
        try require(
            maxBytesPerSecond.map { $0 > 0 } ?? true, "maxBytesPerSecond",
            "The rate limit must be above 0 bytes per second, or null for no limit.")
        try validateFills()
        try require(
            tls.caFile.map { !$0.isEmpty && !$0.utf8.contains(0) } ?? true, "tls.caFile", "The CA file must be a path.")
        try validateRules()
        try validateStorage()
        try validateFiles()
    }

    /// The index of the first mirror that equals the base URL or an earlier mirror; nil if there is none.
    package var repeatedMirror: Int? {
        mirrors.indices.first { index in
            ([baseURL] + mirrors[..<index]).contains { BaseURL.isSamePlace($0, mirrors[index]) }
        }
    }

    /// Whether `path` stays below its base directory: it is relative, and no component is empty, `.` or `..`.
    package static func isInside(path: String) -> Bool {
        path.utf8.count <= 1024 && !path.utf8.contains(0)
            && path.split(separator: "/", omittingEmptySubsequences: false).allSatisfy {
                !["", ".", ".."].contains($0)
            }
    }

    private func validateMirrors() throws(CacheError) {
        try require(
            mirrors.count <= Self.maxMirrors, "mirrors", "An origin can have at most \(Self.maxMirrors) mirrors.")
        for (index, mirror) in mirrors.enumerated() {
            if let fault = BaseURL.fault(in: mirror) { throw CacheError(.invalidField("mirrors[\(index)]"), fault) }
        }
        if let index = repeatedMirror {
            throw CacheError(.invalidField("mirrors[\(index)]"), "The mirror repeats the base URL or another mirror.")
        }
    }

    private func validateFills() throws(CacheError) {
        try require(
            (0...(1 << 30)).contains(readAheadBytes), "readAheadBytes", "The read-ahead must be from 0 bytes to 1 GiB."
        )
        try require(finishIfRemainingBytes >= 0, "finishIfRemainingBytes", "The remaining bytes must not be negative.")
        try require(
            finishIfRemainingPercent.map { (0...100).contains($0) } ?? true, "finishIfRemainingPercent",
            "The remaining part to finish must be from 0 to 100 percent, or null.")
        try require(
            (0...Self.maxGapMergeBytes).contains(gapMergeBytes), "gapMergeBytes",
            "The gap merge size must be from 0 bytes to 16 MiB.")
        try require(
            (0...Self.maxSpeculativeBytes).contains(speculativeBytes), "speculativeBytes",
            "The number of speculative bytes must be from 0 to 1 GiB.")
        guard let circuitBreaker else { return }
        try require(
            Self.circuitFailures.contains(circuitBreaker.failures), "circuitBreaker.failures",
            "The number of consecutive failures that open a circuit must be from 1 to 1000.")
        try require(
            circuitBreaker.pause > .zero && circuitBreaker.pause <= Self.maxCircuitPause, "circuitBreaker.pauseSeconds",
            "The pause of an open circuit must be above 0 and at most 3600 seconds.")
    }

    private func validateStorage() throws(CacheError) {
        try require(
            storeRules.maxBytes.map { $0 >= 0 } ?? true, "storeRules.maxBytes",
            "The largest stored length must not be negative; null permits any length.")
        for (name, types) in [("never", storeRules.never), ("always", storeRules.always)] {
            try require(
                types.count <= Self.maxStoreTypes && types.allSatisfy { StoreRules.isPattern($0) },
                "storeRules.\(name)", "At most \(Self.maxStoreTypes) types such as video/mp4 or video/* are allowed.")
        }
        try quota.validate(at: "quota")
    }

    private func validateHeaders() throws(CacheError) {
        try require(headers.fields.count <= 64, "headers", "An origin can have at most 64 header fields.")
        for field in headers.fields {
            try require(FieldText.isToken(field.name), "headers", "The name of a header field must be a token.")
            try require(
                !Self.forbiddenHeaders.contains { HeaderList.same($0, field.name) }, "headers.\(field.name)",
                "Larder sets \(field.name) itself; remove the field.")
            try require(
                FieldText.isValue(field.value) && field.value.utf8.count <= 8192, "headers.\(field.name)",
                "The value of \(field.name) must have at most 8192 bytes, no control characters, no outer blanks.")
        }
    }

    private func validateFreshness() throws(CacheError) {
        guard case .ttl(let duration) = freshness else { return }
        try require(
            duration >= .zero && duration <= Self.maxLifetime, "freshness.ttlSeconds",
            "The lifetime must be from 0 to 2^31 seconds.")
    }

    private func validateKeyQuery() throws(CacheError) {
        switch keyQuery {
        case .all, .none: return
        case .include(let names), .exclude(let names):
            try require(
                (1...256).contains(names.count) && names.allSatisfy { !$0.isEmpty && $0.utf8.count <= 256 }, "keyQuery",
                "The list must have 1 to 256 names of query parameters, each with 1 to 256 bytes.")
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
                "A timeout must be above 0 seconds and at most one day.")
        }
    }

    private func validateRules() throws(CacheError) {
        try require(
            staleIfError.map { $0 >= .zero && $0 <= Self.maxLifetime } ?? true, "staleIfErrorSeconds",
            "The time of stale use must be from 0 to 2^31 seconds.")
        try require(
            negativeCaching.map { $0 > .zero && $0 <= Self.maxLifetime } ?? true, "negativeCaching.maxSeconds",
            "The time of negative caching must be above 0 and at most 2^31 seconds.")
        try require(
            ignoreVary.count <= Self.maxIgnoredFields, "ignoreVary",
            "The list can have at most \(Self.maxIgnoredFields) header fields.")
        for (index, name) in ignoreVary.enumerated() {
            try require(
                FieldText.isToken(name) && name.utf8.count <= 256 && name != "*", "ignoreVary[\(index)]",
                "The name of a header field must be a token of at most 256 bytes, and not *.")
        }
    }

    private func validateFiles() throws(CacheError) {
        try require(
            credentialsFile.map(Self.isInside(path:)) ?? true, "credentialsFile",
            "The credentials file must be a relative path below the directory of credentials files.")
        guard case .file(let path) = fallback else { return }
        try require(
            Self.isInside(path: path), "fallback.file",
            "The fallback must be a relative path below the directory of fallbacks.")
    }

    private func require(_ holds: Bool, _ field: String, _ message: String) throws(CacheError) {
        if !holds { throw CacheError(.invalidField(field), message) }
    }
}
