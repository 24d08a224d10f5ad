extension CacheError {
    /// The closed list of errors. ``Code/row`` states all properties of each.
    package enum Code: Hashable, Sendable {
        case malformedRequest
        case unauthorized
        case forbidden
        /// The token or the signed URL is known and correct, but has expired.
        case tokenExpired
        /// The token or the signed URL is malformed, altered, or signed with an unknown key.
        case tokenInvalid
        /// The token or the signed URL is valid, but does not permit the request.
        case tokenScope
        /// A request to the upstream needs the header fields of a reader (`forward`), and no reader's request causes it.
        case readerRequired
        case upstreamForbidden
        case notFound
        case methodNotAllowed(allow: String)
        case requestTimedOut
        case conflict
        case assetChanged
        case preconditionFailed
        case payloadTooLarge
        case uriTooLong
        case headersTooLarge
        case unsupportedMediaType
        /// The length of the asset; nil if unknown.
        case rangeNotSatisfiable(length: Int64?)
        /// The name of the field, as the client wrote it.
        case invalidField(String)
        case rateLimited
        case `internal`
        /// A method or a transfer coding that no resource supports.
        case notImplemented
        /// `retryAfter`: the time until the next request to the upstream; nil if a request was sent.
        case upstreamUnreachable(retryAfter: Duration? = nil)
        case upstreamProtocol
        /// A well-formed response that cannot be used; a repeated request would get the same. `asRange`: a request
        /// without `Range` may get a usable one.
        case upstreamUnusable(asRange: Bool = false)
        /// The status of the upstream.
        case upstreamRefused(status: Int, RefusalFields = RefusalFields())
        case overloaded
        case shuttingDown
        case storageCorrupt
        case upstreamTimedOut(Timeout)
        /// The reader accepts cached content only (`only-if-cached`, RFC 9111 §5.2.1.7), and the content is not cached.
        case notCached
        case storageFull
        /// Stored bytes are encrypted with a master key that the service does not have.
        case encryptionKeyMissing
        /// The bytes are no media of a known format.
        case unsupportedMedia
        /// The media contradicts its own format.
        case malformedMedia
        /// The index of the media, or the playlist, exceeds a limit.
        case mediaIndexTooLarge
        /// A job, or all jobs together, would have more items than permitted.
        case jobTooLarge
        /// A time lies behind the end of the media.
        case outOfRange
        /// The request has passed through this service before.
        case loop
        /// The caller has cancelled the operation and does not read the error.
        case cancelled
    }
}

extension CacheError.Code {
    /// The party that can remove the cause of an error.
    package enum Blame: String, Sendable, CaseIterable { case reader, upstream, larder, policy }

    /// The treatment of an error by the cache.
    package struct Traits: OptionSet, Sendable {
        package let rawValue: Int
        package init(rawValue: Int) { self.rawValue = rawValue }

        /// The same request may succeed a moment later.
        static let retry = Traits(rawValue: 1)
        /// A stale response may be served instead: the equivalent of 500, 502, 503 or 504 (RFC 5861 §4).
        static let stale = Traits(rawValue: 2)
        /// The origin's fallback may be served instead: a failure or refusal of the upstream.
        static let fallback = Traits(rawValue: 4)
        /// The error describes the upstream, and not the request or the store.
        static let ofUpstream = Traits(rawValue: 8)
    }

    /// One row of the table of codes.
    package struct Row: Sendable {
        /// The name in the API, without a payload.
        package let name: String
        /// The HTTP status (RFC 9110 §15) in all responses but those of content reads.
        package let status: Int
        package let blame: Blame
        let traits: Traits
        /// The status in responses of content reads; nil: ``status``. `upstreamRefused` has the status of the upstream.
        package let contentStatus: Int?

        fileprivate init(
            _ name: String, _ status: Int, _ blame: Blame, _ traits: Traits = [], content: Int? = nil
        ) {
            self.name = name
            self.status = status
            self.blame = blame
            self.traits = traits
            contentStatus = content
        }
    }

    /// The row of this code. Statuses, rules and documents are derived from it.
    package var row: Row {
        switch self {
        case .malformedRequest: Row("malformedRequest", 400, .reader)
        case .unauthorized: Row("unauthorized", 401, .reader)
        case .forbidden: Row("forbidden", 403, .policy)
        case .tokenExpired: Row("tokenExpired", 403, .reader)
        case .tokenInvalid: Row("tokenInvalid", 403, .reader)
        case .tokenScope: Row("tokenScope", 403, .policy)
        case .readerRequired: Row("readerRequired", 403, .policy)
        case .upstreamForbidden: Row("upstreamForbidden", 403, .policy, [.ofUpstream])
        case .notFound: Row("notFound", 404, .reader)
        case .methodNotAllowed: Row("methodNotAllowed", 405, .reader)
        case .requestTimedOut: Row("requestTimedOut", 408, .reader)
        case .conflict: Row("conflict", 409, .reader)
        case .assetChanged: Row("assetChanged", 409, .upstream, [.fallback], content: 502)
        case .preconditionFailed: Row("preconditionFailed", 412, .reader)
        case .payloadTooLarge: Row("payloadTooLarge", 413, .reader)
        case .uriTooLong: Row("uriTooLong", 414, .reader)
        case .unsupportedMediaType: Row("unsupportedMediaType", 415, .reader)
        case .rangeNotSatisfiable: Row("rangeNotSatisfiable", 416, .reader, [.ofUpstream])
        case .invalidField: Row("invalidField", 422, .reader)
        case .unsupportedMedia: Row("unsupportedMedia", 422, .upstream)
        case .malformedMedia: Row("malformedMedia", 422, .upstream)
        case .mediaIndexTooLarge: Row("mediaIndexTooLarge", 422, .policy)
        case .jobTooLarge: Row("jobTooLarge", 422, .policy)
        case .outOfRange: Row("outOfRange", 422, .reader)
        case .rateLimited: Row("rateLimited", 429, .policy)
        case .headersTooLarge: Row("headersTooLarge", 431, .reader)
        case .internal: Row("internal", 500, .larder)
        case .notImplemented: Row("notImplemented", 501, .reader)
        case .upstreamUnreachable: Row("upstreamUnreachable", 502, .upstream, [.retry, .stale, .fallback, .ofUpstream])
        case .upstreamProtocol, .upstreamUnusable:
            Row(
                "upstreamProtocol", 502, .upstream,
                Traits([.stale, .fallback, .ofUpstream]).union(self == .upstreamProtocol ? .retry : []))
        case .upstreamRefused(let status, let fields):
            Row(
                "upstreamRefused", 502, [404, 410, 414, 416].contains(status) ? .reader : .upstream,
                Traits([.fallback, .ofUpstream]).union(
                    fields.reason == .transient || Self.isTransient(status) ? .retry : []
                )
                .union(Self.isOfFailingServer(status) ? .stale : []))
        case .overloaded: Row("overloaded", 503, .larder, [.retry])
        case .shuttingDown: Row("shuttingDown", 503, .larder)
        case .storageCorrupt: Row("storageCorrupt", 503, .larder)
        case .encryptionKeyMissing: Row("encryptionKeyMissing", 503, .policy)
        case .cancelled: Row("cancelled", 503, .reader)
        case .upstreamTimedOut: Row("upstreamTimedOut", 504, .upstream, [.retry, .stale, .fallback, .ofUpstream])
        case .notCached: Row("notCached", 504, .reader)
        case .storageFull: Row("storageFull", 507, .larder, [.retry])
        case .loop: Row("loop", 508, .policy)
        }
    }

    /// The name of the code in the API, without its payload.
    package var name: String { row.name }
    /// Whether the same request may succeed a moment later.
    package var isWorthRetrying: Bool { row.traits.contains(.retry) }
    /// Whether a stale response may be served instead of this error.
    package var isUpstreamFailure: Bool { row.traits.contains(.stale) }
    /// Whether a read that failed with this error is answered with the origin's fallback.
    package var deservesFallback: Bool { row.traits.contains(.fallback) }
    /// Whether the error describes the upstream.
    package var isOfUpstream: Bool { row.traits.contains(.ofUpstream) }
    /// Whether the request of a reader caused the refusal: it named no existing content, or no bytes of it. The upstream
    /// works.
    package var isOfReader: Bool { isOfUpstream && row.blame == .reader }

    /// Whether the server limits the rate, or cannot accept the request for a moment.
    package var isOfBusyServer: Bool {
        guard case .upstreamRefused(let status, let fields) = self else { return false }
        return fields.reason == .transient || Self.isOfBusyServer(status)
    }

    /// The refusal of an upstream that asks for a wait.
    package static func upstreamRefused(status: Int, retryAfter: Duration?) -> Self {
        .upstreamRefused(status: status, CacheError.RefusalFields(retryAfter: retryAfter))
    }

    /// Whether the status asks for the same request a moment later: the server is busy, or it is failing.
    package static func isTransient(_ status: Int) -> Bool {
        status == 408 || isOfBusyServer(status) || isOfFailingServer(status)
    }

    /// Too Early (RFC 8470), Too Many Requests, Service Unavailable, and the statuses with which Cloudflare reports an
    /// origin that does not answer.
    private static func isOfBusyServer(_ status: Int) -> Bool {
        [425, 429, 503].contains(status) || (520...529).contains(status)
    }

    /// Whether the status reports a failure of the server.
    package static func isOfFailingServer(_ status: Int) -> Bool {
        [500, 502, 503, 504].contains(status) || (520...529).contains(status)
    }

    /// Whether an error status of an upstream is passed on to clients. Exceptions are statuses that would be wrong for
    /// the client's own request or for its connection to Larder, such as 407 and 416.
    package static func isPassedOn(_ status: Int) -> Bool {
        (400...599).contains(status) && ![407, 412, 416, 417, 421, 426, 431, 511].contains(status)
    }
}

extension CacheError.Code {
    /// The cause and the remedy of each code in Markdown, in the order of the documentation.
    package static let documentation: [(code: Self, cause: String, remedy: String)] = [
        (
            .malformedRequest, "invalid JSON, path, URL, `Host`, transfer coding or header field",
            "correct the request; `detail` names the error"
        ),
        (
            .unauthorized, "the bearer token is missing, unknown, revoked or expired",
            "send `Authorization: Bearer …` with one of the configured tokens"
        ),
        (
            .forbidden, "without tokens, the `Host` or the web page is not local",
            "configure a token; add the page to `cors.allowedOrigins`"
        ),
        (.tokenExpired, "the signed URL has expired", "sign a new one"),
        (
            .tokenInvalid, "the signed URL is malformed or altered, or its key is unknown",
            "sign it again with a configured key; see [Signed URLs](signing.md)"
        ),
        (
            .tokenScope, "the scope or the limits of the token or signed URL do not permit the request",
            "use another token; `detail` names the missing permission"
        ),
        (
            .readerRequired,
            "the asset was opened by a field of its reader (`forward`), and this request has no reader",
            "read it by its path, with the field"
        ),
        (
            .upstreamForbidden,
            "`upstream.allowedHosts` does not contain the host; the address is private or otherwise forbidden; "
                + "or a redirect leads from https to http, or to a host that `redirectHosts` does not permit",
            "add the host or host and port; set `allowPrivateAddresses` for the origin; link-local, multicast, "
                + "unspecified and cloud metadata addresses are never allowed"
        ),
        (
            .notFound, "unknown path, origin, asset, job, fill, purge or scrub",
            "check the name; finished purges and scrubs are kept for a limited time only"
        ),
        (.methodNotAllowed(allow: ""), "the resource does not have this method", "use a method of the `Allow` field"),
        (
            .requestTimedOut,
            "the request head did not arrive within `limits.headerTimeout`, or its body is slower than 16 KiB/s "
                + "over 10 s", "check client and network; raise `limits.headerTimeout`"
        ),
        (
            .conflict,
            "the state does not permit the action: a scrub is in progress, a job is unfinished, "
                + "`Idempotency-Key` was used for another job, `maxPinned` would be exceeded, a fill was cancelled by "
                + "an administrator, or the upstream forbids storing the asset of a prefetch item",
            "`detail` names the state; wait, or change it"
        ),
        (
            .assetChanged, "the file changed on the upstream, or the asset was deleted, while it was being read",
            "repeat the request; if it recurs, the servers of the upstream deliver different files: see "
                + "[Caching](caching.md#validators)"
        ),
        (
            .preconditionFailed, "`If-Match`, `If-None-Match` or another condition does not hold",
            "read the resource again and repeat the change with its new `ETag`"
        ),
        (.payloadTooLarge, "the body exceeds `limits.bodyBytes`", "send less, or raise the limit"),
        (.uriTooLong, "the request target exceeds `limits.urlBytes`", "shorten the URL, or raise the limit"),
        (.unsupportedMediaType, "`Content-Type` is not JSON", "send `Content-Type: application/json`"),
        (
            .rangeNotSatisfiable(length: nil), "no part of the range lies within the file",
            "use the length in `Content-Range: bytes */LENGTH`"
        ),
        (.invalidField(""), "unknown member or parameter, or an invalid value", "correct the member in `field`"),
        (
            .unsupportedMedia, "the asset is no media of a known format, or has no usable index",
            "prefetch bytes instead of seconds; see [Prefetch](prefetch.md#seconds-instead-of-bytes)"
        ),
        (.malformedMedia, "the media contradicts its own format", "repair the file"),
        (
            .mediaIndexTooLarge, "the index of the media, or the playlist, exceeds a limit",
            "prefetch bytes instead of seconds"
        ),
        (
            .jobTooLarge,
            "the job has more items than `limits.jobItems`, or the files of a playlist exceed `limits.jobItems` "
                + "or `limits.unfinishedJobItems`",
            "use several jobs; request less time or fewer renditions; retry when other jobs have finished; or "
                + "raise the limit"
        ),
        (.outOfRange, "the time lies behind the end of the media", "request less time"),
        (
            .rateLimited,
            "the address of the client is at one of `limits.perAddress`; an upstream's 429 is reported as "
                + "`upstreamRefused`",
            "send fewer requests at a time, or raise the limit; behind a proxy set `listen.clientAddressFrom`"
        ),
        (
            .headersTooLarge, "the request head exceeds `limits.headerBytes`",
            "send fewer or shorter fields, or raise the limit"
        ),
        (
            .internal, "unexpected failure, for example missing permissions or memory",
            "find `request failed with an internal error` with the same `requestId` in the log"
        ),
        (
            .notImplemented, "no resource supports the method or the transfer coding",
            "use another method; use `chunked` as the only transfer coding"
        ),
        (
            .upstreamUnreachable(),
            "name resolution, connection or TLS handshake failed; or the circuit is open, then with " + "`Retry-After`",
            "check DNS, network, certificate and `tls.caFile`; `detail` names the step. See `origins[].circuit` "
                + "in `GET /v1/stats`"
        ),
        (
            .upstreamProtocol, "the upstream sent a malformed, incomplete or unusable response, or too many redirects",
            "check the upstream with `POST /v1/probe` and `curl -v -r 0-99 URL`"
        ),
        (
            .upstreamRefused(status: 500),
            "the upstream answered with an error status, in `upstreamStatus`; [content reads](api.md#errors) pass it on",
            "check URL, `headers` and `credentialsFile` of the origin"
        ),
        (
            .overloaded,
            "a limit is reached: `limits.maxConnections` with no idle connection, `limits.maxConcurrentReads`, "
                + "`limits.maxQueuedFills` or open files; or the service is starting, or the catalog is busy",
            "repeat after `Retry-After`; `load` in `GET /v1/stats` shows two of the limits; raise the limit "
                + "that `detail` names"
        ),
        (.shuttingDown, "the service is shutting down", "repeat the request on another instance or after the restart"),
        (
            .storageCorrupt,
            "the disk reports errors, bytes are damaged again after they were fetched, or the data directory is "
                + "gone", "check the disk and the kernel log; run `larder verify`; restart the service"
        ),
        (
            .cancelled, "the client, a `DELETE` call or a newer job ended the work",
            "none, if the cancellation was intended"
        ),
        (
            .upstreamTimedOut(.read),
            "the timeout in `timeout` has expired: `connect`, `firstByte`, `idle`, `total`, `read` or `job`",
            "`detail` names the step that did not end (name lookup, TCP connection, TLS handshake, first byte "
                + "or body); with `read` it names the wait of the reader only. Check the DNS or the upstream; raise "
                + "`timeouts.…` of the origin; `total` limits one window, `read` a reader's wait for a byte"
        ),
        (
            .notCached,
            "the request has `only-if-cached`, which applies if the origin's `requestDirectives` is true, and "
                + "not all of its bytes are cached and fresh", "omit the directive, or prefetch the bytes"
        ),
        (
            .storageFull,
            "no disk space, disk quota or inode is left; or a prefetch item does not fit beside pinned assets "
                + "and other jobs",
            "free disk space, raise `capacityBytes`, unpin assets; see [Operations](operations.md#full-disk)"
        ),
        (
            .encryptionKeyMissing,
            "the bytes are stored encrypted, and their master key is missing or wrong, or they were erased",
            "restore the key; see [Encryption at rest](security.md#encryption-at-rest)"
        ),
        (
            .loop,
            "the request has already passed through this service (`CDN-Loop`). The first of the two Larder "
                + "requests shows it as `upstreamRefused` with `upstreamStatus` 508",
            "correct the `baseURL` that leads back to Larder"
        ),
    ]
}
