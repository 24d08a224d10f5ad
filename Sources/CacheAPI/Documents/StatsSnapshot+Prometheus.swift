import CacheCore
package import CacheEngine
package import ReaderAccess

extension StatsSnapshot {
    /// The maximum number of origins with a label of their own. The others are added up under `(other)`, which bounds
    /// the number of time series.
    package static let labelledOrigins = 100

    /// The text of `/metrics`.
    package func prometheus(
        version: String, format: PrometheusText.Format = .prometheus, readers: [ReaderUsage] = []
    ) -> String {
        var text = PrometheusText(format)
        text.add("ready", .gauge, "1 if the service is ready for requests, else 0.", isReady ? 1 : 0)
        text.add("build_info", .gauge, "Version of the running service.", [([("version", version)], 1)])
        text.add("uptime_seconds", .gauge, "Seconds since the start.", uptime.inSeconds)
        if let reload {
            text.add(
                "config_reload_success", .gauge,
                "1 if the last reading of the configuration succeeded, 0 if the last valid one is still in force.",
                reload.isSuccessful ? 1 : 0)
            text.add(
                "config_last_reload_success_timestamp_seconds", .gauge,
                "Unix time of the last successful reading of the configuration.",
                Double(reload.loadedAt.milliseconds) / 1000)
        }
        addTraffic(to: &text)
        text.add(readers)
        addFills(to: &text)
        addCircuits(to: &text)
        addCredentials(to: &text)
        addLatencies(to: &text)
        addStore(to: &text)
        text.add(
            "connections_active", .gauge, "Open client connections.", Double(counter.connections.active))
        text.add(
            "reads_active", .gauge, "Content reads in progress that the fast path did not answer.",
            Double(counter.reads.active))
        text.add(
            "requests_rejected_total", .counter,
            "Connections and reads rejected with 503 at limits.maxConnections or limits.maxConcurrentReads.",
            [("connections", counter.connections), ("reads", counter.reads)].map {
                ([("reason", $0.0)], Double($0.1.refused))
            })
        text.add(
            "jobs", .gauge, "Prefetch jobs in the catalog, by state.",
            JobState.ofJobs.map { ([("state", $0.rawValue)], Double(jobs[$0] ?? 0)) })
        text.add("evictions_total", .counter, "Evicted segments and assets.", Double(evictions))
        text.add("evicted_bytes_total", .counter, "Bytes evicted.", Double(evictedBytes))
        text.add(
            "checksum_failures_total", .counter, "Blocks on disk with a wrong checksum.", Double(integrity.badBlocks))
        text.add(
            "corrupt_bytes_total", .counter, "Bytes discarded because of a wrong checksum.", Double(integrity.badBytes))
        text.add(
            "digest_mismatches_total", .counter,
            "Complete assets that differ from the digest in the upstream's response.", Double(integrity.badDigests))
        text.add(
            "damaged_rows_total", .counter, "Catalog rows with a wrong checksum.",
            Double(integrity.damagedRows))
        text.add("scrubs_total", .counter, "Finished scrubs.", Double(integrity.scrubs))
        text.add(
            "scrubbed_bytes_total", .counter, "Bytes compared with their checksums by scrubs.",
            Double(integrity.scrubbedBytes))
        return text.text
    }

    /// Adds the figures of client requests and of upstream traffic, by origin.
    private func addTraffic(to text: inout PrometheusText) {
        text.add(
            "requests_total", .counter, "Content requests by cache result.",
            rows.flatMap { name, figures in
                ReadOutcome.Class.allCases.map {
                    ([("origin", name), ("result", $0.rawValue)], Double(figures.count($0)))
                }
            })
        text.add(
            "response_bytes_total", .counter, "Body bytes sent to clients, by source.",
            rows.flatMap { name, figures in
                [
                    ([("origin", name), ("source", "cache")], Double(figures.servedFromCacheBytes)),
                    ([("origin", name), ("source", "upstream")], Double(figures.servedAfterFillBytes)),
                ]
            })
        add("client_aborted_total", "Responses that the client aborted.", \.clientAborted, to: &text)
        add("requested_bytes_total", "Bytes requested from upstreams.", \.requestedBytes, to: &text)
        text.add(
            "upstream_requests_total", .counter, "Requests sent to upstreams, by purpose.",
            rows.flatMap { name, figures in
                [
                    ([("origin", name), ("purpose", "reader")], Double(figures.upstreamRequests)),
                    ([("origin", name), ("purpose", "prefetch")], Double(figures.upstreamPrefetchRequests)),
                ]
            })
        add("upstream_bytes_total", "Body bytes received from upstreams.", \.upstreamBytes, to: &text)
        add(
            "upstream_prefetch_bytes_total", "Body bytes received from upstreams for prefetch jobs.",
            \.upstreamPrefetchBytes, to: &text)
        add(
            "refetched_bytes_total", "Body bytes received from upstreams that were cached already.", \.refetchedBytes,
            to: &text)
    }

    /// Adds the figures of upstream transfers.
    private func addFills(to text: inout PrometheusText) {
        text.add(
            "fills_total", .counter, "Finished upstream transfers, by outcome.",
            rows.flatMap { name, figures in
                [
                    ("succeeded", figures.fillsSucceeded), ("failed", figures.fillsFailed),
                    ("timedOut", figures.fillsTimedOut), ("cancelled", figures.fillsCancelled),
                ].map { ([("origin", name), ("outcome", $0.0)], Double($0.1)) }
            })
        add("fill_retries_total", "Upstream transfers retried after a failure.", \.fillsRetried, to: &text)
        add(
            "hedges_total", "Hedged requests: duplicates sent because the first byte was late.", \.fillsHedged,
            to: &text)
        add("hedges_won_total", "Hedged requests answered before the original.", \.hedgesWon, to: &text)
        text.add(
            "waits_total", .counter, "Finished waits of readers for bytes, by outcome.",
            rows.flatMap { name, figures in
                TrafficFigures.waitOutcomes.map {
                    ([("origin", name), ("outcome", $0.name)], Double(figures.waits[$0.name] ?? 0))
                }
            })
        text.add("fills_active", .gauge, "Running upstream transfers.", Double(load.active))
        text.add("fills_queued", .gauge, "Upstream transfers in the queue.", Double(load.queued))
        text.add("fills_paused", .gauge, "Upstream transfers paused by flow control.", Double(load.paused))
        text.add(
            "upstream_connections_total", .counter, "Upstream requests, by whether they opened or reused a connection.",
            [
                ([("connection", "opened")], Double(load.openedConnections)),
                ([("connection", "reused")], Double(load.reusedConnections)),
            ])
    }

    /// Adds the states of circuit breakers, by origin.
    private func addCircuits(to text: inout PrometheusText) {
        text.add(
            "circuits", .gauge, "Circuit breakers of base URLs, mirrors and failing hosts, by state.",
            rows.flatMap { name, _ in
                CircuitFigures.State.allCases.map { state in
                    let count = circuits(of: name).count { $0.state == state }
                    return ([("origin", name), ("state", state.rawValue)], Double(count))
                }
            })
        text.add(
            "circuit_opens_total", .counter, "Circuit breaker openings, failed probes included.",
            rows.map { name, _ in
                ([("origin", name)], circuits(of: name).reduce(0) { $0 + Double($1.opensTotal) })
            })
        text.add(
            "upstream_failures_total", .counter, "Failed requests to upstream addresses, by status or error code.",
            rows.flatMap { name, _ in
                let counts = circuits(of: name).reduce(into: [:]) { $0.merge($1.failures.counts, uniquingKeysWith: +) }
                return counts.sorted { $0.key < $1.key }.map { ([("origin", name), ("cause", $0)], Double($1)) }
            })
    }

    /// Adds the credentials of accounts, by origin.
    private func addCredentials(to text: inout PrometheusText) {
        let accounts = origins.prefix(Self.labelledOrigins).compactMap { row in
            credentials[row.name].map { (name: row.name, figures: $0) }
        }
        text.add(
            "origin_credentials_expiry_timestamp_seconds", .gauge,
            "Unix time at which the credentials of an origin's account end.",
            accounts.compactMap { account in
                account.figures.expiresAt.map { ([("origin", account.name)], Double($0.milliseconds) / 1000) }
            })
        text.add(
            "origin_credentials_refreshes_total", .counter, "Refreshes of the credentials of accounts, by result.",
            accounts.flatMap { name, figures in
                [
                    ([("origin", name), ("result", "success")], Double(figures.refreshes)),
                    ([("origin", name), ("result", "failure")], Double(figures.failures)),
                ]
            })
    }

    /// Adds the histograms.
    private func addLatencies(to text: inout PrometheusText) {
        if let latencies = requestLatencies {
            let results = ReadOutcome.Class.allCases.map { [("result", $0.rawValue)] }
            text.add(
                "request_duration_seconds", "Time from the head of a content request to the end of its response.",
                zip(results, latencies.durations).map { ($0, $1) })
            text.add(
                "time_to_first_byte_seconds",
                "Time from the head of a content request to the first byte of the response body.",
                zip(results, latencies.firstBytes).map { ($0, $1) })
        }
        guard let latencies = upstreamLatencies else { return }
        text.add(
            "upstream_first_byte_seconds", "Time from an upstream request to the head of its response, by origin.",
            histograms(latencies.firstByte))
        text.add(
            "upstream_transfer_bytes_per_second",
            "Rates of upstream transfers of at least 64 KiB from their response head on, by origin.",
            histograms(latencies.rate))
        text.add("job_item_duration_seconds", "Durations of items of prefetch jobs.", [([], latencies.items)])
        text.add("commit_duration_seconds", "Durations of commits of the catalog.", [([], latencies.commits)])
    }

    /// The histograms of the origins with a label of their own, and the sum of the others.
    private func histograms(
        _ known: [String: HistogramSnapshot]
    ) -> [(labels: [(String, String)], histogram: HistogramSnapshot)] {
        let own = Set(origins.prefix(Self.labelledOrigins).map(\.name))
        let labelled = known.filter { own.contains($0.key) }.sorted { $0.key < $1.key }
        let others = known.filter { !own.contains($0.key) }.values
        let rest = others.first.map { first in others.dropFirst().reduce(first) { $0.adding($1) } }
        return labelled.map { ([("origin", $0.key)], $0.value) } + (rest.map { [([("origin", Self.rest)], $0)] } ?? [])
    }

    /// The circuit breakers of one row: of an origin, of all origins without a label, or of servers that are addressed
    /// by absolute URLs.
    private func circuits(of row: String) -> [CircuitFigures] {
        switch row {
        case Origin.absoluteName: failingServers
        case Self.rest: origins.dropFirst(Self.labelledOrigins).flatMap { circuits[$0.name] ?? [] }
        default: circuits[row] ?? []
        }
    }

    /// Adds the figures of the store.
    private func addStore(to text: inout PrometheusText) {
        text.add(
            "store_damaged", .gauge, "1 if the catalog was found damaged since the start, else 0.",
            store.isDamaged ? 1 : 0)
        text.add("store_assets", .gauge, "Assets in the catalog.", Double(store.assets))
        text.add("store_extents", .gauge, "Cached extents.", Double(store.extents))
        text.add("store_cached_bytes", .gauge, "Cached bytes.", Double(store.cachedBytes))
        text.add("store_disk_bytes", .gauge, "Disk blocks used by the store, in bytes.", Double(store.diskBytes))
        text.add(
            "store_capacity_bytes", .gauge, "Capacity of the policy in bytes, +Inf without a limit.",
            store.capacityBytes.map(Double.init) ?? .infinity)
        text.add("store_free_disk_bytes", .gauge, "Free bytes on the disk.", Double(store.freeDiskBytes))
        text.add(
            "store_uncommitted_bytes", .gauge, "Cached bytes that are not committed yet.", Double(store.losses.bytes))
        text.add(
            "store_uncommitted_seconds", .gauge, "Age in seconds of the oldest bytes that are not committed yet.",
            store.losses.age.inSeconds)
        text.add(
            "store_longest_uncommitted_seconds", .gauge,
            "Longest time in seconds from a write to its commit, since the start.",
            store.losses.longest.inSeconds)
    }

    /// Adds a counter by origin.
    private func add(
        _ name: String, _ help: String, _ figure: KeyPath<TrafficFigures, Int64>, to text: inout PrometheusText
    ) {
        text.add(name, .counter, help, rows.map { ([("origin", $0.0)], Double($0.1[keyPath: figure])) })
    }

    /// The label of all origins without a label of their own.
    private static let rest = "(other)"

    /// The label values for origins with their figures: at most ``labelledOrigins`` and ``rest``.
    private var rows: [(String, TrafficFigures)] {
        let own = origins.prefix(Self.labelledOrigins).map { ($0.name, $0.figures) }
        let rest = origins.dropFirst(Self.labelledOrigins)
        guard !rest.isEmpty else { return own }
        return own + [(Self.rest, rest.reduce(into: TrafficFigures()) { $0.add($1.figures) })]
    }
}
