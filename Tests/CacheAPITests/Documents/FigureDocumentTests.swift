import CacheCore
import ReaderAccess
import Testing

@testable import CacheAPI
@testable import CacheEngine

/// The figures of the service. The table in docs/operations.md is made from them: after a change of a figure, run this
/// suite once with the environment variable `UPDATE_DOCUMENTS=1`.
@Suite struct FigureDocumentTests {
    /// Statistics in which each number is different, and greater than 1000.
    private static let report: StatsReport = {
        var stats = Samples.stats()
        var last: Int64 = 1000
        func next() -> Int64 {
            last += 1
            return last
        }
        stats.store = .init(
            isDamaged: true, assets: next(), extents: next(), cachedBytes: next(), diskBytes: next(),
            capacityBytes: next(), freeDiskBytes: next())
        stats.store.lockedFiles = next()
        stats.store.losses.bytes = next()
        (stats.store.losses.age, stats.store.losses.longest) = (.seconds(next()), .seconds(next()))
        stats.integrity = IntegrityFigures(
            badBlocks: next(), badBytes: next(), badDigests: next(), damagedRows: next(), scrubs: next(),
            scrubbedBytes: next())
        stats.admission.connections = .init(active: Int(next()), limit: Int(next()), refused: Int(next()))
        stats.admission.reads = .init(active: Int(next()), limit: Int(next()), refused: Int(next()))
        stats.admission.addressesRefused = Int(next())
        (stats.evictions, stats.evictedBytes, stats.evictedYoungBytes) = (next(), next(), next())
        for state in JobState.ofJobs { stats.jobs[state] = next() }
        stats.jobsAtRisk = next()
        stats.schedules.count = Int(next())
        for result in ScheduledRun.Result.allCases { stats.schedules.runs[result] = next() }
        (stats.pricePerGigabyte, stats.isReady) = (1, true)
        stats.all.servedFromCacheBytes = 1 << 40
        stats.reload = ReloadFigures(isSuccessful: true, loadedAt: Samples.time)
        return StatsReport(stats, version: "1")
    }()

    @Test("Every declared figure has a source")
    func everyDeclaredFigureHasASource() {
        for figure in Figure<StatsReport>.all {
            if case .series(let series) = figure.source {
                for value in series { #expect(value.value(Self.report).number != 0, "\(value.member ?? "")") }
            }
        }
    }

    @Test("Every stored number is declared")
    func everyStoredNumberIsDeclared() {
        let stats = Self.report.stats
        let document = stats.document().jsonText
        for part: Any in [
            stats.store, stats.store.losses, stats.integrity, stats.admission.connections, stats.admission.reads,
        ] {
            for (name, value) in Mirror(reflecting: part).children {
                let number = (value as? Int64) ?? (value as? Int).map(Int64.init) ?? (value as? Int64?) ?? nil
                guard let number else { continue }
                #expect(number > 1000, "\(name ?? "") has no value here.")
                #expect(document.contains(":\(number),") || document.contains(":\(number)}"), "\(name ?? "")")
            }
        }
    }

    @Test("No two figures have the same metric or the same place in documents")
    func namesAreUnique() {
        let rows = Self.rows
        #expect(Set(rows.compactMap(\.metric)).count == rows.compactMap(\.metric).count)
        let members = rows.flatMap(\.members)
        #expect(Set(members).count == members.count)
    }

    @Test("docs/operations.md contains every figure")
    func theTableOfFiguresIsCurrent() throws {
        try GeneratedLines.table("| metric | `GET /v1/stats` | type | meaning |", in: "docs/operations.md")
            .check(Self.rows.map(\.line))
    }

    @Test("openapi.yaml has the figures of bytes and of fills")
    func theSchemasAreCurrent() throws {
        let traffic = Figure<TrafficFigures>.all.flatMap { Self.properties(of: $0, in: TrafficFigures()) }
        let service = Figure<StatsReport>.all.flatMap { Self.properties(of: $0, in: Self.report) }
        let schemas = [
            ("ByteCounts", "Bytes to clients and from upstreams.", "bytes.", traffic),
            ("FillCounts", "The results of fills.", "fills.", traffic),
            ("FillFigures", "Running transfers, and the results of those that ended.", "fills.", service + traffic),
        ]
        for (name, description, group, properties) in schemas {
            let own = properties.filter { $0.path.hasPrefix(group) }
                .map { (name: String($0.path.dropFirst(group.count)), text: $0.text) }
            let plain = own.filter { !$0.name.contains(".") }
            let waits = own.contains { $0.name.hasPrefix("waits.") }
            let names = plain.map(\.name) + (waits ? ["waits"] : [])
            let lines =
                ["      type: object", "      description: \(description)", "      required:"]
                + names.map { "        - \($0)" } + ["      properties:"]
                + plain.map { "        \($0.name): \($0.text)" }
                + (waits ? ["        waits: {$ref: '#/components/schemas/WaitCounts'}"] : [])
                + ["      additionalProperties: false"]
            try GeneratedLines(file: "openapi.yaml", header: "    \(name):") { $0.hasPrefix("      ") }.check(lines)
        }
    }

    /// The paths of a figure in documents, with their schemas.
    private static func properties<Root>(
        of figure: Figure<Root>, in root: Root
    ) -> [(path: String, text: String)] {
        figure.series.compactMap { series in
            guard let path = series.member else { return nil }
            let isInteger = if case .integer = series.value(root) { true } else { false }
            let type = isInteger ? "integer, format: int64" : "number"
            let label = series.label.map { ": `\($0)`" } ?? ""
            return (path, "{type: \(type), description: \(JSON.string(figure.help + label + ".").text)}")
        }
    }

    /// A figure in the documentation.
    private struct Row {
        let metric: String?
        let members: [String]
        let line: String

        /// `label`: the label that distinguishes the values of `Root`.
        init<Root>(_ figure: Figure<Root>, label: String? = nil, below group: String = "") {
            metric = figure.metric
            members = figure.series.compactMap { series in series.member.map { group + $0 } }
            let labels = ((label.map { [$0] } ?? []) + figure.labels).joined(separator: ",")
            let name = metric.map { "`\(PrometheusText.fullName($0))\(labels.isEmpty ? "" : "{\(labels)}")`" } ?? "–"
            let isList =
                figure.series.count > 2
                && figure.series.allSatisfy { series in
                    series.label.map { series.member?.hasSuffix("." + $0) ?? false } ?? false
                }
            let shown = isList ? [members[0].split(separator: ".").dropLast().joined(separator: ".") + ".…"] : members
            let places = shown.isEmpty ? "–" : shown.map { "`\($0)`" }.joined(separator: ", ")
            let type = figure.unit == .flag ? "gauge" : "\(figure.kind.rawValue), \(figure.unit.rawValue)"
            line = "| \(name) | \(places) | \(type) | \(figure.help) |"
        }
    }

    private static var rows: [Row] {
        Figure<StatsReport>.all.map { Row($0) } + Figure<TrafficFigures>.all.map { Row($0, label: "origin") }
            + Figure<ReaderUsage>.all.map { Row($0, label: "token", below: "readers[].") }
    }
}
