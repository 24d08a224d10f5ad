import CacheEngine
import Testing

@testable import CacheAPI

@Suite struct PrometheusTests {
    /// Parses the exposition format; nil if a line is invalid.
    private func read(_ text: String) -> [String: Double]? {
        var (samples, types): ([String: Double], Set<Substring>) = ([:], [])
        guard text.hasSuffix("\n") else { return nil }
        for line in text.split(separator: "\n") where !line.hasPrefix("# HELP ") {
            if line.hasPrefix("# TYPE ") {
                guard let name = declared(line), types.insert(name).inserted else { return nil }
            } else {
                guard let (series, value) = sample(line), types.contains(family(of: series, in: types)),
                    samples.updateValue(value, forKey: series) == nil
                else { return nil }
            }
        }
        return samples
    }

    /// The name of a series without its labels, and without the suffix of a part of a histogram.
    private func family(of series: String, in types: Set<Substring>) -> Substring {
        let name = series.prefix { $0 != "{" }
        let parts = ["_bucket", "_sum", "_count"].filter(name.hasSuffix).map { name.dropLast($0.count) }
        return parts.first(where: types.contains) ?? name
    }

    /// The name that a `TYPE` line declares.
    private func declared(_ line: Substring) -> Substring? {
        let words = line.split(separator: " ")
        guard words.count == 4, ["counter", "gauge", "histogram"].contains(words[3]) else { return nil }
        return words[2]
    }

    private func sample(_ line: Substring) -> (series: String, value: Double)? {
        guard let space = line.lastIndex(of: " "), let value = Double(line[line.index(after: space)...]),
            line[..<space].wholeMatch(of: /larder_[a-z_]+(\{([a-z]+="(\\.|[^"\\\n])*",?)+\})?|process_[a-z_]+/) != nil
        else { return nil }
        return (String(line[..<space]), value)
    }

    @Test("Every line is well-formed, and the counters add up")
    func everyLineIsWellFormedAndAddsUp() throws {
        let samples = try #require(read(Samples.stats().prometheus(version: "0.1.0")))
        #expect(samples["larder_requests_total{origin=\"demo\",result=\"hit\"}"] == 6)
        #expect(samples["larder_response_bytes_total{origin=\"demo\",source=\"cache\"}"] == 75)
        #expect(samples["larder_uptime_seconds"] == 60)
        #expect(samples["larder_build_info{version=\"0.1.0\"}"] == 1)
        let requests = samples.filter { $0.key.hasPrefix("larder_requests_total") }.values.reduce(0, +)
        #expect(requests == 10)
    }

    @Test("An unlimited capacity is reported as infinity")
    func aMissingCapacityIsInfinite() throws {
        let samples = try #require(read(Samples.stats(capacityBytes: nil).prometheus(version: "1")))
        #expect(samples["larder_store_capacity_bytes"] == .infinity)
    }

    @Test("Origin labels are bounded without losing counts")
    func labelsStayBoundedAndNothingIsLost() throws {
        let names = (0..<250).map { "origin-\($0)" }
        let samples = try #require(read(Samples.stats(origins: names).prometheus(version: "1")))
        let hits = samples.filter { $0.key.hasPrefix("larder_requests_total") && $0.key.contains("\"hit\"") }
        #expect(hits.count == StatsSnapshot.labelledOrigins + 1)
        let total: Double = hits.values.reduce(0, +)
        #expect(total == 250 * 6)
    }

    @Test("Label values are escaped")
    func labelValuesAreEscaped() throws {
        let text = Samples.stats().prometheus(version: "a\"b\\c\nd")
        #expect(try #require(read(text))["larder_build_info{version=\"a\\\"b\\\\c\\nd\"}"] == 1)
    }
}
