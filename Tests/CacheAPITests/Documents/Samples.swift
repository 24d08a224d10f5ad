@testable import CacheAPI
@testable import CacheCore
@testable import CacheEngine
@testable import CacheSimulation
import MediaParsing
import ReaderAccess

/// Sample values: one of each document, with all optional members set.
enum Samples {
    static let time = Timestamp(milliseconds: 1_795_248_000_123)
    static let id = AssetID(high: 0x9f86_d081_884c_7d65, low: 0x9a2f_eaa0_c55a_d015)

    static let generation = Generation(
        number: 3, length: 1000, contentType: "video/mp4",
        validators: Validators(entityTag: EntityTag("\"v1\""), lastModified: "Wed, 01 Jan 2025 00:00:00 GMT"),
        acceptsRanges: true, receivedAt: time, freshUntil: time)

    static let asset = AssetSummary(
        record: AssetRecord(
            id: id, key: "/o/demo/a.mp4", origin: "demo", url: "https://media.example.com/a.mp4?signature=s3cret",
            generation: generation, createdAt: time, lastAccessAt: time, hits: 2, isPinned: true, tags: ["one"],
            ttl: .seconds(60)),
        cachedBytes: 1000, diskBytes: 4096, filePath: "/data/a", activeReaders: 1, activeFills: 0)

    static let bareAsset = AssetSummary(
        record: AssetRecord(
            id: id, key: "k", origin: "(url)", url: "https://media.example.com/b",
            generation: Generation(receivedAt: time),
            createdAt: time, lastAccessAt: time), cachedBytes: 0, diskBytes: 0)

    static let checksums = AssetChecksums(
        record: asset.record, cachedBytes: 300_000,
        items: [.init(range: 0..<262_144, crc32C: 0x5B4_C3AE), .init(range: 262_144..<300_000, crc32C: .max)],
        nextCursor: "c")

    static let timings = TransferTimings(
        nameLookup: .milliseconds(1), connect: .milliseconds(2), tls: nil, firstByte: .milliseconds(9),
        total: .milliseconds(10))

    static let probe = ProbeReport(
        assetID: id, key: "k", url: "https://media.example.com/a.mp4", finalURL: "https://media.example.com/a.mp4",
        generation: generation, uti: "public.mpeg-4", cachedBytes: 0, method: .head, upstreamStatus: 200, redirects: 1,
        timings: timings)

    static let listings = [
        ListingPage(
            format: .html,
            entries: [
                ListingEntry(reference: "a.mp4", bytes: 1, modifiedAt: time),
                ListingEntry(reference: "b/", isFolder: true),
            ],
            nextCursor: "b/", skippedEntries: 1),
        ListingPage(format: .s3, entries: [], nextCursor: nil, skippedEntries: 0),
    ]

    static let job = JobSnapshot(
        record: JobRecord(
            id: "5e884898da28047151d0e56f8dc62927", state: .running, label: "tonight", queue: "evening",
            priority: .high,
            maxBytesPerSecond: 1000, timeout: .seconds(60), deadlineAt: time, createdAt: time, startedAt: time,
            error: RecordedError(code: "internal", message: "No.")),
        tally: JobTally(
            counts: [.succeeded: 1, .failed: 1, .timedOut: 1, .cancelled: 1, .queued: 1], itemsUnknown: 1,
            measuredBytes: 100, bytesFromCache: 20, bytesFromUpstream: 30), presentRate: 10.4,
        forecast: JobSnapshot.Forecast(finishAt: time, isAtRisk: true),
        timeState: JobTimes.State(hold: .notBefore, nextRunAt: time), version: 4)

    static var fleetJob: JobSnapshot {
        var job = job
        job.place = JobSnapshot.Place(node: "cache-1")
        return job
    }

    static let jobPlan: JobPlan = {
        var plan = JobPlan()
        for item in items {
            plan.add(JobPlan.Entry(reference: item.reference, bytes: item.bytesTotal, parent: item.parent))
        }
        return plan
    }()

    static let items: [JobItemRecord] = [
        JobItemRecord(
            index: 0, reference: .url("https://media.example.com/a.mp4?signature=s3cret", key: "k"),
            ranges: ["bytes=0-1"], tags: ["evening"], isPinned: true, state: .failed, assetID: id, attempts: 2,
            bytesTotal: 2, bytesFromCache: 1,
            bytesFromUpstream: 1, error: RecordedError(code: "upstreamTimedOut", message: "Late.")),
        JobItemRecord(index: 1, reference: .mounted(origin: "demo", path: "a.mp4", key: nil)),
        JobItemRecord(index: 2, reference: .known(id)),
        {
            var item = JobItemRecord(index: 3, reference: .mounted(origin: "demo", path: "b.mp4", key: nil))
            item.play = PlayRequest(time: 60..<70, kinds: [.video], renditions: .maxBitsPerSecond(3_000_000))
            item.playResult = PlayResult(
                container: "mp4", layout: "tailIndex", duration: 5400, playableSeconds: 10)
            item.parent = 2
            return item
        }(),
        {
            var item = JobItemRecord(index: 4, reference: .mounted(origin: "demo", path: "films/", key: nil))
            item.list = ListSelection()
            return item
        }(),
        {
            var item = JobItemRecord(index: 5, reference: .mounted(origin: "demo", path: "films/", key: nil))
            var list = ListSelection()
            (list.format, list.pointer, list.isRecursive, list.include) = (.json, "/a", true, ["*.mp4"])
            (list.minBytes, list.maxBytes, list.minAgeSeconds, list.maxAgeSeconds) = (1, 2, 3, 4)
            item.list = list
            return item
        }(),
    ]
    static let choices: [RenditionChoice] = [
        .lowest, .maxBitsPerSecond(1), .matching(RenditionFilter(maxHeight: 720, language: "de", codecs: "avc1")),
    ]
    static let reader = Reader(
        id: "r", scope: .write, origins: ["demo"], prefixes: ["/o/demo/a/"], expiresAt: time)
    private static let describedMedia: MediaReport = {
        var track = MediaIndex.Track(id: 1, kind: .video, codec: "avc1", syncTimes: [0, 2])
        track.description = MediaIndex.Description(language: "deu", width: 640, height: 360)
        var index = MediaIndex(container: .matroska, layout: .headIndex, duration: 4, tracks: [track])
        index.chapters = [.init(start: 1, title: "One")]
        return MediaReport(assetID: id, document: .index(index), cached: ByteRangeSet(), length: 1000)
    }()
    static let media = [
        MediaReport(
            assetID: id,
            document: .index(
                MediaIndex(
                    container: .mp4, layout: .tailIndex, duration: 1,
                    tracks: [.init(id: 1, kind: .video, codec: "avc1", pieces: [.init(time: 0..<1, bytes: 8..<100)])],
                    indexRanges: [0..<8, 100..<120])), cached: ByteRangeSet([0..<120]), length: 120),
        describedMedia,
        MediaReport(
            assetID: id,
            document: .playlist(
                MediaPlaylist(format: .dash, renditions: [.init(id: "1", kind: .audio, bitsPerSecond: 96_000)])),
            cached: ByteRangeSet(), length: nil,
            playlist: PlaylistReport(
                renditions: [.init(segments: 5, duration: 20, playable: [0..<8])], duration: 20, playable: [0..<8])),
        MediaReport(
            assetID: id,
            document: .playlist(
                MediaPlaylist(format: .hlsMultivariant, renditions: [.init(id: "", kind: .other)])),
            cached: ByteRangeSet(), length: 9,
            playlist: PlaylistReport(
                renditions: [.init(segments: nil, error: CacheError(.upstreamForbidden, "Not allowed."))])),
    ]

    static var figures: TrafficFigures {
        var figures = TrafficFigures()
        figures.requests = ["hit": 6, "miss": 3, "error": 1]
        figures.servedFromCacheBytes = 75
        figures.servedAfterFillBytes = 25
        figures.upstreamBytes = 25
        figures.fillsSucceeded = 3
        return figures
    }

    static func stats(origins: [String] = ["demo"], capacityBytes: Int64? = 1000) -> StatsSnapshot {
        StatsSnapshot(
            startedAt: time, uptime: .seconds(60), all: figures, origins: origins.map { ($0, figures) },
            circuits: Dictionary(uniqueKeysWithValues: origins.map { ($0, circuits) }),
            failingServers: [.init(address: "http://dead.example:8080", state: .halfOpen, failuresInARow: 12)],
            store: .init(
                isDamaged: false, assets: 1, extents: 2, cachedBytes: 3, diskBytes: 4, capacityBytes: capacityBytes,
                freeDiskBytes: 5,
                quotas: [quotaStanding]),
            load: load, jobs: [.running: 1], evictions: 1, evictedBytes: 10, scrub: scrub)
    }

    static var scrub: ScrubReport {
        var report = ScrubReport(id: "s1", startedAt: time)
        report.state = .failed
        report.asset = id
        report.bytesPerSecond = 1 << 20
        report.finishedAt = time
        report.error = "Why."
        return report
    }

    static let circuits = [
        CircuitFigures(
            address: "https://media.example.com", state: .open, failuresInARow: 10, failing: .seconds(9), opensTotal: 2,
            pause: .milliseconds(1500)),
        CircuitFigures(address: "https://mirror.example.com", state: .closed),
    ]

    static let load = TransferLoad(
        active: 1, queued: 2, paused: 3, activeByOrigin: ["demo": 1], queuedByOrigin: ["demo": 2],
        workers: [TransferLoad.Worker(active: 1, ended: 9, openedConnections: 1, reusedConnections: 9)])

    static let fills = [
        FillStatus(
            number: 17, assetID: id, key: "k", origin: "demo", kind: .window, range: 10..<20, position: 15,
            readers: 2,
            progress: FillProgress(
                stage: .running, priority: .readAhead, attempt: 1, startedAt: time, address: "192.0.2.7:443",
                httpVersion: "2", bytesPerSecond: 5)),
        FillStatus(
            number: 18, assetID: id, key: "k", origin: "demo", kind: .whole, range: 0..<Int64.max,
            progress: FillProgress(startedAt: time)),
        FillStatus(
            number: 19, assetID: id, key: "k", origin: "demo", kind: .confirmation,
            progress: FillProgress(startedAt: time)),
    ]

    static var explanation: Explanation {
        var forecast = FillForecast()
        forecast.requests = [.confirmation(.closed(0..<1)), .window(10..<20), .opening(.suffix(5))]
        forecast.reasons = [.confirmation, .cachedBytes, .openEnd]
        (forecast.requestCount, forecast.requestedBytes) = (3, 15)
        return Explanation(
            assetID: id, key: "k", origin: "demo",
            source: .init(
                url: "https://mirror.example.com/a.mp4", mirrors: ["https://mirror.example.com"],
                whyNot: CacheError(.upstreamUnreachable(), "It is left alone for another 2 s.")),
            freshness: .init(use: .confirm, freshUntil: time, age: .seconds(5), reason: "It is stale."),
            answer: .init(
                status: 206, requestClass: .partial, contentRange: "bytes 0-19/1000", contentLength: 20), length: 1000,
            wanted: [0..<20], cached: ByteRangeSet([0..<10]), forecast: forecast, joined: [17])
    }

    /// An explanation of an unknown asset.
    static let bareExplanation = Explanation(
        assetID: id, key: "k", origin: "demo", source: .init(url: "https://media.example.com/a.mp4"),
        freshness: .init(use: .unknown, reason: "No byte of the asset has been fetched yet."),
        answer: .init(requestClass: .negative, code: .upstreamRefused(status: 404)))

    /// An explanation of a playlist.
    static var playlistExplanation: Explanation {
        var explanation = explanation
        explanation.files = [
            .init(time: 0..<4, result: .success(bareExplanation)),
            .init(time: 4..<8, result: .failure(CacheError(.upstreamForbidden, "Not allowed."))),
        ]
        return explanation
    }

    static let evictionRecord = EvictionRecord(
        at: time, reason: .freeDisk, assetID: id, key: "k", origin: "media", bytes: 10, ranges: [0..<10])

    static let purgePlan = PurgePlan(id: "p", chosen: [], origin: nil, isSoft: true, expiresAt: time).progress
    static let fleetPurge = FleetPurgeProgress(number: 3, appliedBy: ["a"], pending: ["b"])
    static let fleet = FleetDocument(
        node: "larder-1", state: "ready", acceptsPeers: true, peers: [.init(PeerFigures(node: "http://b"))],
        etcd: .value(
            FleetDocument.Etcd(
                FleetReport(
                    fleet: "f", node: "a", lag: .seconds(1), lastError: "e", fault: "f", purges: 3,
                    originFaults: ["o": "e"],
                    nodes: [
                        FleetNode(
                            name: "a", store: "s", process: "p", url: "http://a", version: "1", state: "ready",
                            purges: 3,
                            capacityBytes: 10, usedBytes: 5, at: time)
                    ]), at: time)))
    static let policyPlan = PolicyPlan(
        usedBytes: 9, freedBytes: 5, assets: 1,
        entries: [PolicyPlan.Entry(assetID: id, key: "/o/demo/a", origin: "demo", bytes: 5, reason: .capacity)])
    static let originTests = [
        OriginTest(
            outcome: .succeeded, url: "http://a/b",
            head: UpstreamHead(status: 206, headers: ["Content-Range": "bytes 0-0/9", "Content-Type": "video/mp4"]),
            error: nil, timings: timings),
        OriginTest(
            outcome: .failed, url: "http://a/b", head: nil, error: CacheError(.upstreamUnreachable(), "No answer."),
            timings: TransferTimings()),
    ]
    static let simulations = SimulationResults(
        window: .seconds(60), reads: 3, sampleShare: 0.5,
        simulations: [SimulationResult(of: ReadTrace(epoch: time), since: time, under: .lru, capacityBytes: 1 << 20)],
        pricePerGigabyte: 0.05)
    static let curve = PolicyCurve(
        algorithm: .s3fifo, capacityBytes: 10, window: .seconds(60), reads: 3,
        points: [MissRatioCurve.Point(capacityBytes: 1, requestMissRatio: 1, byteMissRatio: 0.5)])
    static let policies = [
        PolicySettings(),
        PolicySettings(capacityBytes: nil, maxIdle: .seconds(1), tagQuotas: ["promo": Quota(minBytes: 1)]),
    ]
    static let configurations = [
        ConfigurationReport(),
        ConfigurationReport(
            file: "larder.yaml", loadedAt: time, fault: .init(key: "log.level", message: "Wrong.", at: time),
            needsRestart: ["listen.address"],
            settings: [
                .init(key: "log.level", value: .scalar("info"), source: "file"),
                .init(key: "cors.allowedOrigins", value: .list([]), source: "default"),
            ]),
        ConfigurationReport(fault: .init(key: nil, message: "The disk is full.", at: time)),
    ]
    static let reload = ReloadResult(loadedAt: time, changed: ["log.level"], needsRestart: [])
    static let quotaStanding = QuotaStatus(owner: .tag("promo"), quota: Quota(maxBytes: 9), cachedBytes: 7)
    static let encryption = EncryptionReport(
        keys: [.init(id: "k1", isActive: true, isAvailable: true, files: 2)], onMissingKey: .refuse, onChange: .convert,
        origins: [.init(name: "media", isEncrypted: true, assetsLeft: 1)],
        rotation: KeyRotation(activeKey: "k1", startedAt: time, files: 2), isRotating: true, fault: "Why.")
    static let receipt = ErasureReceipt(
        sequence: 1, erasedAt: time,
        assets: [.init(id: id, nameDigest: String(repeating: "0", count: 64), generation: 3, masterKey: "k1")])
    static let webhooks = [
        WebhookReport(settings: WebhookSettings(name: "idle", url: "https://ops.example/?sig=s3cret", keys: [])),
        WebhookReport(
            settings: WebhookSettings(name: "ops", url: "https://ops.example/", kinds: [.diskFull], keys: []),
            state: .failing,
            figures: WebhookFigures(
                delivered: 1, failures: 2, expired: 3, dropped: 4, lastAttemptAt: time, lastSuccessAt: time,
                lastStatus: 503, lastError: "Why."),
            queued: 5, oldestQueuedAt: time),
    ]
    /// The documents of circuits, of disks and of credentials in messages of webhooks.
    static let circuitEvents = ["media", nil].map { (origin: String?) in
        webhookData(
            .circuitOpened(
                CircuitEvent(
                    origin: origin, address: "http://a", failuresInARow: 3, pause: .seconds(2), error: "Failed.")))
    }
    static let diskEvent = webhookData(
        .diskFull(DiskEvent(freeBytes: 1, minFreeBytes: 2, usedBytes: 3, hasRefusedWrites: true)))
    static let credentialsEvents = ["Failed.", nil].map { (error: String?) in
        webhookData(
            .credentialsExpiring(CredentialsEvent(origin: "media", kind: "sas", expiresAt: time, error: error)))
    }

    /// A read with all members, and a call of a limited token.
    static let endedRequests: [JSON] = {
        var figures = RequestLogContext.Content()
        (figures.result, figures.outcome, figures.range) = (.miss, "miss", .bytes(0..<10))
        (figures.upstreamStatus, figures.firstByte) = (206, .seconds(1))
        let read = AccessLog.Line(
            LoggedRequest(
                method: "GET", path: "/o/media/a?x=1", asset: AssetName(id: id, key: "/o/media/a", origin: "media"),
                token: "player"), client: "192.0.2.1", startedAt: time, requestID: .text("r"), status: 206, figures,
            duration: .seconds(2))
        let call = AccessLog.Line(
            LoggedRequest(kind: .api, method: "GET", path: "/v1/jobs"), client: nil, startedAt: time,
            requestID: .text("r"), status: 200, RequestLogContext.Content(), duration: .seconds(1))
        return [(read, true), (call, false)].map { line, showsClient in
            RequestDocument(RequestHistory.Entry(id: 1, line: line), showsClient: showsClient).json
        }
    }()

    private static func webhookData(_ content: CacheEvent.Content) -> JSON {
        WebhookData.json(of: CacheEvent(id: 1, at: time, content: content))
    }

    static let quotaOwners = [QuotaOwner.origin("media"), .tag("promo")]

    static let candidates = [SegmentAccount.Queue.main, nil].map { queue in
        let segment = SegmentID(asset: id, index: 0)
        return EvictionCandidate(
            assetID: id, key: "k", origin: "media", range: 0..<10,
            account: SegmentAccount(
                segment: segment, bytes: 10, reason: queue == nil ? .quota : .capacity,
                quotaOwner: queue == nil ? .tag("promo") : nil, queue: queue, reads: 1,
                priority: queue == nil ? 0.5 : nil, arrivedAt: time, lastReadAt: queue == nil ? time : nil))
    }

    static var eviction: EvictionReport {
        var report = EvictionReport(isDryRun: true)
        report.hint = "No origin is named medai. The name media is similar."
        report.add(.init(assetID: id, key: "k", ranges: [0..<10], bytes: 10))
        return report
    }

    private static var account: OriginAuth {
        var auth = OriginAuth()
        auth.kind = .s3
        auth.credentials = .static
        auth.accessKeyID = "key"
        auth.secretAccessKey = "s3cret"
        return auth
    }

    private static var links: LinkResolution {
        var resolution = LinkResolution()
        resolution.url = "https://api.example.com/link?path={path}"
        resolution.pointer = "/href"
        resolution.lifetime = .seconds(240)
        resolution.list.url = "https://api.example.com/folder?path={path}"
        resolution.list.pointer = "/items"
        return resolution
    }

    static var origin: Origin {
        var settings = OriginSettings(baseURL: "https://media.example.com")
        settings.headers = ["Authorization": "Bearer s3cret"]
        settings.freshness = .ttl(.seconds(60))
        settings.keyQuery = .include(["v"])
        settings.cmcd = .forward
        settings.maxBytesPerSecond = 1000
        settings.tls = TLSSettings(caFile: "/ca.pem", verify: true)
        settings.credentialsFile = "media.txt"
        settings.auth = account
        settings.resolution = links
        settings.trustValidators = .lengthAndLastModified
        settings.staleIfError = .seconds(3600)
        settings.negativeCaching = nil
        settings.requestDirectives = true
        settings.ignoreVary = ["User-Agent"]
        settings.unknownLength = .partial
        settings.errorBodies = .upstream
        settings.isEncrypted = true
        settings.fallback = .file("offline/film.mp4")
        settings.finishIfRemainingPercent = 10
        settings.gapMergeBytes = 0
        settings.speculativeBytes = 1 << 20
        settings.mirrors = ["https://two.example.com", "https://three.example.com/media"]
        settings.hedging = true
        settings.circuitBreaker = nil
        settings.storeRules = .init(maxBytes: 1 << 30, never: ["video/mp2t"], always: ["audio/*"])
        settings.quota = .init(minBytes: 10, maxBytes: 20)
        return Origin(name: "demo", settings: settings)
    }

    /// Origins that cover all forms of the settings.
    static var origins: [Origin] {
        var explicit = OriginSettings(baseURL: "https://media.example.com")
        explicit.freshness = .explicit
        explicit.trustValidators = .immutable
        explicit.staleIfError = .zero
        explicit.negativeCaching = .milliseconds(1500)
        explicit.fallback = .asset(id)
        explicit.circuitBreaker = .init(failures: 5, pause: .milliseconds(500))
        return [
            origin, Origin(name: "explicit", settings: explicit),
            Origin(name: "plain", settings: OriginSettings(baseURL: "http://x")),
        ]
    }
}
