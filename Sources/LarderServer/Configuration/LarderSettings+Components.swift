import CacheAPI
import CacheCore
import CacheEngine
import CurlUpstream
import EtcdClient
import Glibc
import Logging

/// Mapping of the settings to the settings of each component.
extension LarderSettings {
    /// Throws if the CA file of an origin cannot be used.
    func checkCAFiles() throws(SettingsError) {
        var files = origins.map { (key: "origins.\($0.name).tls.caFile", tls: $0.settings.tls) }
        files.append(("fleet.tls.caFile", TLSSettings(caFile: fleet.caFile)))
        files.append(("fleet.etcd.caFile", TLSSettings(caFile: fleet.etcdCAFile)))
        files += webhooks.map { ($0.key("tls.caFile"), TLSSettings(caFile: $0.caFile)) }
        for (key, tls) in files {
            do throws(CacheError) {
                try tls.checkCAFile()
            } catch {
                throw SettingsError(key, error.message)
            }
        }
    }

    /// The settings of the transfer worker pool, within the limit on open files.
    func pool(_ files: OpenFileBudget) -> CurlPoolSettings {
        var pool = CurlPoolSettings(maxTransfers: files.transfers(wished: upstream.maxTransfers))
        if let workers = upstream.workers { pool.workers = workers }
        pool.maxBytesPerSecond = upstream.maxBytesPerSecond
        (pool.nameMaxAge, pool.connectionMaxAge) = (upstream.dnsMaxAge, upstream.connectionMaxAge)
        pool.userAgent = "larder/" + LarderCommand.version
        return pool
    }

    /// The nodes that this one asks. `files`: the limit on open files, and with it that on transfers.
    func peers(_ files: OpenFileBudget) -> PeerSettings {
        PeerSettings(
            nodes: fleet.peers, key: fleet.keys.first?.exposed,
            tls: fleet.tls,
            limit: fleet.timeout, maxTransfers: pool(files).maxTransfers / 2)
    }

    /// The settings of the fleet with etcd; nil without etcd.
    private var fleetMember: FleetMember.Settings? {
        guard !fleet.etcdEndpoints.isEmpty else { return nil }
        var member = FleetMember.Settings(
            fleet: fleet.name, node: fleet.node ?? Self.hostName, url: fleet.advertise ?? "",
            etcd: fleet.etcd,
            keys: fleet.keys.map(\.exposed), maxLag: fleet.maxLag, catchUp: fleet.catchUp,
            version: LarderCommand.version)
        member.router = fleet.router
        return member
    }

    /// The name of this machine, without a question to the DNS.
    private static var hostName: String {
        var name = [CChar](repeating: 0, count: 65)
        // A longer name is cut off.
        guard gethostname(&name, name.count - 1) == 0 || errno == ENAMETOOLONG else { return "node" }
        return String(decoding: name.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    /// The worker pools for content, for requests to other services, such as etcd, and for webhooks. They share no limit.
    func pools(
        _ files: OpenFileBudget, logger: Logger
    ) -> (content: CurlWorkerPool, services: CurlWorkerPool, receivers: CurlWorkerPool) {
        let agent = "larder/" + LarderCommand.version
        return (
            CurlWorkerPool(settings: pool(files), clock: ContinuousClock(), logger: logger),
            CurlWorkerPool(settings: .ownRequests(userAgent: agent), clock: ContinuousClock(), logger: logger),
            CurlWorkerPool(settings: .guardedRequests(userAgent: agent), clock: ContinuousClock(), logger: logger)
        )
    }

    /// The settings of the cache engine.
    var cache: AssetCache.Settings {
        var cache = AssetCache.Settings(
            policy: policy, absolute: urlOrigin, allowedHosts: HostPatterns(upstream.allowedHosts), origins: origins,
            jobConcurrency: jobConcurrency, jobLimits: limits.jobs, scrub: scrub,
            credentialsDirectory: credentialsDirectory,
            fallbackDirectory: fallbackDirectory, pricePerGigabyte: upstream.pricePerGigabyte,
            maxQueuedFills: limits.maxQueuedFills, mediaLimits: limits.media)
        cache.fleet = fleetMember
        cache.webhooks = webhooks.map(\.settings)
        return cache
    }

    /// The settings of the HTTP API.
    ///
    /// - Parameters:
    ///   - openAPI: The OpenAPI document that it serves.
    ///   - dashboard: The files of the dashboard.
    ///   - readers: The access rules.
    func apiSettings(
        openAPI: String, dashboard: [APISettings.DashboardFile] = [], readers: AccessRules = AccessRules()
    ) -> APISettings {
        let origins: CORSRules.Origins =
            if cors.allowedOrigins.contains("*") { .any } else if cors.allowedOrigins.isEmpty { .none } else {
                .these(Set(cors.allowedOrigins))
            }
        let listener: APISettings.Listener =
            switch (listen.inherited, listen.address) {
            case (let inherited?, _): .inherited(descriptors: inherited.sockets.map(\.descriptor))
            case (nil, .host(let host, let port)): .tcp(host: host, port: port)
            case (nil, .unix(let path)): .unix(path: path, mode: listen.socketMode)
            }
        var settings = APISettings(
            listener: listener, tls: listen.tls, access: readers,
            cors: CORSRules(origins: origins),
            limits: APISettings.Limits(
                bodyBytes: limits.bodyBytes, requestBodies: limits.requestBodies,
                followers: limits.followers, urlBytes: limits.urlBytes, headerBytes: limits.headerBytes,
                headerTimeout: limits.headerTimeout, idleTimeout: limits.idleTimeout,
                writeTimeout: limits.writeTimeout, maxConcurrentReads: limits.maxConcurrentReads,
                perAddress: limits.perAddress),
            isFastPathEnabled: listen.isFastPathEnabled, version: LarderCommand.version, openAPI: openAPI,
            dashboard: isDashboardEnabled ? dashboard : [])
        settings.peers = PeerRules(
            keys: fleet.keys.map(\.exposed), certificateNames: Set(fleet.peerCertificates))
        settings.accessLog = log.accessLog
        settings.labelledTokens = labelledTokens
        settings.clientAddresses = ClientAddressRules(
            requiresProxyHeader: listen.proxyProtocol == .required, trusted: listen.trustedProxies,
            source: listen.clientAddressFrom)
        return settings
    }
}

extension FleetSettings {
    /// The verification of other nodes, and the certificate of this one.
    var tls: TLSSettings {
        TLSSettings(caFile: caFile, certificateFile: certificateFile, keyFile: certificateKeyFile)
    }
}

extension ListenSettings {
    /// The files of the certificates; nil without HTTPS.
    var tls: APISettings.TLS? {
        guard let certificateFile, let keyFile else { return nil }
        var tls = APISettings.TLS(certificateFile: certificateFile, keyFile: keyFile)
        tls.clients = clientCAFile.map {
            APISettings.TLS.Clients(authoritiesFile: $0, isRequired: clientAuthentication == .required)
        }
        return tls
    }
}

extension FleetSettings {
    /// The client of etcd.
    var etcd: EtcdSettings {
        let tls = TLSSettings(caFile: etcdCAFile, certificateFile: etcdCertificateFile, keyFile: etcdKeyFile)
        return EtcdSettings(endpoints: etcdEndpoints, tls: tls, user: etcdUser)
    }
}
