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
        /// The desired state of the fleet cannot be read or changed.
        case fleetUnavailable
        /// The configuration of this node defines what the fleet defines as well.
        case fleetConflict
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
        /// The address of the upstream gave no usable answer; this is evidence against it.
        static let broken = Traits(rawValue: 16)
        /// The address of the upstream answered, so that it works.
        static let answered = Traits(rawValue: 32)
        /// The state of the service passes: the response has `Retry-After`.
        static let later = Traits(rawValue: 64)
    }

    /// One row of the table of codes.
    package struct Row: Sendable {
        /// The code, with any payload.
        package let code: CacheError.Code
        /// The name in the API, without a payload.
        package let name: String
        /// The HTTP status (RFC 9110 §15) in all responses but those of content reads.
        package let status: Int
        fileprivate let blame: Blame
        fileprivate let traits: Traits
        /// The status in responses of content reads; nil: ``status``. `upstreamRefused` has the status of the upstream.
        package let contentStatus: Int?
        /// The cause and the remedy for the documentation, in Markdown; empty for a code with the name of another one.
        package let cause, remedy: String

        fileprivate init(
            _ code: CacheError.Code, named name: String? = nil, _ status: Int, _ blame: Blame, _ traits: Traits = [],
            content: Int? = nil, cause: String = "", remedy: String = ""
        ) {
            (self.code, self.status, self.blame, self.traits) = (code, status, blame, traits)
            self.name = name ?? String("\(code)".prefix { $0 != "(" })
            (contentStatus, self.cause, self.remedy) = (content, cause, remedy)
        }
    }

    /// The row of this code. Statuses, rules and documents are derived from it.
    package var row: Row { Self.rows[sample] ?? Self.fallbackRow }

    private static let rows = Dictionary(table.map { ($0.code, $0) }) { first, _ in first }
    /// The row of a code without one, which `ErrorCodeTests` finds.
    private static let fallbackRow = Row(.internal, 500, .larder)

    /// The code with the payload that it has in the table.
    private var sample: Self {
        switch self {
        case .methodNotAllowed: .methodNotAllowed(allow: "")
        case .rangeNotSatisfiable: .rangeNotSatisfiable(length: nil)
        case .invalidField: .invalidField("")
        case .upstreamUnreachable: .upstreamUnreachable()
        case .upstreamUnusable: .upstreamUnusable()
        case .upstreamRefused: .upstreamRefused(status: 500)
        case .upstreamTimedOut: .upstreamTimedOut(.read)
        default: self
        }
    }

    /// The name of the code in the API, without its payload.
    package var name: String { row.name }
    /// The remedy as a sentence of plain text.
    package var remedyText: String { Self.remedies[name] ?? "" }

    /// The remedies by name, as sentences without links.
    private static let remedies = Dictionary(
        table.lazy.filter { !$0.remedy.isEmpty }.map { row in
            let text = row.remedy.replacing(/\[(.+?)\]\(.+?\)/) { $0.output.1 }
            return (row.name, text.prefix(1).uppercased() + text.dropFirst() + ".")
        }
    ) { first, _ in first }

    /// Whether the same request may succeed a moment later.
    package var isWorthRetrying: Bool { traits.contains(.retry) }
    /// Whether a stale response may be served instead of this error.
    package var isUpstreamFailure: Bool { traits.contains(.stale) }
    /// Whether a read that failed with this error is answered with the origin's fallback.
    package var deservesFallback: Bool { traits.contains(.fallback) }
    /// Whether the error describes the upstream.
    package var isOfUpstream: Bool { traits.contains(.ofUpstream) }
    /// Whether the request of a reader caused the refusal: it named no existing content, or no bytes of it. The upstream
    /// works.
    package var isOfReader: Bool { isOfUpstream && blame == .reader }

    /// Whether the error is evidence against the address that was asked: it gave no usable answer.
    package var isOfBrokenAddress: Bool { traits.contains(.broken) }
    /// Whether the address that was asked has answered, and works.
    package var isOfWorkingAddress: Bool { traits.contains(.answered) }
    /// Whether the state of the service that causes the error passes.
    package var isTemporary: Bool { traits.contains(.later) }

    /// The party that can remove the cause of the error.
    package var blame: Blame {
        if case .upstreamRefused(let status, _) = self, [404, 410, 414, 416].contains(status) {
            .reader
        } else {
            row.blame
        }
    }

    private var traits: Traits {
        guard case .upstreamRefused(let status, let fields) = self else { return row.traits }
        let isTransient = fields.reason == .transient || Self.isTransient(status)
        return row.traits.union(isTransient ? .retry : []).union(Self.isOfFailingServer(status) ? .stale : [])
    }

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
    /// The rows of all codes, in the order of the documentation.
    package static let table: [Row] = [
        Row(
            .malformedRequest, 400, .reader,
            cause: "invalid JSON, path, URL, `Host`, transfer coding or header field",
            remedy: "correct the request; `detail` names the error"),
        Row(
            .unauthorized, 401, .reader,
            cause: "the bearer token is missing, unknown, revoked or expired",
            remedy: "send `Authorization: Bearer …` with one of the configured tokens"),
        Row(
            .forbidden, 403, .policy,
            cause: "without tokens, the `Host` or the web page is not local",
            remedy: "configure a token; add the page to `cors.allowedOrigins`"),
        Row(
            .tokenExpired, 403, .reader,
            cause: "the signed URL has expired",
            remedy: "sign a new one"),
        Row(
            .tokenInvalid, 403, .reader,
            cause: "the signed URL is malformed or altered, or its key is unknown",
            remedy: "sign it again with a configured key; see [Signed URLs](signing.md)"),
        Row(
            .tokenScope, 403, .policy,
            cause: "the scope or the limits of the token or signed URL do not permit the request",
            remedy: "use another token; `detail` names the missing permission"),
        Row(
            .readerRequired, 403, .policy,
            cause: "the asset was opened by a field of its reader (`forward`), and this request has no reader",
            remedy: "read it by its path, with the field"),
        Row(
            .upstreamForbidden, 403, .policy, [.ofUpstream],
            cause: """
                `upstream.allowedHosts` does not contain the host; the address is private or otherwise forbidden; or \
                a redirect leads from https to http, or to a host that `redirectHosts` does not permit
                """,
            remedy: """
                add the host or host and port; set `allowPrivateAddresses` for the origin; link-local, multicast, \
                unspecified and cloud metadata addresses are never allowed
                """),
        Row(
            .notFound, 404, .reader,
            cause: "unknown path, origin, asset, job, fill, purge or scrub",
            remedy: "check the name; finished purges and scrubs are kept for a limited time only"),
        Row(
            .methodNotAllowed(allow: ""), 405, .reader,
            cause: "the resource does not have this method",
            remedy: "use a method of the `Allow` field"),
        Row(
            .requestTimedOut, 408, .reader,
            cause: """
                the request head did not arrive within `limits.headerTimeout`, or its body is slower than 16 KiB/s \
                over 10 s
                """,
            remedy: "check client and network; raise `limits.headerTimeout`"),
        Row(
            .conflict, 409, .reader,
            cause: """
                the state does not permit the action: a scrub is in progress, a job is unfinished, `Idempotency-Key` \
                was used for another job, `maxPinned` would be exceeded, a fill was cancelled by an administrator, \
                the checksums of encrypted content are requested, or the upstream forbids storing the asset of a \
                prefetch item
                """,
            remedy: "`detail` names the state; wait, or change it"),
        Row(
            .assetChanged, 409, .upstream, [.fallback, .answered], content: 502,
            cause: "the file changed on the upstream, or the asset was deleted, while it was being read",
            remedy: """
                repeat the request; if it recurs, the servers of the upstream deliver different files: see \
                [Caching](caching.md#validators)
                """),
        Row(
            .preconditionFailed, 412, .reader,
            cause: "`If-Match`, `If-None-Match` or another condition does not hold",
            remedy: "read the resource again and repeat the change with its new `ETag`"),
        Row(
            .fleetConflict, 409, .reader,
            cause: "the configuration file of this node defines the origin, so that the fleet cannot",
            remedy: "remove it from the configuration files of the nodes, and repeat the request"),
        Row(
            .payloadTooLarge, 413, .reader,
            cause: "the body exceeds `limits.bodyBytes`",
            remedy: "send less, or raise the limit"),
        Row(
            .uriTooLong, 414, .reader,
            cause: "the request target exceeds `limits.urlBytes`",
            remedy: "shorten the URL, or raise the limit"),
        Row(
            .unsupportedMediaType, 415, .reader,
            cause: "`Content-Type` is not JSON",
            remedy: "send `Content-Type: application/json`"),
        Row(
            .rangeNotSatisfiable(length: nil), 416, .reader, [.ofUpstream, .answered],
            cause: "no part of the range lies within the file",
            remedy: "use the length in `Content-Range: bytes */LENGTH`"),
        Row(
            .invalidField(""), 422, .reader,
            cause: "unknown member or parameter, or an invalid value",
            remedy: "correct the value that `field` names"),
        Row(
            .unsupportedMedia, 422, .upstream,
            cause: "the asset is no media of a known format, or has no usable index",
            remedy: "prefetch bytes instead of seconds; see [Prefetch](prefetch.md#seconds-instead-of-bytes)"),
        Row(
            .malformedMedia, 422, .upstream,
            cause: "the media contradicts its own format",
            remedy: "repair the file"),
        Row(
            .mediaIndexTooLarge, 422, .policy,
            cause: "the index of the media, or the playlist, exceeds a limit",
            remedy: "prefetch bytes instead of seconds"),
        Row(
            .jobTooLarge, 422, .policy,
            cause: """
                the job has more items than `limits.jobItems`, or the files of a playlist exceed `limits.jobItems` \
                or `limits.unfinishedJobItems`
                """,
            remedy: """
                use several jobs; request less time or fewer renditions; retry when other jobs have finished; or \
                raise the limit
                """),
        Row(
            .outOfRange, 422, .reader,
            cause: "the time lies behind the end of the media",
            remedy: "request less time"),
        Row(
            .rateLimited, 429, .policy, [.later],
            cause: """
                the address of the client is at one of `limits.perAddress`; an upstream's 429 is reported as \
                `upstreamRefused`
                """,
            remedy: """
                send fewer requests at a time, or raise the limit; behind a proxy set `listen.clientAddressFrom`
                """),
        Row(
            .headersTooLarge, 431, .reader,
            cause: "the request head exceeds `limits.headerBytes`",
            remedy: "send fewer or shorter fields, or raise the limit"),
        Row(
            .internal, 500, .larder,
            cause: "unexpected failure, for example missing permissions or memory",
            remedy: "find `request failed with an internal error` with the same `requestId` in the log"),
        Row(
            .notImplemented, 501, .reader,
            cause: "no resource supports the method or the transfer coding",
            remedy: "use another method; use `chunked` as the only transfer coding"),
        Row(
            .upstreamUnreachable(), 502, .upstream, [.retry, .stale, .fallback, .ofUpstream, .broken],
            cause: """
                name resolution, connection or TLS handshake failed; or the circuit is open, then with `Retry-After`
                """,
            remedy: """
                check DNS, network, certificate and `tls.caFile`; `detail` names the step. See `origins[].circuit` \
                in `GET /v1/stats`
                """),
        Row(
            .upstreamProtocol, 502, .upstream, [.retry, .stale, .fallback, .ofUpstream, .broken],
            cause: "the upstream sent a malformed, incomplete or unusable response, or too many redirects",
            remedy: "check the upstream with `POST /v1/probe` and `curl -v -r 0-99 URL`"),
        Row(
            .upstreamUnusable(), named: "upstreamProtocol", 502, .upstream, [.stale, .fallback, .ofUpstream, .answered]),
        Row(
            .upstreamRefused(status: 500), 502, .upstream, [.fallback, .ofUpstream],
            cause: """
                the upstream answered with an error status, in `upstreamStatus`; [content reads](api.md#errors) pass \
                it on
                """,
            remedy: "check URL, `headers` and `credentialsFile` of the origin"),
        Row(
            .overloaded, 503, .larder, [.retry, .later],
            cause: """
                a limit is reached: `limits.maxConnections` with no idle connection, `limits.maxConcurrentReads`, \
                `limits.maxQueuedFills` or open files; or the service is starting, or the catalog is busy
                """,
            remedy: """
                repeat after `Retry-After`; `load` in `GET /v1/stats` shows two of the limits; raise the limit that \
                `detail` names
                """),
        Row(
            .fleetUnavailable, 503, .larder, [.retry, .later],
            cause: "no member of etcd with a leader answers, so that the fleet cannot be changed; reads go on",
            remedy: "repeat after `Retry-After`; `etcd` in `GET /v1/fleet` and `detail` name the fault"),
        Row(
            .shuttingDown, 503, .larder, [.later],
            cause: "the service is shutting down",
            remedy: "repeat the request on another instance or after the restart"),
        Row(
            .storageCorrupt, 503, .larder, [.later],
            cause: """
                the disk reports errors, bytes are damaged again after they were fetched, or the data directory is \
                gone
                """,
            remedy: "check the disk and the kernel log; run `larder verify`; restart the service"),
        Row(
            .cancelled, 503, .reader,
            cause: "the client, a `DELETE` call or a newer job ended the work",
            remedy: "none, if the cancellation was intended"),
        Row(
            .upstreamTimedOut(.read), 504, .upstream, [.retry, .stale, .fallback, .ofUpstream, .broken],
            cause: "the timeout in `timeout` has expired: `connect`, `firstByte`, `idle`, `total`, `read` or `job`",
            remedy: """
                `detail` names the step that did not end (name lookup, TCP connection, TLS handshake, first byte or \
                body); with `read` it names the wait of the reader only. Check the DNS or the upstream; raise \
                `timeouts.…` of the origin; `total` limits one window, `read` a reader's wait for a byte
                """),
        Row(
            .notCached, 504, .reader,
            cause: """
                the request has `only-if-cached`, which applies if the origin's `requestDirectives` is true, and not \
                all of its bytes are cached and fresh
                """,
            remedy: "omit the directive, or prefetch the bytes"),
        Row(
            .storageFull, 507, .larder, [.retry],
            cause: """
                no disk space, disk quota or inode is left; or a prefetch item does not fit beside pinned assets and \
                other jobs
                """,
            remedy: "free disk space, raise `capacityBytes`, unpin assets; see [Operations](operations.md#full-disk)"),
        Row(
            .encryptionKeyMissing, 503, .policy,
            cause: "the bytes are stored encrypted, and their master key is missing or wrong, or they were erased",
            remedy: "restore the key; see [Encryption at rest](security.md#encryption-at-rest)"),
        Row(
            .loop, 508, .policy,
            cause: """
                the request has already passed through this service (`CDN-Loop`). The first of the two Larder \
                requests shows it as `upstreamRefused` with `upstreamStatus` 508
                """,
            remedy: "correct the `baseURL` that leads back to Larder"),
    ]
}
