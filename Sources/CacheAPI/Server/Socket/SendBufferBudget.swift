import Glibc

/// Budget for send buffers above the kernel's own limit (tcp(7), socket(7)).
///
/// A large body then leaves in fewer writes. Between two writes the processor caches grow cold, so fewer writes cost
/// less. The buffered data is pages of the file, not copies. The kernel accounts them as TCP memory; it is limited.
struct SendBufferBudget: Sendable {
    /// One permit for each connection with a large buffer; no permits if the kernel's own buffers are as large.
    let places: AdmissionLimiter
    /// The value for `SO_SNDBUF` in bytes; the kernel allocates twice as much.
    let bytes: Int

    /// The smallest body in bytes that gets a large buffer. Smaller ones leave in one write anyway.
    static let leastBody: Int64 = 2 << 20
    /// The largest value for `SO_SNDBUF` in bytes.
    private static let mostBytes = 4 << 20

    /// Makes a budget of one thirty-second of the machine's memory.
    ///
    /// That is half of the TCP memory at which the kernel enters memory pressure, by its default for `tcp_mem`; containers
    /// cannot read that setting.
    ///
    /// - Parameters:
    ///   - largest: `net.core.wmem_max`, the maximum for `SO_SNDBUF` in bytes.
    ///   - own: The last number of `net.ipv4.tcp_wmem`: the size in bytes to which the kernel grows a buffer itself.
    ///   - memory: The machine's memory in bytes.
    init(largest: Int, own: Int, memory: Int) {
        bytes = min(max(1, largest), Self.mostBytes)
        let limit = 2 * bytes > own ? memory / 32 / (2 * bytes) : 0
        places = AdmissionLimiter(limit: limit)
    }

    /// The budget for the settings of this machine; ``none`` if they cannot be read.
    static func ofThisMachine() -> SendBufferBudget {
        guard let largest = Sysctl.words("core/wmem_max").first.flatMap({ Int($0) }),
            let own = Sysctl.words("ipv4/tcp_wmem").last.flatMap({ Int($0) })
        else { return .none }
        let memory = sysconf(Int32(_SC_PHYS_PAGES)).multipliedReportingOverflow(by: sysconf(Int32(_SC_PAGESIZE)))
        return SendBufferBudget(largest: largest, own: own, memory: memory.overflow ? 0 : memory.partialValue)
    }

    /// A budget without permits.
    static var none: SendBufferBudget { SendBufferBudget(largest: 1, own: .max, memory: 0) }
}
