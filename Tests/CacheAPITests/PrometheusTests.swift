import CacheAPI
import CacheEngine
import Testing

@Suite struct PrometheusTests {
    /// Reads the exposition format; nil where a line is none of it.
    private func read(_ text: String) -> [String: Double]? {
        var (samples, types): ([String: Double], [String: String]) = ([:], [:])
        guard text.hasSuffix("\n") else { return nil }
        for line in text.split(separator: "\n") {
            if line.hasPrefix("# HELP ") { continue }
            if line.hasPrefix("# TYPE ") {
                let words = line.split(separator: " ")
                guard words.count == 4, ["counter", "gauge"].contains(words[3]), types[String(words[2])] == nil else {
                    return nil
                }
                types[String(words[2])] = String(words[3])
                continue
            }
            guard let space = line.lastIndex(of: " "), let value = Double(line[line.index(after: space)...]) else {
                return nil
            }
            let series = String(line[..<space])
            let name = series.prefix { $0 != "{" }
            guard name.wholeMatch(of: /larder_[a-z_]+/) != nil, types[String(name)] != nil, samples[series] == nil
            else { return nil }
            if series.contains("{") {
                guard series.wholeMatch(of: /[a-z_]+\{([a-z]+="(\\.|[^"\\\n])*",?)+\}/) != nil else { return nil }
            }
            samples[series] = value
        }
        return samples
    }

    @Test func everyLineIsWellFormedAndAddsUp() throws {
        let samples = try #require(read(Samples.stats().prometheus(version: "0.1.0")))
        #expect(samples["larder_requests_total{origin=\"demo\",class=\"hit\"}"] == 6)
        #expect(samples["larder_served_bytes_total{origin=\"demo\",from=\"cache\"}"] == 75)
        #expect(samples["larder_uptime_seconds"] == 60)
        #expect(samples["larder_build_info{version=\"0.1.0\"}"] == 1)
        let requests = samples.filter { $0.key.hasPrefix("larder_requests_total") }.values.reduce(0, +)
        #expect(requests == 10)
    }

    @Test func aMissingCapacityIsInfinite() throws {
        let samples = try #require(read(Samples.stats(capacityBytes: nil).prometheus(version: "1")))
        #expect(samples["larder_store_capacity_bytes"] == .infinity)
    }

    @Test func labelsStayBoundedAndNothingIsLost() throws {
        let names = (0..<250).map { "origin-\($0)" }
        let samples = try #require(read(Samples.stats(origins: names).prometheus(version: "1")))
        let hits = samples.filter { $0.key.hasPrefix("larder_requests_total") && $0.key.contains("\"hit\"") }
        #expect(hits.count == StatsSnapshot.labelledOrigins + 1)
        #expect(hits.values.reduce(0, +) == 250 * 6)
    }

    @Test func labelValuesAreEscaped() throws {
        let text = Samples.stats().prometheus(version: "a\"b\\c\nd")
        #expect(try #require(read(text))["larder_build_info{version=\"a\\\"b\\\\c\\nd\"}"] == 1)
    }
}
