import CacheCore

/// The output of `larder stats`: all counters since the start of the service, and a row for each origin.
struct StatisticsReport {
    private let stats: JSON

    init(_ stats: JSON) { self.stats = stats }

    var text: String {
        let origins = stats.list("origins")
        return ([totals, origins.isEmpty ? nil : "\n" + Self.table(origins), warnings]).compactMap(\.self)
            .joined(separator: "\n")
    }

    private var totals: String {
        var table = TextTable()
        let (bytes, store, fills) = (stats.object("bytes"), stats.object("store"), stats.object("fills"))
        func size(_ document: JSON, _ key: String) -> String { FigureText.bytes(document.integer(key) ?? 0) }
        func count(_ document: JSON, _ key: String) -> String { FigureText.count(document.integer(key) ?? 0) }
        table.add("uptime", FigureText.span(stats.number("uptimeSeconds") ?? 0))
        table.add("requests", Self.requests(stats.object("requests")))
        table.add(
            "hit ratio",
            "\(FigureText.share(stats.number("requestHitRatio"))) of the requests, "
                + "\(FigureText.share(stats.number("byteHitRatio"))) of the bytes")
        table.add(
            "served",
            "\(size(bytes, "served")), \(size(bytes, "servedFromCache")) from the cache and "
                + "\(size(bytes, "servedAfterFill")) from the upstream")
        table.add(
            "upstream", "\(size(bytes, "upstream")), \(size(bytes, "upstreamPrefetch")) of them by prefetch")
        let capacity = store.integer("capacityBytes").map { " of " + FigureText.bytes($0) } ?? ""
        table.add(
            "store",
            "\(FigureText.count(store.integer("assets") ?? 0, "asset")), \(size(store, "cachedBytes"))\(capacity)")
        table.add(
            "fills",
            "\(count(fills, "active")) active, \(count(fills, "queued")) queued, "
                + "\(count(fills, "failed")) failed, \(count(fills, "timedOut")) timed out")
        let jobs = stats.object("jobs")
        table.add(
            "jobs",
            "\(count(jobs, "running")) running, \(count(jobs, "queued")) queued, \(count(jobs, "failed")) failed")
        let evictions = stats.object("evictions")
        table.add("evictions", "\(count(evictions, "count")), \(size(evictions, "bytes"))")
        return table.text
    }

    /// For example `23: hit 16, partial 1, miss 6`. Results without requests are left out.
    static func requests(_ requests: JSON) -> String {
        let results = TrafficSecond.results.compactMap { result -> String? in
            guard let number = requests.integer(result), number > 0 else { return nil }
            return "\(result) \(FigureText.count(number))"
        }
        let total = FigureText.count(requests.integer("total") ?? 0)
        return results.isEmpty ? total : "\(total): \(results.joined(separator: ", "))"
    }

    private static func table(_ origins: [JSON]) -> String {
        var table = TextTable(
            .leading("origin"), .trailing("requests"), .trailing("hit ratio"), .trailing("served"),
            .trailing("upstream"), .leading("circuit"))
        for origin in origins {
            let bytes = origin.object("bytes")
            table.add(
                origin.text("origin") ?? "", FigureText.count(origin.object("requests").integer("total") ?? 0),
                FigureText.share(origin.number("requestHitRatio")), FigureText.bytes(bytes.integer("served") ?? 0),
                FigureText.bytes(bytes.integer("upstream") ?? 0), circuit(origin.object("circuit")))
        }
        return table.text
    }

    /// The state of the circuit of an origin's base URL, with the cause of its latest failure in a row.
    private static func circuit(_ circuit: JSON) -> String {
        let state = circuit.text("state") ?? ""
        guard circuit.integer("failuresInARow") ?? 0 > 0, let cause = circuit.object("lastFailure").text("cause") else {
            return state
        }
        return "\(state) (\(cause))"
    }

    /// Sentences about damage; nil: none.
    private var warnings: String? {
        var sentences: [String] = []
        if stats.object("store").isTrue("damaged") {
            sentences.append("The store is damaged; see the log of the service.")
        }
        if let bytes = stats.object("integrity").integer("badBytes"), bytes > 0 {
            sentences.append("\(FigureText.bytes(bytes)) were corrupt on disk and were removed.")
        }
        return sentences.isEmpty ? nil : "\n" + sentences.joined(separator: "\n")
    }
}
