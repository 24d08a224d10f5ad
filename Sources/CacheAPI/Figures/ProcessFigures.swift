import Foundation

/// The figures of this process that client libraries of Prometheus report, from `/proc` (proc(5)).
struct ProcessFigures: Hashable, Sendable {
    var cpuSeconds = 0.0
    var startSeconds = 0.0
    var virtualBytes = 0.0
    var residentBytes = 0.0
    var openDescriptors = 0.0
    /// Infinity without a limit.
    var maxDescriptors = 0.0

    /// Nil if `/proc` is not readable.
    static func current() -> ProcessFigures? {
        guard let stat = text("/proc/self/stat"), let system = text("/proc/stat"),
            let limits = text("/proc/self/limits"),
            let descriptors = try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
        else { return nil }
        return ProcessFigures(
            stat: stat, system: system, limits: limits, openDescriptors: descriptors.count,
            ticksPerSecond: Double(sysconf(Int32(_SC_CLK_TCK))), pageBytes: Double(sysconf(Int32(_SC_PAGESIZE))))
    }

    /// Parses the files. Nil if one has another form.
    init?(
        stat: String, system: String, limits: String, openDescriptors: Int, ticksPerSecond: Double, pageBytes: Double
    ) {
        // The name of the program is in parentheses and can contain blanks; the state follows as field 3.
        guard let end = stat.lastIndex(of: ")") else { return nil }
        let fields = stat[stat.index(after: end)...].split(separator: " ").map { Double($0) }
        guard fields.count > 21, let user = fields[11], let kernel = fields[12], let start = fields[19],
            let virtual = fields[20], let resident = fields[21],
            let boot = Self.value(of: "btime", in: system, at: 1).flatMap({ Double($0) }),
            let most = Self.value(of: "Max open files", in: limits, at: 3)
        else { return nil }
        cpuSeconds = (user + kernel) / ticksPerSecond
        startSeconds = boot + start / ticksPerSecond
        (virtualBytes, residentBytes) = (virtual, resident * pageBytes)
        self.openDescriptors = Double(openDescriptors)
        maxDescriptors = Double(most) ?? .infinity
    }

    /// The word at a position of the line that begins with a name.
    private static func value(of name: String, in text: String, at position: Int) -> Substring? {
        guard let line = text.split(separator: "\n").first(where: { $0.hasPrefix(name + " ") }) else { return nil }
        let words = line.split(separator: " ")
        return words.indices.contains(position) ? words[position] : nil
    }

    private static func text(_ path: String) -> String? { try? String(contentsOfFile: path, encoding: .utf8) }
}
