import Foundation

/// What the kernel says of how it is set up (proc(5), `/proc/sys/net`).
enum KernelSetting {
    /// The words of a setting; none where the kernel does not tell it, as outside Linux.
    static func words(_ name: String) -> [Substring] {
        let text = try? String(contentsOfFile: "/proc/sys/net/\(name)", encoding: .ascii)
        return text?.split(whereSeparator: \.isWhitespace) ?? []
    }
}
