import CacheAPI
import CacheCore
import CacheEngine
import Logging
import MediaParsing
import WebTokens

extension LarderSettings {
    /// All settings except those of origins and tags, in output order.
    static let settings: [Setting<Self>] =
        Setting.listener + Setting.service + Setting.encryption + Setting.fleet + Setting.etcd + Setting.telemetry
        + Setting.policy + Setting.upstream + Setting.access + Setting.limits
}

extension Setting<LarderSettings> {
    /// Address, certificates and fast path of the listener.
    fileprivate static var listener: [Setting] {
        [
            Setting(
                "listen.address", \.listen.address, .address,
                "host and port of the listener, or `unix:/path`; an address of other machines needs a token"
            ).fixed(),
            Setting(
                "listen.socketMode", \.listen.socketMode, .fileMode,
                "octal mode of the file of a Unix socket: clients need the permission to write"
            ).fixed(),
            Setting(
                "listen.tls.certificateFile", optional: \.listen.certificateFile, .path,
                "PEM certificate chain for HTTPS; requires `listen.tls.keyFile`"
            ).fixed(),
            Setting(
                "listen.tls.keyFile", optional: \.listen.keyFile, .path,
                "PEM private key; requires `listen.tls.certificateFile`"
            ).fixed(),
            Setting(
                "listen.tls.clientCAFile", optional: \.listen.clientCAFile, .path,
                "PEM certificates of the authorities of client certificates; requires `listen.tls.certificateFile`"
            )
            .fixed(),
            Setting(
                "listen.tls.clientAuthentication", \.listen.clientAuthentication, .choice,
                "with `listen.tls.clientCAFile`: `required` refuses connections without a client certificate, "
                    + "`optional` accepts them"
            ).fixed(),
            Setting(
                "listen.fastPath", \.listen.isFastPathEnabled, .flag,
                "answer requests for cached, fresh content without a wait; `false`: each request runs all steps of a "
                    + "read"
            ).fixed(),
            Setting(
                "listen.proxyProtocol", \.listen.proxyProtocol, .choice,
                "`required`: each connection begins with a header of the PROXY protocol, version 1 or 2, and comes from "
                    + "`listen.trustedProxies`; others are closed, those of health checks included"
            ).fixed(),
            Setting(
                "listen.trustedProxies", list: \.listen.trustedProxies, .network,
                "addresses and networks of the proxies in front of the service; required by `listen.proxyProtocol` and "
                    + "`listen.clientAddressFrom`, except with a Unix socket, which is trusted"
            ).fixed(),
            Setting(
                "listen.clientAddressFrom", \.listen.clientAddressFrom, .choice,
                "the address of a client: that of its `connection`, or the last one in `forwarded` (RFC 7239) or "
                    + "`xForwardedFor` that is not in `listen.trustedProxies`"
            ).fixed(),
        ]
    }

    /// Directories, log, jobs and scrub.
    fileprivate static var service: [Setting] {
        [
            Setting(
                "dataDirectory", \.dataDirectory, .path,
                "directory of files and catalog, used by one process at a time: an existing store, an "
                    + "empty directory, or a new path with an existing parent"
            ).fixed(),
            Setting(
                "credentialsDirectory", optional: \.credentialsDirectory, .path,
                "directory of the origins' credentials files; without it no origin can have a `credentialsFile`"
            ).fixed(),
            Setting(
                "fallbackDirectory", optional: \.fallbackDirectory, .path,
                "directory of the origins' fallback files; without it no origin can have a `fallback.file`"
            ).fixed(),
            Setting(
                "log.level", \.log.level, .choice,
                "minimum level: `trace`, `debug`, `info`, `notice`, `warning`, `error` or `critical`"),
            Setting("log.format", \.log.format, .choice, "`text`, or `json` with one object per line").fixed(),
            Setting(
                "log.fields", \.log.fields, .choice,
                "names of the members of JSON entries: `larder`, or `ecs` (Elastic Common Schema) for Elastic, Datadog and "
                    + "Loki"
            ).fixed(),
            Setting(
                "log.access", orNone: \.log.access, .choice,
                "access log, whatever `log.level` is: `text`, `json`, `combined` (the format of Apache and nginx with "
                    + "more members) or `off`; `none`: entries of the level `info` in the log itself"
            ).fixed(),
            Setting(
                "metrics.tokens", list: \.labelledTokens, .line,
                "names of tokens that have series of their own in `/metrics` from the start, beside the first 100 that read"
            ).fixed(),
            Setting("dashboard.enabled", \.isDashboardEnabled, .flag, "serve the dashboard at `/ui/`").fixed(),
            Setting(
                "jobs.concurrency", \.jobConcurrency, .count(1...256, example: 16),
                "prefetch items fetched at once (1–256)"
            ).fixed(),
            Setting(
                "scrub.interval", orNone: \.scrub.interval, .duration(example: "7d"),
                "interval of full checksum verification; `none`: only on request"
            ).fixed(),
            Setting(
                "scrub.bytesPerSecond", orNone: \.scrub.bytesPerSecond, .rate,
                "maximum read rate of a scrub, at least 1 KiB, or `none`"
            ).fixed(),
        ]
    }

    /// Master keys of encrypted origins.
    fileprivate static var encryption: [Setting] {
        [
            Setting(
                "encryption.keysDirectory", optional: \.encryption.keysDirectory, .path,
                "directory with one file for each master key: 32 bytes, or as 64 hexadecimal digits or Base64; the name of "
                    + "the file without its extension is the identifier, and only the owner may read it (mode 0600)"),
            Setting(
                "encryption.keyCommand", list: \.encryption.keyCommand, .line,
                "program with its arguments that prints a master key in one of these forms; the identifier of the key is its "
                    + "last argument. It runs without a shell and environment, for at most 10 s; requires "
                    + "`encryption.activeKey`"),
            Setting(
                "encryption.activeKey", optional: \.encryption.activeKey, .line,
                "identifier of the master key for new files; without it the last one in the order of the names in "
                    + "`encryption.keysDirectory`"),
            Setting(
                "encryption.onMissingKey", \.encryption.onMissingKey, .choice,
                "reads of content whose master key is missing: `refuse` with `encryptionKeyMissing`, or `refetch` it"),
            Setting(
                "encryption.onChange", \.encryption.onChange, .choice,
                "stored assets of an origin whose `encrypt` was changed: `refetch` removes them, `convert` rewrites them in "
                    + "the background"),
        ]
    }

    /// The other nodes of a fleet.
    fileprivate static var fleet: [Setting] {
        [
            Setting(
                "fleet.peers", list: \.fleet.peers, .nodeURL,
                "base URLs of the other nodes, which are asked before the upstream; the URL of this node may be among "
                    + "them; requires `fleet.keyFile` or `fleet.tls.certificateFile`"),
            Setting(
                "fleet.keyFile", optional: \.fleet.keyFile, .path,
                "file with the keys by which nodes prove themselves, one per line with at least 32 characters: the first "
                    + "one is presented, all are accepted"),
            Setting(
                "fleet.tls.certificateFile", optional: \.fleet.certificateFile, .path,
                "PEM certificate chain that this node presents to others; requires `fleet.tls.keyFile`"),
            Setting(
                "fleet.tls.keyFile", optional: \.fleet.certificateKeyFile, .path,
                "PEM private key; requires `fleet.tls.certificateFile`"),
            Setting(
                "fleet.tls.caFile", optional: \.fleet.caFile, .path,
                "PEM certificates of the authorities of the other nodes, in place of those of the system"),
            Setting(
                "fleet.peerCertificates", list: \.fleet.peerCertificates, .line,
                "names in client certificates that prove a node, such as `DNS:larder.example`; requires "
                    + "`listen.tls.clientCAFile`"),
            Setting(
                "fleet.timeout", \.fleet.timeout, .duration(example: "50ms"),
                "time within which another node states what it has; one that misses it twice in a row is not asked for "
                    + "10 s"),
            Setting(
                "fleet.leaveTimeout", \.fleet.leaveTimeout, .duration(allowsZero: true, example: "10m"),
                "time for which a stopped node that is no longer ready still serves, so that others fetch its bytes; "
                    + "`0s`: `limits.shutdownDelay`"
            ).fixed(),
        ]
    }

    /// The desired state of a fleet.
    fileprivate static var etcd: [Setting] {
        [
            Setting(
                "fleet.etcd.endpoints", list: \.fleet.etcdEndpoints, .nodeURL,
                "base URLs of the members of etcd, which has origins, policy and purges of all nodes; requires "
                    + "`fleet.keyFile`"
            ).fixed(),
            Setting(
                "fleet.etcd.caFile", optional: \.fleet.etcdCAFile, .path,
                "PEM certificates of the authorities of etcd, in place of those of the system"
            ).fixed(),
            Setting(
                "fleet.etcd.certificateFile", optional: \.fleet.etcdCertificateFile, .path,
                "PEM certificate chain that this node presents to etcd; requires `fleet.etcd.keyFile`"
            ).fixed(),
            Setting(
                "fleet.etcd.keyFile", optional: \.fleet.etcdKeyFile, .path,
                "PEM private key; requires `fleet.etcd.certificateFile`"
            ).fixed(),
            Setting(
                "fleet.etcd.credentialsFile", optional: \.fleet.etcdCredentialsFile, .path,
                "file with `user:password` of etcd"
            ).fixed(),
            Setting(
                "fleet.name", \.fleet.name, .fleetName, "name of the fleet in etcd"
            ).fixed(),
            Setting(
                "fleet.node", optional: \.fleet.node, .fleetName,
                "name of this node, which no other node has; default: the name of the host"
            ).fixed(),
            Setting(
                "fleet.advertise", optional: \.fleet.advertise, .nodeURL,
                "base URL at which other nodes reach this one; with etcd they find it there"
            ).fixed(),
            Setting(
                "fleet.router", optional: \.fleet.router, .nodeURL,
                "base URL of the router, through which jobs reach the nodes of their assets; without it the node of a job "
                    + "fetches all its items; requires `fleet.etcd.endpoints`"
            ).fixed(),
            Setting(
                "fleet.maxLag", \.fleet.maxLag, .duration(example: "10s"),
                "time without etcd after which the node asks the others: if one of them reaches etcd, it is not ready "
                    + "until it does, too"
            ).fixed(),
            Setting(
                "fleet.catchUp", \.fleet.catchUp, .choice,
                "a node that reaches neither etcd nor another node: `require` makes it not ready, `serve` lets it serve"
            ).fixed(),
        ]
    }

    /// Export of traces.
    fileprivate static var telemetry: [Setting] {
        [
            Setting(
                "telemetry.traces.endpoint", optional: \.telemetry.endpoint, .receiverURL,
                "URL of `/v1/traces` of an OTLP/HTTP receiver for JSON; without it no trace is recorded, unless a "
                    + "variable of OpenTelemetry names one"
            ).fixed(),
            Setting(
                "telemetry.traces.headersFile", optional: \.telemetry.headersFile, .path,
                "file with header fields for the receiver, one `Name: value` per line"
            ).fixed(),
            Setting(
                "telemetry.traces.sampleRatio", orNone: \.telemetry.sampleRatio, .share,
                "share of recorded traces that have no parent (0–1); `none`: that of OpenTelemetry, otherwise 1"
            ).fixed(),
            Setting(
                "telemetry.traces.timeout", orNone: \.telemetry.timeout, .duration(example: "10s"),
                "time limit of one request to the receiver; `none`: that of OpenTelemetry, otherwise 10s"
            ).fixed(),
        ]
    }

    /// Capacity and eviction. The API can replace this policy; then the stored one is in force.
    fileprivate static var policy: [Setting] { PolicySettings.settings.map { $0.moved(to: "policy", \.policy) } }

    /// Transfers of all origins, and the defaults of each origin.
    fileprivate static var upstream: [Setting] {
        [
            Setting(
                "upstream.workers", orNone: \.upstream.workers, .count(1...256, example: 4),
                "transfer threads (1–256); `none`: one per processor core, at least two"
            ).fixed(),
            Setting(
                "upstream.maxTransfers", \.upstream.maxTransfers, .count(1...10_000, example: 64),
                "concurrent transfers from all upstreams; at most one for each 32 open files that the "
                    + "process may have, and 64 if it may have 512 to 2048"),
            Setting(
                "upstream.maxBytesPerSecond", orNone: \.upstream.maxBytesPerSecond, .rate,
                "rate limit of all transfers together, at least 1 KiB; reads from disk are not limited"),
            Setting(
                "upstream.maxTransfersPerOrigin", \.urlOrigin.maxTransfers, .count(1...10_000, example: 16),
                "default of `maxTransfers` for each origin"),
            Setting(
                "upstream.dns.maxAge", \.upstream.dnsMaxAge,
                .duration("a duration up to 1h", upTo: .seconds(3600), allowsZero: true, example: "30s"),
                "maximum age of a resolved name, up to `1h`, in whole seconds; a failed connection ends it earlier"
            ).fixed(),
            Setting(
                "upstream.connectionMaxAge", \.upstream.connectionMaxAge,
                .duration("a duration up to 24h", upTo: .seconds(86_400), example: "10m"),
                "maximum age of a kept connection, up to `24h`, in whole seconds; a moved name is followed after it"
            ).fixed(),
            Setting(
                "upstream.pricePerGigabyte", orNone: \.upstream.pricePerGigabyte, .price,
                "price of 10^9 bytes from upstreams, for simulations of policies"),
            Setting(
                "upstream.allowedHosts", list: \.upstream.allowedHosts, .host,
                "hosts from which absolute URLs can be read: `host`, `host:port`, `*.suffix`"),
        ]
            + OriginSettings.sharedSettings.map { $0.moved(to: "upstream", \.urlOrigin) }
    }

    /// Tokens and cross-origin access.
    fileprivate static var access: [Setting] {
        [
            secret("access.token", \.access.token, "token with scope `admin`: all calls"),
            Setting("access.tokenFile", optional: \.access.tokenFile, .path, "file that contains this token"),
            secret("access.readToken", \.access.readToken, "token with scope `read`: content and reading calls"),
            Setting("access.readTokenFile", optional: \.access.readTokenFile, .path, "file that contains this token"),
            Setting(
                "access.tokensFile", optional: \.access.tokensFile, .path,
                "JSON file with tokens and their scopes, limits and expiry; read again within 2 s after a change"),
            Setting(
                "access.jwt.issuer", optional: \.access.jwt.issuer, .line, "required claim `iss` of JSON Web Tokens"),
            Setting(
                "access.jwt.audience", optional: \.access.jwt.audience, .line,
                "required member of the claim `aud` of JSON Web Tokens"),
            Setting(
                "access.jwt.jwksFile", optional: \.access.jwt.keysFile, .path,
                "file with the JWK set that verifies JSON Web Tokens; read again within 2 s after a change"),
            Setting(
                "access.jwt.jwksURL", optional: \.access.jwt.keysURL, .keySetURL,
                "URL of this JWK set, in place of a file; fetched at the start, every hour, and for an unknown `kid` "
                    + "at most once per minute"),
            Setting(
                "access.jwt.scopeClaim", \.access.jwt.scopeClaim, .line,
                "claim with the scopes `read`, `write`, `sign`, `admin`"),
            Setting(
                "access.jwt.algorithms", list: \.access.jwt.algorithms, .choice,
                "accepted algorithms, such as `RS256`, `ES256` or `EdDSA`"),
            Setting(
                "access.signing.keysDirectory", optional: \.access.signing.keysDirectory, .path,
                "directory with the keys of signed content URLs; the name of a file without its extension is the `kid`"),
            Setting(
                "access.signing.grace", \.access.signing.grace, .duration(allowsZero: true, example: "10m"),
                "time after the expiry of a signed URL for which a reader that began before may read further ranges of "
                    + "the same asset; not for the form `uriSigning`"),
            Setting(
                "access.signing.issuers", list: \.access.signing.issuers, .line,
                "accepted claims `iss` of URI signing packages (RFC 9246); packages without `iss` are accepted too"),
            Setting(
                "access.allowUnauthenticated", \.access.allowUnauthenticated, .flag,
                "serve other machines without any token"),
            Setting(
                "cors.allowedOrigins", list: \.cors.allowedOrigins, .webOrigin,
                "web origins that may call the service: `https://player.example.com`, or `*`"),
        ]
    }

    /// Limits for each address of a client.
    private static var perAddress: [Setting] {
        [
            Setting(
                "limits.perAddress.connections", orNone: \.limits.perAddress.connections,
                .count(1...1_000_000, example: 100),
                "connections of one client address (IPv6: of a /64 network), except those of `listen.trustedProxies`; "
                    + "further ones get `429`"),
            Setting(
                "limits.perAddress.streams", orNone: \.limits.perAddress.streams, .count(1...100_000, example: 20),
                "streams of events and live statistics of one client address, with the same exceptions; further ones get `429`"
            ),
            Setting(
                "limits.perAddress.requestsPerSecond", orNone: \.limits.perAddress.requestsPerSecond,
                .count(1...1_000_000, example: 1000),
                "requests per second of one client address, with the same exceptions and without health checks; further ones get `429`, and their "
                    + "connection is closed"),
        ]
    }

    /// Limits of requests, connections, reads, and media files and playlists.
    fileprivate static var limits: [Setting] {
        media + perAddress + [
            Setting(
                "limits.bodyBytes", \.limits.bodyBytes, .memory(1024...(64 << 20), example: "1MiB"),
                "largest request body (1 KiB–64 MiB), at most a quarter of `limits.requestBodies`"),
            Setting(
                "limits.requestBodies", \.limits.requestBodies, .memory((4 << 20)...(16 << 30), example: "64MiB"),
                "request bodies in memory (4 MiB–16 GiB); one token holds at most a quarter, and another quarter is "
                    + "reserved for tokens with the scope `admin`; further bodies get `503`"),
            Setting(
                "limits.followers", \.limits.followers, .count(10...100_000, example: 500),
                "streams of events and live statistics (10–100,000), a tenth of them for one token; further ones get "
                    + "`503`"),
            Setting(
                "limits.jobItems", \.limits.jobs.jobItems, .count(1...1_000_000, example: 100_000),
                "items of a prefetch job, with the files of its playlists (1–1,000,000); a playlist that would exceed "
                    + "it fails with `jobTooLarge`"),
            Setting(
                "limits.unfinishedJobItems", \.limits.jobs.unfinishedItems, .count(1...10_000_000, example: 500_000),
                "unfinished items of all prefetch jobs (1–10,000,000); further jobs get `503`, and playlists fail with "
                    + "`jobTooLarge`"),
            Setting(
                "limits.headerBytes", \.limits.headerBytes, .memory(1024...(1 << 20), example: "32KiB"),
                "largest request head (1 KiB–1 MiB)"),
            Setting(
                "limits.urlBytes", \.limits.urlBytes, .memory(256...(1 << 20), example: "8KiB"),
                "longest request target (256 B–1 MiB)"),
            Setting(
                "limits.maxConnections", orNone: \.limits.maxConnections, .count(1...1_000_000, example: 10_000),
                "client connections; above it, the connection that is idle longest gives way to a request, which gets "
                    + "`503` if none is idle; `none`: two fifths of the limit on open files, or fewer if that limit is "
                    + "small"
            ).fixed(),
            Setting(
                "limits.maxConcurrentReads", \.limits.maxConcurrentReads, .count(1...1_000_000, example: 8192),
                "concurrent reads that cannot be answered at once from disk; further ones get `503`"),
            Setting(
                "limits.maxQueuedFills", \.limits.maxQueuedFills, .count(1...1_000_000, example: 4096),
                "fills that wait for a transfer permit while a reader waits for them; above it, reads of "
                    + "missing content get `503`"),
            Setting(
                "limits.idleTimeout", \.limits.idleTimeout, .duration(example: "75s"),
                "close a connection after this long without a request"),
            Setting(
                "limits.writeTimeout", \.limits.writeTimeout, .duration(example: "5m"),
                "close a connection after this long without the client accepting any response bytes; it "
                    + "can take up to twice as long"),
            Setting(
                "limits.headerTimeout", \.limits.headerTimeout, .duration(example: "15s"),
                "time to receive a complete request head; then `408`"),
            Setting(
                "limits.drainTimeout", \.limits.drainTimeout, .duration(example: "30s"),
                "time for requests in progress at shutdown"
            ).fixed(),
            Setting(
                "limits.shutdownDelay", \.limits.shutdownDelay, .duration(example: "5s"),
                "time between the failing readiness check and the closing of the listener at shutdown"
            ).fixed(),
        ]
    }

    /// Limits for indices of media and playlists.
    private static var media: [Setting] {
        [
            Setting(
                "limits.media.indexBytes", \.limits.media.indexBytes, .memory(65536...(1 << 30), example: "64MiB"),
                "largest index of a media file (64 KiB–1 GiB)"),
            Setting(
                "limits.media.playlistBytes", \.limits.media.playlistBytes, .memory(1024...(64 << 20), example: "8MiB"),
                "largest playlist or manifest (1 KiB–64 MiB)"),
            Setting(
                "limits.media.segments", \.limits.media.segments, .count(1...1_000_000, example: 50_000),
                "segments of a playlist"),
            Setting(
                "limits.media.renditions", \.limits.media.renditions, .count(1...1000, example: 64),
                "renditions of a playlist"),
            Setting(
                "limits.media.fragments", \.limits.media.fragments, .count(1...1_000_000, example: 4096),
                "upstream requests for the index of a media file"),
            Setting(
                "limits.media.depth", \.limits.media.depth, .count(4...64, example: 10),
                "nesting of boxes or elements in a media file"),
        ]
    }

    /// A credential: read unchanged, written masked.
    private static func secret(
        _ key: String, _ property: SettingPath<LarderSettings, MaskedSecret?>, _ meaning: String
    ) -> Setting {
        Setting(
            key, meaning, isSecret: true,
            parse: { text, settings throws(SettingFault) in
                guard !text.scalar.isEmpty else { throw SettingFault("is empty") }
                settings[keyPath: property] = MaskedSecret(text.scalar)
            },
            write: { settings in settings[keyPath: property].map { .scalar($0.description) } })
    }
}
