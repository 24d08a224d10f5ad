import CacheCore
package import CacheEngine
package import ReaderAccess

extension StatsSnapshot {
    /// The `Stats` schema.
    package func document(readers: [ReaderUsage] = []) -> some Encodable {
        StatsReport.document(of: StatsReport(self, readers: readers))
    }
}

extension StatsReport {
    /// The maximum number of failing servers in the document.
    private static let listedServers = 100

    static let document = FigureDocument(
        Figure<StatsReport>.start + Figure<TrafficFigures>.all.map { $0.moved(\StatsReport.stats.all) }
            + Figure<StatsReport>.later
    )
    .adding("store.quotas") { $0.stats.store.quotas.map(QuotaDocument.init) }
    .adding("integrity.scrub") { $0.stats.scrub.map(ScrubDocument.init) }
    .adding("origins") { report in
        report.stats.origins.map { name, figures in
            OriginStats.document(of: OriginStats(name: name, figures: figures, stats: report.stats))
        }
    }
    .adding("readers") { report in
        report.readers.map { $0.document(pricePerGigabyte: report.stats.pricePerGigabyte) }
    }
    .adding("failingServers") { $0.stats.failingServers.prefix(listedServers).map { CircuitDocument($0) } }
}

/// The statistics of one origin.
struct OriginStats: Sendable {
    var name: String
    var figures: TrafficFigures
    var stats: StatsSnapshot

    /// The `OriginStats` schema.
    static let document = FigureDocument<OriginStats>()
        .adding("origin") { $0.name }
        .adding(Figure<TrafficFigures>.all.map { $0.moved(\OriginStats.figures) })
        .adding("firstByteSeconds") { $0.stats.upstreamLatencies?.firstByte[$0.name].map(QuantilesDocument.init) }
        .adding("circuit") { $0.circuit }
        .adding("credentials") { $0.stats.credentials[$0.name].map(CredentialsDocument.init) }

    /// The `OriginCircuit` schema; nil for an origin without a circuit breaker. The first circuit is that of the base
    /// URL, the others are those of the mirrors.
    private var circuit: CircuitDocument? {
        guard let circuits = stats.circuits[name], let base = circuits.first else { return nil }
        var document = CircuitDocument(base)
        document.mirrors = .value(circuits.dropFirst().map { CircuitDocument($0) })
        return document
    }
}

/// The `OriginCredentials` schema.
struct CredentialsDocument: Codable {
    var kind: String
    var expiresAt: Timestamp?
    var stale: Bool
    var refreshedAt: Timestamp?
    var refreshes, failures: Int64
    var error: String?
}

extension CredentialsDocument {
    fileprivate init(_ figures: StatsSnapshot.CredentialFigures) {
        self.init(
            kind: figures.kind, expiresAt: figures.expiresAt, stale: figures.isStale, refreshedAt: figures.refreshedAt,
            refreshes: figures.refreshes, failures: figures.failures, error: figures.error)
    }
}

extension HistoryStep {
    private static let document = FigureDocument<HistoryStep>()
        .adding("at") { $0.at }
        .adding(Figure<TrafficFigures>.all.map { $0.moved(\HistoryStep.figures) })

    /// The `HistoryStep` schema.
    package var document: some Encodable { Self.document(of: self) }
}

/// The `TopAsset` schema.
package struct TopAssetDocument: Codable {
    var assetId: AssetID
    var key: String
    var servedBytes, servedFromCacheBytes, requests: Int64
    var byteHitRatio: Double?
}

extension TopAssetDocument {
    package init(_ asset: TopAsset) {
        self.init(
            assetId: asset.assetID, key: asset.key, servedBytes: asset.servedBytes,
            servedFromCacheBytes: asset.servedFromCacheBytes, requests: asset.requests,
            byteHitRatio: asset.byteHitRatio)
    }
}
