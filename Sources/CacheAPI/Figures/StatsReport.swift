import CacheCore
import CacheEngine
import ReaderAccess

/// The statistics of the service with the names of its parts that they need.
struct StatsReport: Sendable {
    var stats: StatsSnapshot
    /// The version of the service.
    var version = ""
    var readers: [ReaderUsage] = []
    var responses: [ResponseCounters.Count] = []
    /// Nil: not known.
    var process: ProcessFigures?

    init(
        _ stats: StatsSnapshot, version: String = "", readers: [ReaderUsage] = [],
        responses: [ResponseCounters.Count] = [], process: ProcessFigures? = nil
    ) {
        (self.stats, self.version, self.readers) = (stats, version, readers)
        (self.responses, self.process) = (responses, process)
    }
}

extension Figure<TransferLoad> {
    /// The requests on new and on reused connections.
    static let connections: [Figure] = [
        Figure(
            "upstream_connections_total", .counter, .count,
            "Upstream requests, by whether they opened or reused a connection", by: ["connection"],
            .series([
                Series("opened", "opened", \.openedConnections),
                Series("reused", "reused", \.reusedConnections),
            ])),
        Figure(nil, .gauge, .ratio, "reused ÷ (opened + reused); 0 without requests", "reuseRatio") {
            Int64($0.reusedConnections).ratio(to: Int64($0.openedConnections + $0.reusedConnections)) ?? 0
        },
    ]
}

extension Figure<StatsReport> {
    /// All figures of the service, except those of traffic and of readers.
    static let all: [Figure] = start + later

    static let later: [Figure] =
        service + process + transfers + store + circuits + peers + credentials + webhooks + latencies
        + Figure<TransferLoad>.connections.map { $0.moved(\StatsReport.stats.load, below: "connections") }

    static let start: [Figure] = [
        Figure("ready", .gauge, .flag, "1 if `/health/ready` succeeds, else 0", nil, \.stats.isReady),
        Figure(
            "build_info", .gauge, .count, "Version of the running service", by: ["version"],
            .samples { [([("version", $0.version)], 1)] }),
        Figure(nil, .gauge, .time, "The time of the start", "startedAt", \.stats.startedAt),
        Figure("uptime_seconds", .gauge, .seconds, "Seconds since the start", "uptimeSeconds", \.stats.uptime),
    ]

    private static let service: [Figure] = [
        Figure(
            "config_reload_success", .gauge, .flag,
            "1 if the last reading of the configuration succeeded, 0 if the last valid one is still in force",
            .samples { $0.stats.reload.map { [([], $0.isSuccessful ? 1 : 0)] } ?? [] }),
        Figure(
            "config_last_reload_success_timestamp_seconds", .gauge, .time,
            "Unix time of the last successful reading of the configuration",
            .samples { $0.stats.reload.map { [([], Double($0.loadedAt.milliseconds) / 1000)] } ?? [] }),
        Figure(
            nil, .gauge, .ratio, "The setting `upstream.pricePerGigabyte`, per 10^9 bytes; null without a price",
            "pricePerGigabyte", \.stats.pricePerGigabyte),
        Figure(nil, .gauge, .ratio, "The cost of `bytes.saved`; null without a price", "savedCost") {
            max(0, $0.stats.all.servedBytes - $0.stats.all.upstreamBytes).cost(at: $0.stats.pricePerGigabyte)
        },
        Figure(
            "connections_active", .gauge, .count, "Open client connections", "load.connections.active",
            \.stats.admission.connections.active),
        Figure(
            nil, .gauge, .count, "The setting `limits.maxConnections`", "load.connections.limit",
            \.stats.admission.connections.limit),
        Figure(
            "reads_active", .gauge, .count, "Content reads in progress that were not answered at once from disk",
            "load.reads.active", \.stats.admission.reads.active),
        Figure(
            nil, .gauge, .count, "The setting `limits.maxConcurrentReads`", "load.reads.limit",
            \.stats.admission.reads.limit),
        Figure(
            "requests_rejected_total", .counter, .count,
            "Connections and reads rejected with 503 at `limits.maxConnections` or `limits.maxConcurrentReads`; "
                + "connections, streams and requests rejected with 429 at `limits.perAddress`",
            by: ["reason"],
            .series([
                Series("connections", "load.connections.refused", \.stats.admission.connections.refused),
                Series("reads", "load.reads.refused", \.stats.admission.reads.refused),
                Series("addresses", "load.addresses.refused", \.stats.admission.addressesRefused),
            ])),
        Figure(
            "responses_total", .counter, .count,
            "Responses by status and kind of the request: `content` of readers, `peer` of other nodes, `api`, `dashboard` "
                + "(its files and its reading calls) and `health` checks; 499 if the client has left before",
            by: ["kind", "status"],
            .samples { report in
                report.responses.map { ([("kind", $0.kind), ("status", String($0.status))], Double($0.count)) }
            }),
        Figure(
            "jobs", .gauge, .count, "Prefetch jobs in the catalog, by state", by: ["state"],
            .series(
                JobState.ofJobs.map { state in
                    Series(state.rawValue, "jobs.\(state.rawValue)") { $0.stats.jobs[state] ?? 0 }
                })),
        Figure(
            "job_items_total", .counter, .count,
            "Items of ended prefetch jobs, by state, counted at the end of the job", by: ["state"],
            .samples { report in
                JobState.endsOfItems.map { state in
                    ([("state", state.rawValue)], Double(report.stats.upstreamLatencies?.endedItems[state] ?? 0))
                }
            }),
        Figure(
            "jobs_at_risk", .gauge, .count, "Unfinished prefetch jobs that will probably miss their deadline",
            "jobs.atRisk", \.stats.jobsAtRisk),
        Figure("schedules", .gauge, .count, "Schedules of prefetch jobs", "schedules.count") {
            Int64($0.stats.schedules.count)
        },
        Figure(
            "schedule_runs_total", .counter, .count,
            "Instants of schedules, by result: a job was started, the last job was unfinished, or an error",
            by: ["result"],
            .series(
                ScheduledRun.Result.allCases.map { result in
                    Series(result.rawValue, "schedules.\(result.rawValue)") { $0.stats.schedules.runs[result] ?? 0 }
                })),
    ]

    /// The standard metrics of client libraries of Prometheus.
    private static let process: [Figure] = [
        processFigure(
            "cpu_seconds_total", .counter, .seconds, "Total user and system CPU time spent in seconds", \.cpuSeconds),
        processFigure("open_fds", .gauge, .count, "Number of open file descriptors", \.openDescriptors),
        processFigure("max_fds", .gauge, .count, "Maximum number of open file descriptors", \.maxDescriptors),
        processFigure(
            "virtual_memory_bytes", .gauge, .bytes, "Virtual memory size in bytes", \.virtualBytes),
        processFigure(
            "resident_memory_bytes", .gauge, .bytes, "Resident memory size in bytes", \.residentBytes),
        processFigure(
            "start_time_seconds", .gauge, .time, "Start time of the process since unix epoch in seconds",
            \.startSeconds),
    ]

    private static func processFigure(
        _ name: String, _ kind: FigureKind, _ unit: FigureUnit, _ help: String,
        _ value: any KeyPath<ProcessFigures, Double> & Sendable
    ) -> Figure {
        Figure(
            PrometheusText.processPrefix + name, kind, unit, help,
            .samples { report in report.process.map { [([], $0[keyPath: value])] } ?? [] })
    }

    private static let transfers: [Figure] = [
        Figure("fills_active", .gauge, .count, "Running upstream transfers", "fills.active", \.stats.load.active),
        Figure(
            "fills_queued", .gauge, .count, "Upstream transfers that wait for a permit", "fills.queued",
            \.stats.load.queued),
        Figure(
            "fills_paused", .gauge, .count, "Upstream transfers paused by flow control", "fills.paused",
            \.stats.load.paused),
    ]

    private static let store: [Figure] = [
        Figure(
            "store_damaged", .gauge, .flag, "1 if the catalog was found damaged since the start, else 0",
            "store.damaged", \.stats.store.isDamaged),
        Figure("store_assets", .gauge, .count, "Assets in the catalog", "store.assets", \.stats.store.assets),
        Figure("store_extents", .gauge, .count, "Cached extents, as committed", "store.extents", \.stats.store.extents),
        Figure(
            "store_cached_bytes", .gauge, .bytes, "Cached bytes, as committed", "store.cachedBytes",
            \.stats.store.cachedBytes),
        Figure(
            "store_disk_bytes", .gauge, .bytes, "Disk blocks used by the store, in bytes", "store.diskBytes",
            \.stats.store.diskBytes),
        Figure(
            "store_capacity_bytes", .gauge, .bytes, "The setting `policy.capacity` in bytes, +Inf without a limit",
            "store.capacityBytes", \.stats.store.capacityBytes),
        Figure(
            "store_free_disk_bytes", .gauge, .bytes, "Free bytes of the file system", "store.freeDiskBytes",
            \.stats.store.freeDiskBytes),
        Figure(
            nil, .gauge, .ratio,
            "diskBytes ÷ capacityBytes; without a capacity ÷ the sum of diskBytes and freeDiskBytes", "store.usedRatio"
        ) {
            $0.stats.store.diskBytes.ratio(
                to: $0.stats.store.capacityBytes ?? $0.stats.store.diskBytes + $0.stats.store.freeDiskBytes) ?? 0
        },
        Figure(
            "store_locked_files", .gauge, .count, "Encrypted files whose master key is missing", "store.lockedFiles",
            \.stats.store.lockedFiles),
        Figure(
            "store_uncommitted_bytes", .gauge, .bytes,
            "Cached bytes that are not committed yet; a crash would lose them", "store.uncommittedBytes",
            \.stats.store.losses.bytes),
        Figure(
            "store_uncommitted_seconds", .gauge, .seconds,
            "Age in seconds of the oldest bytes that are not committed yet", "store.uncommittedSeconds",
            \.stats.store.losses.age),
        Figure(
            "store_longest_uncommitted_seconds", .gauge, .seconds,
            "Longest time in seconds from a write to its commit, since the start", "store.longestUncommittedSeconds",
            \.stats.store.losses.longest),
        Figure(
            "evictions_total", .counter, .count, "Evicted segments and assets", "evictions.count", \.stats.evictions),
        Figure("evicted_bytes_total", .counter, .bytes, "Bytes evicted", "evictions.bytes", \.stats.evictedBytes),
        Figure(
            "evicted_young_bytes_total", .counter, .bytes,
            "Bytes evicted for space that arrived within the hour before", "evictions.youngBytes",
            \.stats.evictedYoungBytes),
        Figure(
            "checksum_failures_total", .counter, .count, "Blocks on disk with a wrong checksum", "integrity.badBlocks",
            \.stats.integrity.badBlocks),
        Figure(
            "corrupt_bytes_total", .counter, .bytes, "Bytes discarded because of a wrong checksum",
            "integrity.badBytes", \.stats.integrity.badBytes),
        Figure(
            "digest_mismatches_total", .counter, .count,
            "Complete assets that differ from the digest in the upstream's response", "integrity.badDigests",
            \.stats.integrity.badDigests),
        Figure(
            "damaged_rows_total", .counter, .count, "Catalog rows with a wrong checksum", "integrity.damagedRows",
            \.stats.integrity.damagedRows),
        Figure("scrubs_total", .counter, .count, "Finished scrubs", "integrity.scrubs", \.stats.integrity.scrubs),
        Figure(
            "scrubbed_bytes_total", .counter, .bytes, "Bytes compared with their checksums by scrubs",
            "integrity.scrubbedBytes", \.stats.integrity.scrubbedBytes),
    ]

    /// The other nodes of the fleet.
    private static let peers: [Figure] = [
        Figure(
            "peer_requests_total", .counter, .count,
            "Requests to other nodes of the fleet for bytes at hand, by node and result: `hit`, `miss`, `timedOut`, "
                + "`failed`", by: ["node", "result"],
            .samples { report in
                report.stats.peers.flatMap { peer in
                    PeerFigures.Result.allCases.map { result in
                        ([("node", peer.node), ("result", result.rawValue)], Double(peer.requests[result] ?? 0))
                    }
                }
            }),
        Figure(
            "peer_set_aside", .gauge, .flag, "Whether a node of the fleet is not asked for some seconds", by: ["node"],
            .samples { report in
                report.stats.peers.map { ([("node", $0.node)], $0.isSetAside ? 1 : 0) }
            }),
        Figure(
            "fleet_lag_seconds", .gauge, .seconds,
            "Time since the state of the fleet was read from etcd, or since the start; absent without etcd",
            .samples { report in report.stats.fleetLag.map { [([], $0.inSeconds)] } ?? [] }),
    ]

    private static let circuits: [Figure] = [
        Figure(
            "circuits", .gauge, .count, "Circuit breakers of base URLs, mirrors and failing hosts, by state",
            by: ["origin", "state"],
            .samples { report in
                report.stats.labelledRows.flatMap { name, _ in
                    CircuitFigures.State.allCases.map { state in
                        let count = report.stats.circuits(of: name).count { $0.state == state }
                        return ([("origin", name), ("state", state.rawValue)], Double(count))
                    }
                }
            }),
        Figure(
            "circuit_opens_total", .counter, .count, "Circuit breaker openings, failed probes included",
            by: ["origin"],
            .samples { report in
                report.stats.labelledRows.map { name, _ in
                    ([("origin", name)], report.stats.circuits(of: name).reduce(0) { $0 + Double($1.opensTotal) })
                }
            }),
        Figure(
            "upstream_failures_total", .counter, .count,
            "Failed requests to upstream addresses, by status or error code", by: ["origin", "cause"],
            .samples { report in
                report.stats.labelledRows.flatMap { name, _ in
                    let counts = report.stats.circuits(of: name).reduce(into: [:]) {
                        $0.merge($1.failures.counts, uniquingKeysWith: +)
                    }
                    return counts.sorted { $0.key < $1.key }.map { ([("origin", name), ("cause", $0)], Double($1)) }
                }
            }),
    ]

    private static let credentials: [Figure] = [
        Figure(
            "origin_credentials_expiry_timestamp_seconds", .gauge, .time,
            "Unix time at which the credentials of an origin's account end", by: ["origin"],
            .samples { report in
                report.stats.labelledCredentials.compactMap { name, figures in
                    figures.expiresAt.map { ([("origin", name)], Double($0.milliseconds) / 1000) }
                }
            }),
        Figure(
            "origin_credentials_refreshes_total", .counter, .count,
            "Refreshes of the credentials of accounts, by result", by: ["origin", "result"],
            .samples { report in
                report.stats.labelledCredentials.flatMap { name, figures in
                    [
                        ([("origin", name), ("result", "success")], Double(figures.refreshes)),
                        ([("origin", name), ("result", "failure")], Double(figures.failures)),
                    ]
                }
            }),
    ]

    /// The webhooks of the configuration.
    private static let webhooks: [Figure] = [
        Figure(
            "webhook_attempts_total", .counter, .count,
            "Requests to webhooks, by result: `delivered` (2xx) or `failed`", by: ["webhook", "result"],
            .samples { report in
                report.stats.webhooks.flatMap { webhook in
                    [("delivered", webhook.figures.delivered), ("failed", webhook.figures.failures)].map {
                        result, count in
                        ([("webhook", webhook.settings.name), ("result", result)], Double(count))
                    }
                }
            }),
        Figure(
            "webhook_lost_total", .counter, .count,
            "Events that no webhook received: `expired` after 24 hours of failed attempts, or `dropped` from the full queue "
                + "and after status 410",
            by: ["webhook", "reason"],
            .samples { report in
                report.stats.webhooks.flatMap { webhook in
                    [("expired", webhook.figures.expired), ("dropped", webhook.figures.dropped)].map { reason, count in
                        ([("webhook", webhook.settings.name), ("reason", reason)], Double(count))
                    }
                }
            }),
        Figure(
            "webhook_queued", .gauge, .count, "Events that wait for their delivery to a webhook", by: ["webhook"],
            .samples { report in
                report.stats.webhooks.map { ([("webhook", $0.settings.name)], Double($0.queued)) }
            }),
    ]

    private static let latencies: [Figure] = [
        Figure(
            "request_duration_seconds", .histogram, .seconds,
            "Time from the head of a content request to the end of its response", by: ["result"],
            .distributions { byResult($0.stats.requestLatencies?.durations) }),
        Figure(
            "time_to_first_byte_seconds", .histogram, .seconds,
            "Time from the head of a content request to the first byte of the response body", by: ["result"],
            .distributions { byResult($0.stats.requestLatencies?.firstBytes) }),
        Figure(
            "upstream_first_byte_seconds", .histogram, .seconds,
            "Time from an upstream request to the head of its response, by origin", by: ["origin"],
            .distributions { $0.stats.labelled($0.stats.upstreamLatencies?.firstByte ?? [:]) }),
        Figure(
            "read_first_byte_seconds", .histogram, .seconds,
            "Time from the head of a content request to the first byte of the response body, by origin", by: ["origin"],
            .distributions { $0.stats.labelled($0.stats.requestLatencies?.origins ?? [:]) }),
        Figure(
            "upstream_transfer_bytes_per_second", .histogram, .bytesPerSecond,
            "Rates of upstream transfers of at least 64 KiB from their response head on, by origin", by: ["origin"],
            .distributions { $0.stats.labelled($0.stats.upstreamLatencies?.rate ?? [:]) }),
        Figure(
            "job_item_duration_seconds", .histogram, .seconds, "Durations of items of prefetch jobs",
            .distributions { $0.stats.upstreamLatencies.map { [([], $0.items)] } ?? [] }),
        Figure(
            "commit_duration_seconds", .histogram, .seconds, "Durations of commits of the catalog",
            .distributions { $0.stats.upstreamLatencies.map { [([], $0.commits)] } ?? [] }),
    ]

    private static func byResult(_ histograms: [HistogramSnapshot]?) -> [Distribution] {
        zip(ReadOutcome.Class.allCases, histograms ?? []).map { ([("result", $0.rawValue)], $1) }
    }
}
