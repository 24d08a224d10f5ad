import Foundation

/// Room for connections whose send buffer is larger than the kernel would make it (tcp(7), socket(7)).
///
/// A body that is handed over in fewer turns costs less: in each the processor has forgotten the last one. What waits is
/// the file's pages, and no copy of them; but the kernel counts it as TCP's memory, of which there is not without end.
struct SendRoom: Sendable {
    /// None where the kernel's own buffers are as large.
    let places: Places
    /// What SO_SNDBUF is set to; the kernel takes twice that.
    let bytes: Int

    /// Smaller bodies leave in one turn as it is.
    static let leastBody: Int64 = 2 << 20
    private static let mostBytes = 4 << 20

    /// Room for as many as take half of what TCP may hold before it saves memory.
    ///
    /// - Parameters:
    ///   - largest: `net.core.wmem_max`, the most that SO_SNDBUF may ask for.
    ///   - own: the last number of `net.ipv4.tcp_wmem`, up to which the kernel itself lets a buffer grow.
    ///   - pressure: the second number of `net.ipv4.tcp_mem`, in pages.
    init(largest: Int, own: Int, pressure: Int, pageBytes: Int) {
        bytes = min(largest, Self.mostBytes)
        let memory = pressure.multipliedReportingOverflow(by: pageBytes)
        let isOfUse = 2 * bytes > own && !memory.overflow
        places = Places(limit: isOfUse ? memory.partialValue / 2 / (2 * bytes) : 0)
    }

    /// What the kernel's settings allow; none where it does not tell them.
    static func ofThisMachine() -> SendRoom {
        func numbers(_ name: String) -> [Int] {
            let text = try? String(contentsOfFile: "/proc/sys/net/\(name)", encoding: .ascii)
            return text?.split(whereSeparator: \.isWhitespace).compactMap { Int($0) } ?? []
        }
        guard let largest = numbers("core/wmem_max").first, largest > 0, let own = numbers("ipv4/tcp_wmem").last,
            let pressure = numbers("ipv4/tcp_mem").dropFirst().first, pressure > 0
        else { return .none }
        return SendRoom(largest: largest, own: own, pressure: pressure, pageBytes: sysconf(Int32(_SC_PAGESIZE)))
    }

    static var none: SendRoom { SendRoom(largest: 1, own: .max, pressure: 0, pageBytes: 1) }
}
