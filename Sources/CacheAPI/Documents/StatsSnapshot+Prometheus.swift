import CacheCore
package import CacheEngine

extension StatsSnapshot {
    /// As many origins as have labels of their own; the rest are counted together under `(other)`.
    package static let labelledOrigins = 100

    /// Everything `/metrics` tells.
    package func prometheus(version: String) -> String {
        var text = PrometheusText()
        text.add("build_info", .gauge, "The version that runs.", [([("version", version)], 1)])
        text.add("uptime_seconds", .gauge, "Time since the start.", uptime.inSeconds)
        addTraffic(to: &text)
        addFills(to: &text)
        addCircuits(to: &text)
        addStore(to: &text)
        let places = [("connections", counter.connections), ("reads", counter.reads)]
        text.add(
            "load_active", .gauge, "Connections of clients, and reads in progress that are not answered at once.",
            places.map { ([("of", $0.0)], Double($0.1.active)) })
        text.add(
            "load_refused_total", .counter, "How many were turned away because there were too many.",
            places.map { ([("of", $0.0)], Double($0.1.refused)) })
        text.add(
            "jobs", .gauge, "Prefetch jobs kept, by state.",
            JobState.allCases.map { ([("state", $0.rawValue)], Double(jobs[$0] ?? 0)) })
        text.add("evictions_total", .counter, "Evictions.", Double(evictions))
        text.add("evicted_bytes_total", .counter, "Bytes evicted.", Double(evictedBytes))
        text.add("bad_blocks_total", .counter, "Blocks that were not what was written.", Double(integrity.badBlocks))
        text.add("bad_bytes_total", .counter, "Their bytes.", Double(integrity.badBytes))
        text.add(
            "bad_digests_total", .counter, "Assets that were not what their upstream's digest says.",
            Double(integrity.badDigests))
        text.add(
            "damaged_rows_total", .counter, "Rows of the catalog that were not what was written.",
            Double(integrity.damagedRows))
        text.add("scrubs_total", .counter, "Scrubs that ended.", Double(integrity.scrubs))
        text.add("scrubbed_bytes_total", .counter, "Bytes that scrubs have read.", Double(integrity.scrubbedBytes))
        return text.text
    }

    private func addTraffic(to text: inout PrometheusText) {
        text.add(
            "requests_total", .counter, "Content requests, each in one class.",
            rows.flatMap { name, figures in
                ReadOutcome.Class.allCases.map {
                    ([("origin", name), ("class", $0.rawValue)], Double(figures.count($0)))
                }
            })
        text.add(
            "served_bytes_total", .counter, "Body bytes handed to clients, by where they came from.",
            rows.flatMap { name, figures in
                [
                    ([("origin", name), ("from", "cache")], Double(figures.servedFromCacheBytes)),
                    ([("origin", name), ("from", "fill")], Double(figures.servedAfterFillBytes)),
                ]
            })
        add("client_aborted_total", "Responses that clients gave up.", \.clientAborted, to: &text)
        add("requested_bytes_total", "Bytes of the windows asked of upstreams.", \.requestedBytes, to: &text)
        text.add(
            "upstream_requests_total", .counter, "Requests sent to upstreams for readers and for prefetch jobs.",
            rows.flatMap { name, figures in
                [
                    ([("origin", name), ("for", "reader")], Double(figures.upstreamRequests)),
                    ([("origin", name), ("for", "prefetch")], Double(figures.upstreamPrefetchRequests)),
                ]
            })
        add("upstream_bytes_total", "Body bytes that upstreams sent.", \.upstreamBytes, to: &text)
        add("upstream_prefetch_bytes_total", "The part of them for jobs.", \.upstreamPrefetchBytes, to: &text)
        add("refetched_bytes_total", "The part of them not needed.", \.refetchedBytes, to: &text)
    }

    private func addFills(to text: inout PrometheusText) {
        text.add(
            "fills_total", .counter, "Fills that ended, by outcome.",
            rows.flatMap { name, figures in
                [
                    ("succeeded", figures.fillsSucceeded), ("failed", figures.fillsFailed),
                    ("timedOut", figures.fillsTimedOut), ("cancelled", figures.fillsCancelled),
                ].map { ([("origin", name), ("outcome", $0.0)], Double($0.1)) }
            })
        add("fill_retries_total", "Transfers begun again.", \.fillsRetried, to: &text)
        add("hedges_total", "Second requests for what a first one was late with.", \.fillsHedged, to: &text)
        add("hedges_won_total", "Second requests that were answered first.", \.hedgesWon, to: &text)
        text.add(
            "waits_total", .counter, "Waits of readers for bytes that ended, by outcome.",
            rows.flatMap { name, figures in
                TrafficFigures.waitOutcomes.map {
                    ([("origin", name), ("outcome", $0.name)], Double(figures.waits[$0.name] ?? 0))
                }
            })
        text.add("fills_active", .gauge, "Transfers under way.", Double(load.active))
        text.add("fills_queued", .gauge, "Transfers that wait for their turn.", Double(load.queued))
        text.add("fills_paused", .gauge, "Transfers that wait for their readers.", Double(load.paused))
        text.add(
            "upstream_connections_total", .counter, "Requests to upstreams, by whether a connection was open.",
            [
                ([("connection", "opened")], Double(load.openedConnections)),
                ([("connection", "reused")], Double(load.reusedConnections)),
            ])
    }

    private func addCircuits(to text: inout PrometheusText) {
        text.add(
            "circuits", .gauge, "Base URLs, mirrors and failing servers of absolute URLs, by their circuit's state.",
            rows.flatMap { name, _ in
                CircuitFigures.State.allCases.map { state in
                    let count = circuits(of: name).count { $0.state == state }
                    return ([("origin", name), ("state", state.rawValue)], Double(count))
                }
            })
        text.add(
            "circuit_opens_total", .counter, "Times that a circuit opened, failed probes included.",
            rows.map { name, _ in
                ([("origin", name)], circuits(of: name).reduce(0) { $0 + Double($1.opensTotal) })
            })
    }

    private func circuits(of row: String) -> [CircuitFigures] {
        switch row {
        case Origin.absoluteName: failingServers
        case Self.rest: origins.dropFirst(Self.labelledOrigins).flatMap { circuits[$0.name] ?? [] }
        default: circuits[row] ?? []
        }
    }

    private func addStore(to text: inout PrometheusText) {
        text.add("store_damaged", .gauge, "1: the catalog was found damaged since the start.", store.isDamaged ? 1 : 0)
        text.add("store_assets", .gauge, "Assets kept.", Double(store.assets))
        text.add("store_extents", .gauge, "Runs of bytes on disk.", Double(store.extents))
        text.add("store_cached_bytes", .gauge, "Bytes of assets on disk.", Double(store.cachedBytes))
        text.add("store_disk_bytes", .gauge, "Disk blocks in use, in bytes.", Double(store.diskBytes))
        text.add(
            "store_capacity_bytes", .gauge, "What the policy allows; +Inf without a limit.",
            store.capacityBytes.map(Double.init) ?? .infinity)
        text.add("store_free_disk_bytes", .gauge, "Bytes free on the disk.", Double(store.freeDiskBytes))
        text.add("store_uncommitted_bytes", .gauge, "Bytes that a crash would lose.", Double(store.losses.bytes))
        text.add(
            "store_longest_uncommitted_seconds", .gauge, "The longest that bytes have waited for a commit.",
            store.losses.longest.inSeconds)
    }

    private func add(
        _ name: String, _ help: String, _ figure: KeyPath<TrafficFigures, Int64>, to text: inout PrometheusText
    ) {
        text.add(name, .counter, help, rows.map { ([("origin", $0.0)], Double($0.1[keyPath: figure])) })
    }

    private static let rest = "(other)"

    /// The origins as labels: a bounded set.
    private var rows: [(String, TrafficFigures)] {
        let own = origins.prefix(Self.labelledOrigins).map { ($0.name, $0.figures) }
        let rest = origins.dropFirst(Self.labelledOrigins)
        guard !rest.isEmpty else { return own }
        return own + [(Self.rest, rest.reduce(into: TrafficFigures()) { $0.add($1.figures) })]
    }
}
