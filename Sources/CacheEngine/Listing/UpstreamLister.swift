package import CacheCore
import CacheTracing
import UpstreamAccounts

/// The request for a page of a listing.
package struct ListingRequest: Hashable, Sendable {
    /// The name of a mounted origin.
    package var origin: String
    /// The folder or the document below the mount, percent-encoded, perhaps with a query.
    package var path: String
    /// Nil: as the account of the origin and the response suggest.
    package var format: ListingFormat?
    /// The JSON pointer to the array of a JSON document.
    package var pointer: String?
    /// The largest number of entries, 1 to 1,000.
    package var limit: Int
    /// `ListingPage.nextCursor` of the page before.
    package var cursor: String?

    package init(
        origin: String, path: String, format: ListingFormat? = nil, pointer: String? = nil, limit: Int = 1000,
        cursor: String? = nil
    ) {
        self.origin = origin
        self.path = path
        self.format = format
        self.pointer = pointer
        self.limit = limit
        self.cursor = cursor
    }
}

/// A page of a listing.
package struct ListingPage: Sendable {
    package var format: ListingFormat
    /// Files and folders below the mount: their references are paths, percent-encoded; those of folders end with `/`.
    /// In the order of their paths, except for `s3` and `api`, whose files and folders are in the order of the upstream.
    package var entries: [ListingEntry]
    /// Nil: this is the last page.
    package var nextCursor: String?
    /// The number of entries that lie outside the mount or the folder and were left out.
    package var skippedEntries: Int
    /// The number of bytes of the response.
    package var responseBytes = 0
    /// Whether the entries are playlists: those of the renditions of a multivariant playlist.
    package var listsPlaylists = false

    package init(
        format: ListingFormat, entries: [ListingEntry], nextCursor: String? = nil, skippedEntries: Int = 0,
        responseBytes: Int = 0
    ) {
        self.format = format
        self.entries = entries
        self.nextCursor = nextCursor
        self.skippedEntries = skippedEntries
        self.responseBytes = responseBytes
    }
}

/// Lists the files of upstreams.
package struct UpstreamLister: Sendable {
    let resolver: AssetResolver
    let upstreams: Upstreams
    let tracer: Tracer
    let wallClock: any WallClock
    let clock: any Clock<Duration>
    private let settings: LiveCacheSettings

    init(
        of context: EngineContext, resolver: AssetResolver, settings: LiveCacheSettings, clock: any Clock<Duration>
    ) {
        self.settings = settings
        upstreams = context.upstreams
        tracer = context.tracer
        wallClock = context.wallClock
        self.resolver = resolver
        self.clock = clock
    }

    /// The largest response in bytes.
    package static let bodyLimit = 8 << 20
    /// The number of entries of a page of a walk: all of a folder; stores send 1,000 at most.
    static let pageEntries = Listing.entryLimit
    /// The longest time for a page.
    private static let pageTimeout = Duration.seconds(60)
    private static let properties = """
        <?xml version="1.0" encoding="utf-8"?><propfind xmlns="DAV:"><prop><getcontentlength/><getlastmodified/>\
        <resourcetype/></prop></propfind>
        """

    /// A page of the listing at the upstream.
    ///
    /// Throws `.notFound` for an unknown origin, `.readerRequired` for an origin with `forward`, `.invalidField` for an
    /// origin with `resolve.url` and without `resolve.list`, `.upstreamRefused` with the status of the upstream, and
    /// `.upstreamUnusable` for a response that is no listing.
    package func page(_ request: ListingRequest) async throws(CacheError) -> ListingPage {
        let target = try resolver.mounted(request.origin, request.path)
        try target.requireContentForAll()
        let resolution = target.settings.resolution
        guard resolution.url == nil || resolution.list.url != nil else {
            throw .invalid(
                "origin",
                "Files of an origin with resolve.url are listed with resolve.list only: set it, or name the files.")
        }
        guard request.format != .api || resolution.list.url != nil else {
            throw .invalid("format", "The origin has no resolve.list, which api needs.")
        }
        guard resolution.url == nil || request.format ?? .api == .api else {
            throw .invalid("format", "Files of an origin with resolve.url are listed as api only.")
        }
        let isAPI = resolution.list.url != nil && request.format ?? .api == .api
        return try await withDeadline(Self.pageTimeout, .total, clock: clock) { () async throws(CacheError) in
            isAPI ? try await apiPage(request, at: target) : try await page(request, at: target)
        }
    }

    private func page(_ request: ListingRequest, at target: AssetTarget) async throws(CacheError) -> ListingPage {
        let wanted = request.format ?? (target.settings.auth.kind == .s3 ? .s3 : nil)
        let response = try await response(to: call(request, wanted, at: target), at: target) {
            () async throws(CacheError) in
            try await upstreams.accounts.access(to: target, for: .description, over: upstreams)
        }
        let contentType = response.headers["Content-Type"]
        guard let format = wanted ?? Listing.format(of: response.body, contentType: contentType) else {
            throw CacheError(
                .upstreamUnusable(),
                "The response is no listing of a known format (html, json, text, rss, s3, webdav, playlist): "
                    + "name one with format.")
        }
        let listing =
            format == .playlist
            ? try playlist(response.body)
            : try Listing(response.body, as: format, pointer: request.pointer, now: wallClock.now())
        let base = format == .s3 ? try bucketFolder(of: target).bucket : response.head.finalURL
        var page = page(of: listing, format, against: base, request, at: target)
        page.responseBytes = response.body.count
        page.listsPlaylists = listing.listsPlaylists
        return page
    }

    private func playlist(_ text: [UInt8]) throws(CacheError) -> Listing {
        try Listing(playlist: text, limits: settings.current.settings.mediaLimits, now: wallClock.now())
    }

    private func bucketFolder(of target: AssetTarget) throws(CacheError) -> BucketFolder {
        try BucketFolder(
            of: upstreams.client.parse(url: target.url), below: upstreams.client.parse(url: target.settings.baseURL))
    }

    /// The request to the upstream.
    private func call(
        _ request: ListingRequest, _ format: ListingFormat?, at target: AssetTarget
    ) throws(CacheError) -> UpstreamRequest {
        var call = upstreams.request(to: target, priority: .live)
        if format == .s3 {
            let folder = try bucketFolder(of: target)
            let token = request.cursor.map { "&continuation-token=" + PercentEncoding.encoded($0.utf8) } ?? ""
            call.url =
                folder.bucket + "?delimiter=%2F&list-type=2&max-keys=\(min(request.limit, 1000))"
                + "&prefix=" + PercentEncoding.encoded(folder.prefix.utf8) + token
        } else if format == .webdav {
            call.method = .propfind
            call.headers.set("Depth", "1")
            call.headers.set("Content-Type", "application/xml")
            call.body = Array(Self.properties.utf8)
        } else {
            // Caddy lists as JSON if it is asked.
            call.headers.set("Accept", "application/json, text/html;q=0.9, */*;q=0.8")
        }
        return call
    }

    /// The response with a status of success. After the first refusal of the credentials others are obtained and the
    /// request is repeated once, as for ``HeadProbe``.
    /// `isOfServer`: the server of the origin is asked, whose health the response shows.
    func response(
        to call: UpstreamRequest, at target: AssetTarget, isOfServer: Bool = true,
        with access: () async throws(CacheError) -> UpstreamAccess
    ) async throws(CacheError) -> UpstreamResponse {
        if isOfServer { upstreams.health.asked(target) }
        for isLast in [false, true] {
            let access = try await access()
            var authorized = call
            access.apply(to: &authorized)
            let permit = isOfServer ? try upstreams.health.admit(target) : nil
            let breaker = target.settings.circuitBreaker
            let response: UpstreamResponse
            do throws(CacheError) {
                response = try await upstreams.client.exchange(authorized, bodyLimit: Self.bodyLimit)
            } catch {
                if let permit { upstreams.health.settle(permit, error.evidence, by: breaker) }
                throw error
            }
            let status = response.status
            if let permit { upstreams.health.settle(permit, .init(status: status), by: breaker) }
            if (200..<300).contains(status) { return response }
            var head = response.head
            head.excerpt = Array(response.body.prefix(4096))
            guard !isLast, await upstreams.renew(access, to: target, after: head) else {
                throw refusal(response, at: target)
            }
        }
        throw CacheError(.internal, "No listing was requested.")
    }

    private func refusal(_ response: UpstreamResponse, at target: AssetTarget) -> CacheError {
        let wait = RetryAfter.wait(in: response.headers, now: wallClock.now())
        let lacksRight = [401, 403].contains(response.status)
        let right = target.settings.auth.kind == .s3 ? "s3:ListBucket" : "permission to list"
        return CacheError(
            .upstreamRefused(
                status: response.status, .init(retryAfter: wait, reason: ErrorDocument(response.body).reason)),
            lacksRight
                ? "The upstream answered \(response.status): the credentials of the origin are wrong, or lack \(right)."
                : "The upstream answered \(response.status) to the request for a listing.")
    }

    /// The entries below the mount, and for a folder its direct children only.
    func page(
        of listing: Listing, _ format: ListingFormat, against base: String, _ request: ListingRequest,
        at target: AssetTarget
    ) -> ListingPage {
        let mount = MountPrefixes(of: target, upstream: upstreams.client)
        let folder = format == .s3 ? "" : mount.path(of: base) ?? ""
        let itself = mount.path(of: target.url)
        // The paths of other entries are relative to the mount.
        let isDirect = format == .api ? target.settings.resolution.list.path == nil : format.isOfFolder && format != .s3
        var page = ListingPage(format: format, entries: [], nextCursor: listing.continuation)
        for entry in listing.entries {
            guard let url = mount.url(of: entry.reference, against: base), let path = mount.path(of: url) else {
                page.skippedEntries += 1
                continue
            }
            if isDirect {
                let name = path.dropFirst(folder.count)
                guard path.hasPrefix(folder), !name.isEmpty, !name.contains("?"), !name.dropLast().contains("/") else {
                    continue  // the folder itself, its parent, or a link to sort the page
                }
            }
            guard !path.isEmpty, path != itself else { continue }
            page.entries.append(
                ListingEntry(
                    reference: path, bytes: entry.bytes, modifiedAt: entry.modifiedAt, isFolder: entry.isFolder))
        }
        guard !format.isPaged else { return page }
        page.entries.sort { $0.reference < $1.reference }
        if let cursor = request.cursor { page.entries.removeAll { $0.reference <= cursor } }
        if page.entries.count > request.limit {
            page.entries.removeSubrange(request.limit...)
            page.nextCursor = page.entries.last?.reference
        }
        return page
    }
}
