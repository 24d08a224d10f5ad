import CacheCore
import CacheEngine
import Logging

extension Setting<LarderSettings> {
    /// All settings except those of origins and tags, in output order.
    static var all: [Setting] {
        service + policy + upstream + access + limits
    }

    /// Listener, directories, log, jobs and scrub.
    private static var service: [Setting] {
        [
            Setting("listen.address", \.listen.address, .address, "host and port to listen on"),
            Setting("listen.tls.certificateFile", optional: \.listen.certificateFile, .path, "PEM certificate chain"),
            Setting("listen.tls.keyFile", optional: \.listen.keyFile, .path, "PEM private key"),
            Setting("listen.fastPath", \.listen.isFastPathEnabled, .flag, "serve cached content on the event loop"),
            Setting("dataDirectory", \.dataDirectory, .path, "directory of the cached files and the catalog"),
            Setting(
                "credentialsDirectory", optional: \.credentialsDirectory, .path,
                "directory of the origins' credentials files"),
            Setting(
                "fallbackDirectory", optional: \.fallbackDirectory, .path, "directory of the origins' fallback files"),
            Setting("log.level", \.log.level, .choice, "minimum level of logged events"),
            Setting("log.format", \.log.format, .choice, "text or JSON lines"),
            Setting("jobs.concurrency", \.jobConcurrency, .count(1...256, example: 16), "concurrent prefetch items"),
            Setting(
                "scrub.interval", orNone: \.scrub.interval, .duration(example: "7d"),
                "interval of checksum verification"),
            Setting(
                "scrub.bytesPerSecond", orNone: \.scrub.bytesPerSecond, .size(atLeast: 1024, example: "32MiB"),
                "maximum read rate of the scrub"),
        ]
    }

    /// Capacity and eviction. The API can replace this policy; then the stored one is in force.
    private static var policy: [Setting] {
        [
            Setting("policy.capacity", orNone: \.policy.capacityBytes, .size, "maximum disk usage of the store"),
            Setting("policy.algorithm", \.policy.algorithm, .choice, "eviction algorithm"),
            Setting(
                "policy.highWatermark", \.policy.highWatermark, .fraction,
                "eviction starts above this fraction of capacity"),
            Setting(
                "policy.lowWatermark", \.policy.lowWatermark, .fraction,
                "eviction stops below this fraction of capacity"),
            Setting(
                "policy.minFreeDisk", \.policy.minFreeDiskBytes, .size, "free disk space that the store keeps available"
            ),
            Setting(
                "policy.admission.minUses", \.policy.minUses, .count(PolicySettings.uses, example: 2),
                "an asset is stored from this number of uses on"),
            Setting(
                "policy.maxPinned", orNone: \.policy.maxPinnedBytes, .size(atLeast: 0, example: "5GiB"),
                "maximum total length of pinned assets"),
            Setting(
                "policy.maxIdle", orNone: \.policy.maxIdle, .duration(example: "30d"),
                "assets unread for this long are evicted"),
            Setting(
                "policy.maxAge", orNone: \.policy.maxAge, .duration(example: "90d"),
                "assets older than this are evicted"),
        ]
    }

    /// Transfers of all origins, and the defaults of each origin.
    private static var upstream: [Setting] {
        [
            Setting(
                "upstream.workers", orNone: \.upstream.workers, .count(1...256, example: 4),
                "transfer threads; none: one per core, at least two"),
            Setting(
                "upstream.maxTransfers", \.upstream.maxTransfers, .count(1...10_000, example: 64),
                "concurrent transfers of all origins"),
            Setting(
                "upstream.maxBytesPerSecond", orNone: \.upstream.maxBytesPerSecond,
                .size(atLeast: 1024, example: "100MiB"), "maximum rate of all transfers together"),
            Setting(
                "upstream.maxTransfersPerOrigin", \.urlOrigin.maxTransfers, .count(1...10_000, example: 16),
                "concurrent transfers per origin"),
            Setting(
                "upstream.pricePerGigabyte", orNone: \.upstream.pricePerGigabyte, .price,
                "price of a gigabyte of upstream traffic"),
            Setting(
                "upstream.allowedHosts", list: \.upstream.allowedHosts, .host, "hosts of readable absolute URLs"),
        ]
            + Setting<OriginSettings>.shared.map { $0.moved(to: "upstream", \.urlOrigin) }
    }

    /// Tokens and cross-origin access.
    private static var access: [Setting] {
        [
            Setting("access.token", secret: \.access.token, "token of the scope admin"),
            Setting("access.tokenFile", optional: \.access.tokenFile, .path, "a file that holds it"),
            Setting("access.readToken", secret: \.access.readToken, "token of the scope read"),
            Setting("access.readTokenFile", optional: \.access.readTokenFile, .path, "a file that holds it"),
            Setting(
                "access.allowUnauthenticated", \.access.allowUnauthenticated, .flag,
                "serve other machines without a token"),
            Setting(
                "cors.allowedOrigins", list: \.cors.allowedOrigins, .webOrigin, "web origins that may call the API"),
        ]
    }

    /// Limits of requests, connections and reads.
    private static var limits: [Setting] {
        [
            Setting(
                "limits.bodyBytes", \.limits.bodyBytes, .memory(1024...(64 << 20), example: "1MiB"),
                "maximum length of a request body"),
            Setting(
                "limits.headerBytes", \.limits.headerBytes, .memory(1024...(1 << 20), example: "32KiB"),
                "maximum length of a request head"),
            Setting(
                "limits.urlBytes", \.limits.urlBytes, .memory(256...(1 << 20), example: "8KiB"),
                "maximum length of a request target"),
            Setting(
                "limits.maxConnections", orNone: \.limits.maxConnections, .count(1...1_000_000, example: 10_000),
                "maximum client connections, further ones get 503; none: two fifths of the open files"),
            Setting(
                "limits.maxConcurrentReads", \.limits.maxConcurrentReads, .count(1...1_000_000, example: 8192),
                "maximum reads in progress outside the fast path, further ones get 503"),
            Setting(
                "limits.maxQueuedFills", \.limits.maxQueuedFills, .count(1...1_000_000, example: 4096),
                "maximum queued fills with readers, further misses get 503"),
            Setting(
                "limits.idleTimeout", \.limits.idleTimeout, .duration(example: "75s"),
                "maximum idle time of a connection"),
            Setting(
                "limits.writeTimeout", \.limits.writeTimeout, .duration(example: "5m"),
                "maximum time without the client accepting response bytes"),
            Setting(
                "limits.headerTimeout", \.limits.headerTimeout, .duration(example: "15s"),
                "maximum time for a request head"),
            Setting(
                "limits.drainTimeout", \.limits.drainTimeout, .duration(example: "30s"),
                "maximum time for requests in progress at shutdown"),
            Setting(
                "limits.shutdownDelay", \.limits.shutdownDelay, .duration(example: "5s"),
                "time between unreadiness and refused connections"),
        ]
    }
}

extension Setting {
    /// The same setting for `Whole`, which contains `Root` as its `property`.
    func moved<Whole>(to prefix: String, _ property: WritableKeyPath<Whole, Root>) -> Setting<Whole> {
        Setting<Whole>(
            "\(prefix).\(key)", isList: isList, meaning,
            read: { lookup, path, whole throws(SettingsError) in try read(lookup, path, &whole[keyPath: property]) },
            written: { whole in written(whole[keyPath: property]) })
    }
}
