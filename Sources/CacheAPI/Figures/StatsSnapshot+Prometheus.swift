import CacheCore
package import CacheEngine
package import ReaderAccess

extension StatsReport {
    /// The text of `/metrics`.
    func prometheus(_ format: PrometheusText.Format) -> String {
        var text = PrometheusText(format)
        text.add(Figure<StatsReport>.all, [([], self)])
        text.add(Figure<TrafficFigures>.all, stats.labelledRows.map { ([("origin", $0.0)], $0.1) })
        if !readers.isEmpty { text.add(Figure<ReaderUsage>.all, readers.labelled) }
        return text.text
    }
}

extension StatsSnapshot {
    /// The maximum number of origins with a label of their own. The others are added up under `(other)`, which bounds
    /// the number of time series.
    package static let labelledOrigins = 100
    /// The label of all origins without a label of their own.
    private static let rest = "(other)"

    /// The text of `/metrics`.
    package func prometheus(
        version: String, format: PrometheusText.Format = .prometheus, readers: [ReaderUsage] = []
    ) -> String {
        StatsReport(self, version: version, readers: readers).prometheus(format)
    }

    /// The label values for origins with their figures: at most ``labelledOrigins`` and ``rest``.
    var labelledRows: [(String, TrafficFigures)] {
        let own = origins.prefix(Self.labelledOrigins).map { ($0.name, $0.figures) }
        let rest = origins.dropFirst(Self.labelledOrigins)
        guard !rest.isEmpty else { return own }
        return own + [(Self.rest, rest.reduce(into: TrafficFigures()) { $0.add($1.figures) })]
    }

    /// The credentials of the origins with a label of their own.
    var labelledCredentials: [(name: String, figures: CredentialFigures)] {
        origins.prefix(Self.labelledOrigins).compactMap { row in credentials[row.name].map { (row.name, $0) } }
    }

    /// The histograms of the origins with a label of their own, and the sum of the others.
    func labelled(_ known: [String: HistogramSnapshot]) -> [Figure<StatsReport>.Distribution] {
        let own = Set(origins.prefix(Self.labelledOrigins).map(\.name))
        let labelled = known.filter { own.contains($0.key) }.sorted { $0.key < $1.key }
        let others = known.filter { !own.contains($0.key) }.values
        let rest = others.first.map { first in others.dropFirst().reduce(first) { $0.adding($1) } }
        return labelled.map { ([("origin", $0.key)], $0.value) } + (rest.map { [([("origin", Self.rest)], $0)] } ?? [])
    }

    /// The circuit breakers of one row: of an origin, of all origins without a label, or of servers that are addressed
    /// by absolute URLs.
    func circuits(of row: String) -> [CircuitFigures] {
        switch row {
        case Origin.absoluteName: failingServers
        case Self.rest: origins.dropFirst(Self.labelledOrigins).flatMap { circuits[$0.name] ?? [] }
        default: circuits[row] ?? []
        }
    }
}
