import CacheEngine
import Testing

@testable import CacheAPI

/// The metrics of the process, from texts of `/proc`, and those of responses.
@Suite struct ProcessFiguresTests {
    private func figures(stat: String, limits: String = "Max open files   1024   4096   files\n") -> ProcessFigures? {
        ProcessFigures(
            stat: stat, system: "cpu 1\nbtime 1000\n", limits: "Limit  Soft  Hard  Units\n" + limits,
            openDescriptors: 7, ticksPerSecond: 100, pageBytes: 4096)
    }

    /// Field N of proc(5) has the value N. The name of the program has parentheses and blanks.
    private static let stat = "1 (la (r) der) S " + (4...24).map { "\($0)" }.joined(separator: " ")

    @Test("The metrics have their standard names, in both formats")
    func theProcessIsReported() {
        let report = StatsReport(
            Samples.stats(), responses: [.init(kind: "content", status: 206, count: 3)],
            process: figures(stat: Self.stat))
        for format: PrometheusText.Format in [.prometheus, .openMetrics] {
            let lines = Set(report.prometheus(format).split(separator: "\n"))
            // The fields 14 and 15, 22, 23 and 24.
            for line in [
                "process_cpu_seconds_total 0.29", "process_start_time_seconds 1000.22",
                "process_virtual_memory_bytes 23", "process_resident_memory_bytes 98304", "process_open_fds 7",
                "process_max_fds 1024", "# TYPE process_resident_memory_bytes gauge",
                #"larder_responses_total{kind="content",status="206"} 3"#,
            ] { #expect(lines.contains(Substring(line)), "\(line)") }
            #expect(!lines.contains { $0.contains("larder_process") })
        }
    }

    @Test("Without a limit of descriptors the maximum is infinite; other texts have no figures")
    func otherTexts() {
        #expect(
            figures(stat: Self.stat, limits: "Max open files  unlimited unlimited files\n")?.maxDescriptors == .infinity
        )
        #expect(figures(stat: "1 larder S 1 2") == nil && figures(stat: Self.stat, limits: "") == nil)
    }

    @Test("The figures of this process are readable")
    func thisProcess() throws {
        let own = try #require(ProcessFigures.current())
        #expect(own.residentBytes > 1_000_000 && own.virtualBytes > own.residentBytes && own.openDescriptors > 2)
        #expect(own.maxDescriptors >= own.openDescriptors && own.startSeconds > 1_600_000_000)
    }
}
