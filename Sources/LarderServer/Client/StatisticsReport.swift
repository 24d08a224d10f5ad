import CacheAPI
import CacheCore
import CacheEngine

/// The output of `larder stats`: all counters since the start of the service, and a row for each origin.
struct StatisticsReport {
    private let stats: FigureValues

    init(_ stats: FigureValues) { self.stats = stats }

    var text: String {
        let origins = stats.list("origins")
        return ([totals, origins.isEmpty ? nil : "\n" + Self.table(origins), warnings]).compactMap(\.self)
            .joined(separator: "\n")
    }

    private var totals: String {
        var table = TextTable()
        func size(_ figure: String) -> String { FigureText.bytes(stats.integer(figure)) }
        func count(_ figure: String) -> String { FigureText.count(stats.integer(figure)) }
        table.add("uptime", FigureText.span(stats.number("uptimeSeconds") ?? 0))
        table.add("requests", Self.requests(stats))
        table.add(
            "hit ratio",
            "\(FigureText.share(stats.number("requestHitRatio"))) of the requests, "
                + "\(FigureText.share(stats.number("byteHitRatio"))) of the bytes")
        table.add(
            "served",
            "\(size("bytes.served")), \(size("bytes.servedFromCache")) from the cache and "
                + "\(size("bytes.servedAfterFill")) from the upstream")
        table.add("upstream", "\(size("bytes.upstream")), \(size("bytes.upstreamPrefetch")) of them by prefetch")
        if stats.integer("bytes.fromPeers") + stats.integer("bytes.toPeers") > 0 {
            table.add("nodes", "\(size("bytes.fromPeers")) from other nodes, \(size("bytes.toPeers")) to them")
        }
        let capacity = stats.number("store.capacityBytes").map { _ in " of " + size("store.capacityBytes") } ?? ""
        table.add(
            "store",
            "\(FigureText.count(stats.integer("store.assets"), "asset")), \(size("store.cachedBytes"))\(capacity)")
        table.add(
            "fills",
            "\(count("fills.active")) active, \(count("fills.queued")) queued, "
                + "\(count("fills.failed")) failed, \(count("fills.timedOut")) timed out")
        table.add(
            "jobs",
            "\(count("jobs.running")) running, \(count("jobs.queued")) queued, \(count("jobs.failed")) failed")
        table.add("evictions", "\(count("evictions.count")), \(size("evictions.bytes"))")
        return table.text
    }

    /// For example `23: hit 16, partial 1, miss 6`. Results without requests are left out.
    static func requests(_ stats: FigureValues) -> String {
        let results = ReadOutcome.Class.allCases.map { ($0.rawValue, stats.integer("requests.\($0.rawValue)")) }
        let texts = results.filter { $0.1 > 0 }.map { "\($0.0) \(FigureText.count($0.1))" }
        let total = FigureText.count(stats.integer("requests.total"))
        return texts.isEmpty ? total : "\(total): \(texts.joined(separator: ", "))"
    }

    private static func table(_ origins: [FigureValues]) -> String {
        var table = TextTable(
            .leading("origin"), .trailing("requests"), .trailing("hit ratio"), .trailing("served"),
            .trailing("upstream"), .leading("circuit"))
        for origin in origins {
            table.add(
                origin.text("origin") ?? "", FigureText.count(origin.integer("requests.total")),
                FigureText.share(origin.number("requestHitRatio")), FigureText.bytes(origin.integer("bytes.served")),
                FigureText.bytes(origin.integer("bytes.upstream")), circuit(of: origin))
        }
        return table.text
    }

    /// The state of the circuit of an origin's base URL, with the cause of its latest failure in a row.
    private static func circuit(of origin: FigureValues) -> String {
        let state = origin.text("circuit.state") ?? ""
        guard origin.integer("circuit.failuresInARow") > 0, let cause = origin.text("circuit.lastFailure.cause") else {
            return state
        }
        return "\(state) (\(cause))"
    }

    /// Sentences about damage; nil: none.
    private var warnings: String? {
        var sentences: [String] = []
        if stats.isTrue("store.damaged") {
            sentences.append("The store is damaged; see the log of the service.")
        }
        if stats.integer("integrity.badBytes") > 0 {
            sentences.append(
                "\(FigureText.bytes(stats.integer("integrity.badBytes"))) were corrupt on disk and were removed.")
        }
        return sentences.isEmpty ? nil : "\n" + sentences.joined(separator: "\n")
    }
}

/// A document of figures, whose members are named by the dotted paths of the tables of `Figure`. The values are shown as
/// the service has sent them.
struct FigureValues: Decodable {
    let json: JSON

    init(from decoder: any Decoder) throws { self.init(try JSON(from: decoder)) }

    init(_ json: JSON) { self.json = json }

    private func value(_ path: String) -> JSON? {
        path.split(separator: ".").reduce(json) { value, name in value?[String(name)] }
    }

    /// A count; 0 without a value.
    func integer(_ path: String) -> Int64 { if case .integer(let number)? = value(path) { number } else { 0 } }

    /// A number; nil without a value.
    func number(_ path: String) -> Double? { try? value(path)?.decode() }

    func text(_ path: String) -> String? { value(path)?.string }
    func isTrue(_ path: String) -> Bool { value(path) == .bool(true) }

    /// The documents of a list; empty without one.
    func list(_ path: String) -> [FigureValues] {
        if case .array(let values)? = value(path) { values.map(FigureValues.init) } else { [] }
    }
}
