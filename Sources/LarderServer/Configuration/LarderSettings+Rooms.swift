import CacheAPI
import CacheCore
import CacheEngine
import CurlUpstream

extension LarderSettings {
    /// Throws if a configured file of certificate authorities cannot be used.
    func checkCAFiles() throws(SettingsError) {
        for origin in origins {
            do throws(CacheError) {
                try origin.settings.tls.checkCAFile()
            } catch {
                throw SettingsError("origins.\(origin.name).tls.caFile", error.message)
            }
        }
    }

    /// The settings of the upstream's worker pool, within the limit on open files.
    func pool(_ files: OpenFileBudget) -> CurlPoolSettings {
        var pool = CurlPoolSettings(maxTransfers: files.transfers(wished: upstream.maxTransfers))
        if let workers = upstream.workers { pool.workers = workers }
        pool.maxBytesPerSecond = upstream.maxBytesPerSecond
        pool.userAgent = "larder/" + LarderCommand.version
        return pool
    }

    /// What the cache is built from.
    var cache: AssetCache.Settings {
        AssetCache.Settings(
            policy: policy, absolute: urlOrigin, allowedHosts: HostPatterns(upstream.allowedHosts), origins: origins,
            jobConcurrency: jobConcurrency, scrub: scrub, credentialsDirectory: credentialsDirectory,
            fallbackDirectory: fallbackDirectory, pricePerGigabyte: upstream.pricePerGigabyte,
            maxQueuedFills: limits.queuedFills)
    }

    /// What the counter is built from.
    func counter(openAPI: String) -> APISettings {
        var tls: APISettings.TLS?
        if let certificate = listen.certificateFile, let key = listen.keyFile {
            tls = APISettings.TLS(certificateFile: certificate, keyFile: key)
        }
        let tokens: [(token: String, scope: AccessScope)] =
            [access.token.map { ($0.exposed, .admin) }, access.readToken.map { ($0.exposed, .read) }].compactMap { $0 }
        let origins: CORSRules.Origins =
            if cors.allowedOrigins.contains("*") { .any } else if cors.allowedOrigins.isEmpty { .none } else {
                .these(Set(cors.allowedOrigins))
            }
        return APISettings(
            host: listen.address.host, port: listen.address.port, tls: tls,
            access: AccessRules(tokens: tokens, allowUnauthenticated: access.allowUnauthenticated),
            cors: CORSRules(origins: origins),
            limits: APISettings.Limits(
                bodyBytes: limits.bodyBytes, urlBytes: limits.urlBytes, headerBytes: limits.headerBytes,
                headerTimeout: limits.headerTimeout, idleTimeout: limits.idleTimeout,
                sendTimeout: limits.sendTimeout, reads: limits.reads),
            isExpress: listen.isExpress, version: LarderCommand.version, openAPI: openAPI)
    }
}
