import Foundation

/// Reads network settings of the kernel from `/proc/sys/net` (proc(5)).
enum Sysctl {
    /// The blank-separated words of a setting. Empty if the setting is not readable, for example outside Linux.
    static func words(_ name: String) -> [Substring] {
        let text = try? String(contentsOfFile: "/proc/sys/net/\(name)", encoding: .ascii)
        return text?.split(whereSeparator: \.isWhitespace) ?? []
    }
}
