import CacheCore

/// The upstreams of all origins: the client of their requests, and all that decides how each request is sent.
struct Upstreams: Sendable {
    let client: any Upstream
    let credentials: CredentialsFileCache
    /// The accounts of the origins and the links to their content.
    let accounts: OriginAccounts
    /// Circuit breakers, retry budgets and latencies.
    let health: OriginHealth
    /// Round-trip times and HTTP versions of the addresses.
    let paths: UpstreamPaths
    /// The name of this process in `CDN-Loop` (RFC 8586). It is unique, so that several Larder instances can be chained.
    let loopName: String

    init(
        _ dependencies: AssetCache.Dependencies, _ settings: AssetCache.Settings, threads: DiskThreads,
        uptime: @escaping @Sendable () -> Duration
    ) {
        loopName = "larder-" + dependencies.random.identifier().prefix(8)
        client = dependencies.upstream
        credentials = CredentialsFileCache(
            store: dependencies.store, threads: threads, directory: settings.credentialsDirectory,
            logger: dependencies.logger)
        accounts = OriginAccounts(dependencies, threads: threads, directory: settings.credentialsDirectory)
        health = OriginHealth(
            uptime: uptime, random: dependencies.random, logger: dependencies.logger, events: dependencies.events)
        paths = UpstreamPaths(uptime: uptime)
    }

    /// Builds a request to the upstream of a target from ``AssetTarget/authorized(by:)``, with the settings and
    /// credentials of its origin.
    func request(to target: AssetTarget, priority: TransferPriority) -> UpstreamRequest {
        let settings = target.settings
        let credentials = settings.credentialsFile.map { self.credentials.fields(of: $0) } ?? HeaderList()
        var request = UpstreamRequest(
            url: target.url,
            headers: [
                "Via": "1.1 larder",
                "CDN-Loop": [target.cdnLoop, loopName].compactMap(\.self).joined(separator: ", "),
            ],
            originHeaders: settings.headers.overlaid(by: credentials).overlaid(by: target.forwarded ?? [:]),
            originName: target.originName,
            timeouts: settings.timeouts, maxTransfers: settings.maxTransfers,
            originBytesPerSecond: settings.maxBytesPerSecond, priority: priority,
            allowPrivateAddresses: settings.allowPrivateAddresses, tls: settings.tls)
        request.requiresHTTP1 = { [paths] in paths.requiresHTTP1($0) }
        request.region = health.region(of: target)
        if !settings.redirectHosts.isEmpty {
            request.redirectHosts = RedirectHosts(
                patterns: HostPatterns(settings.redirectHosts), ownURLs: [settings.baseURL] + settings.mirrors)
        }
        // A forwarded field is in `originHeaders`, which the targets of redirects do not get.
        let forwarded = settings.forwarded.map { FieldText.lowered($0) }
        for field in target.variant.fields where !forwarded.contains(FieldText.lowered(field.name)) {
            request.headers.append(field.name, field.value)
        }
        return request
    }

    /// Obtains other credentials or another link after a response that refused a request. Returns whether a repetition can
    /// succeed. `access`: that of the request; nil: only the credentials file of the origin can help.
    func renew(_ access: UpstreamAccess?, to target: AssetTarget, after head: UpstreamHead) async -> Bool {
        if head.status == 401, let file = target.settings.credentialsFile {
            await withCheckedContinuation { continuation in
                credentials.reread(file) { continuation.resume() }
            }
            return true
        }
        return access.map { accounts.isRepeatable($0, of: target, after: head) } ?? false
    }

    /// The indices of the URLs whose servers are failing. It is empty for a single URL; it has no alternative.
    func failing(_ urls: [String]) -> Set<Int> {
        urls.count < 2 ? [] : Set(urls.indices.filter { client.isFailing(urls[$0]) })
    }

    /// The URLs of the target's content: its own, then the same path below each mirror of its origin.
    func addresses(of target: AssetTarget) -> [String] {
        let settings = target.settings
        // Mirrors of an origin with an unparsable URL are ignored; the request to the origin reports the error.
        guard !settings.mirrors.isEmpty, target.originName != Origin.absoluteName,
            let base = try? client.parse(url: settings.baseURL).text.withoutLastSlash, target.url.hasPrefix(base)
        else { return [target.url] }
        let rest = target.url.dropFirst(base.count)
        guard rest.hasPrefix("/") else { return [target.url] }
        return [target.url] + settings.mirrors.map { $0.withoutLastSlash + rest }
    }
}

extension HeaderList {
    /// These fields, except those that `others` replaces.
    fileprivate func overlaid(by others: HeaderList) -> HeaderList {
        HeaderList(fields.filter { others[$0.name] == nil } + others.fields)
    }
}

extension String {
    fileprivate var withoutLastSlash: String { hasSuffix("/") ? String(dropLast()) : self }
}
