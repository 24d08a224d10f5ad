import Glibc

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

    /// Room for as many as take a thirty-second of the machine's memory: half of what TCP may have before it saves, as the
    /// kernel sets it up (`tcp_mem`, which containers are not told).
    ///
    /// - Parameters:
    ///   - largest: `net.core.wmem_max`, the most that SO_SNDBUF may ask for.
    ///   - own: the last number of `net.ipv4.tcp_wmem`, up to which the kernel itself lets a buffer grow.
    ///   - memory: the machine's, in bytes.
    init(largest: Int, own: Int, memory: Int) {
        bytes = min(max(1, largest), Self.mostBytes)
        places = Places(limit: 2 * bytes > own ? memory / 32 / (2 * bytes) : 0)
    }

    /// What the kernel's settings allow; none where it does not tell them.
    static func ofThisMachine() -> SendRoom {
        guard let largest = KernelSetting.words("core/wmem_max").first.flatMap({ Int($0) }),
            let own = KernelSetting.words("ipv4/tcp_wmem").last.flatMap({ Int($0) })
        else { return .none }
        let memory = sysconf(Int32(_SC_PHYS_PAGES)).multipliedReportingOverflow(by: sysconf(Int32(_SC_PAGESIZE)))
        return SendRoom(largest: largest, own: own, memory: memory.overflow ? 0 : memory.partialValue)
    }

    static var none: SendRoom { SendRoom(largest: 1, own: .max, memory: 0) }
}
