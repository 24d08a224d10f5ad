import CacheCore
import CacheEngine
import Logging

extension Setting<LarderSettings> {
    /// Every setting outside `origins`, in the order in which they are printed.
    static var all: [Setting] {
        service + policy + upstream + access + limits
    }

    private static var service: [Setting] {
        [
            Setting("listen.address", \.listen.address, .address, "host and port to listen on"),
            Setting("listen.tls.certificateFile", optional: \.listen.certificateFile, .path, "PEM certificate chain"),
            Setting("listen.tls.keyFile", optional: \.listen.keyFile, .path, "PEM private key"),
            Setting("listen.express", \.listen.isExpress, .flag, "answer what is at hand by the short way"),
            Setting("dataDirectory", \.dataDirectory, .path, "where files and catalog lie"),
            Setting(
                "credentialsDirectory", optional: \.credentialsDirectory, .path, "where origins' credentials files lie"),
            Setting("fallbackDirectory", optional: \.fallbackDirectory, .path, "where origins' fallback files lie"),
            Setting("log.level", \.log.level, .choice, "the least severe events that are logged"),
            Setting("log.format", \.log.format, .choice, "lines for people (text) or machines (json)"),
            Setting("jobs.concurrency", \.jobConcurrency, .count(1...256, example: 16), "prefetch items at once"),
            Setting(
                "scrub.interval", orNone: \.scrub.interval, .duration(example: "7d"), "all bytes are checked so often"),
            Setting(
                "scrub.bytesPerSecond", orNone: \.scrub.bytesPerSecond, .size(atLeast: 1024, example: "32MiB"),
                "so fast at most"),
        ]
    }

    private static var policy: [Setting] {
        [
            Setting("policy.capacity", orNone: \.policy.capacityBytes, .size, "disk the store may use"),
            Setting("policy.algorithm", \.policy.algorithm, .choice, "which bytes go first"),
            Setting("policy.highWatermark", \.policy.highWatermark, .fraction, "eviction starts above this part"),
            Setting("policy.lowWatermark", \.policy.lowWatermark, .fraction, "and stops below this one"),
            Setting("policy.minFreeDisk", \.policy.minFreeDiskBytes, .size, "disk left free for others"),
            Setting(
                "policy.admission.minUses", \.policy.minUses, .count(PolicySettings.uses, example: 2),
                "an asset is kept from so many uses on"),
            Setting(
                "policy.maxPinned", orNone: \.policy.maxPinnedBytes, .size(atLeast: 0, example: "5GiB"),
                "lengths of all pinned assets"),
            Setting("policy.maxIdle", orNone: \.policy.maxIdle, .duration(example: "30d"), "unread this long: goes"),
            Setting("policy.maxAge", orNone: \.policy.maxAge, .duration(example: "90d"), "older than this: goes"),
        ]
    }

    private static var upstream: [Setting] {
        [
            Setting(
                "upstream.workers", orNone: \.upstream.workers, .count(1...256, example: 4),
                "transfer threads; none: one for each core, at least two"),
            Setting(
                "upstream.maxTransfers", \.upstream.maxTransfers, .count(1...10_000, example: 64),
                "transfers at once, all origins together"),
            Setting(
                "upstream.maxBytesPerSecond", orNone: \.upstream.maxBytesPerSecond,
                .size(atLeast: 1024, example: "100MiB"), "all transfers of all origins together"),
            Setting(
                "upstream.maxTransfersPerOrigin", \.urlOrigin.maxTransfers, .count(1...10_000, example: 16),
                "transfers at once of one origin"),
            Setting(
                "upstream.pricePerGigabyte", orNone: \.upstream.pricePerGigabyte, .price,
                "what a gigabyte from upstream costs"),
            Setting("upstream.allowedHosts", list: \.upstream.allowedHosts, .host, "whose absolute URLs may be read"),
        ]
            + Setting<OriginSettings>.shared.map { $0.moved(to: "upstream", \.urlOrigin) }
    }

    private static var access: [Setting] {
        [
            Setting("access.token", secret: \.access.token, "the token for everything"),
            Setting("access.tokenFile", optional: \.access.tokenFile, .path, "a file that holds it"),
            Setting("access.readToken", secret: \.access.readToken, "the token for content and reading"),
            Setting("access.readTokenFile", optional: \.access.readTokenFile, .path, "a file that holds it"),
            Setting(
                "access.allowUnauthenticated", \.access.allowUnauthenticated, .flag,
                "serve other machines without any token"),
            Setting("cors.allowedOrigins", list: \.cors.allowedOrigins, .webOrigin, "web pages that may call"),
        ]
    }

    private static var limits: [Setting] {
        [
            Setting(
                "limits.bodyBytes", \.limits.bodyBytes, .memory(1024...(64 << 20), example: "1MiB"), "request body"),
            Setting("limits.headerBytes", \.limits.headerBytes, .memory(1024...(1 << 20), example: "32KiB"), "head"),
            Setting("limits.urlBytes", \.limits.urlBytes, .memory(256...(1 << 20), example: "8KiB"), "request target"),
            Setting(
                "limits.connections", orNone: \.limits.connections, .count(1...1_000_000, example: 10_000),
                "clients' connections, more get 503; none: two fifths of the open files allowed"),
            Setting(
                "limits.reads", \.limits.reads, .count(1...1_000_000, example: 8192),
                "reads in progress that are not answered at once from disk, more get 503"),
            Setting(
                "limits.queuedFills", \.limits.queuedFills, .count(1...1_000_000, example: 4096),
                "windows that queue for readers; then what is not on disk gets 503"),
            Setting("limits.idleTimeout", \.limits.idleTimeout, .duration(example: "75s"), "a connection may rest"),
            Setting(
                "limits.sendTimeout", \.limits.sendTimeout, .duration(example: "5m"),
                "a client may take nothing of its answer"),
            Setting("limits.headerTimeout", \.limits.headerTimeout, .duration(example: "15s"), "a head may take"),
            Setting(
                "limits.drainTimeout", \.limits.drainTimeout, .duration(example: "30s"), "the end of service may take"),
            Setting(
                "limits.shutdownDelay", \.limits.shutdownDelay, .duration(example: "5s"),
                "readiness is false before connections are refused"),
        ]
    }
}

extension Setting {
    /// The same setting of a `Root` that is part of `Whole`.
    func moved<Whole>(to prefix: String, _ property: WritableKeyPath<Whole, Root>) -> Setting<Whole> {
        Setting<Whole>(
            "\(prefix).\(key)", isList: isList, meaning,
            read: { lookup, path, whole throws(SettingsError) in try read(lookup, path, &whole[keyPath: property]) },
            written: { whole in written(whole[keyPath: property]) })
    }
}
