import CLinux
import Dispatch
import Foundation
import Glibc
import ServiceLifecycle

/// Service that returns freed memory to the system after a peak.
///
/// Blocks that live long lie between blocks that were freed after a peak, so the heaps do not shrink by themselves. glibc
/// returns such pages only when it is asked to.
struct HeapTrimmer: Service {
    /// The memory of the process in bytes.
    struct Use: Hashable, Sendable {
        /// The resident pages of no file.
        var resident: Int64
        /// The bytes that are allocated from the C library.
        var allocated: Int64
    }

    /// The interval of samples. A trim follows a peak within twice this time.
    private static let interval = Duration.seconds(10)

    let clock: any Clock<Duration>

    func run() async {
        await cancelWhenGracefulShutdown {
            var schedule = HeapTrimSchedule()
            while (try? await clock.sleep(for: Self.interval)) != nil {  // until cancelled
                schedule = await Self.trimIfDue(schedule)
            }
        }
    }

    /// Samples and trims on another thread: a trim can take some milliseconds.
    private static func trimIfDue(_ schedule: HeapTrimSchedule) async -> HeapTrimSchedule {
        await withCheckedContinuation { continuation in
            DispatchQueue.global(qos: .utility).async {
                var schedule = schedule
                if let use = Self.use, schedule.isDue(at: use) {
                    larder_trim_heaps()
                    schedule.trimmed(to: Self.use ?? use)
                }
                continuation.resume(returning: schedule)
            }
        }
    }

    /// The present use; nil if it is unknown.
    private static var use: Use? {
        let allocated = larder_allocated_bytes()
        // Pages: size, resident, resident of files (proc_pid_statm(5)).
        guard allocated >= 0, let text = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8) else {
            return nil  // no glibc, or no /proc
        }
        let pages = text.split(separator: " ").compactMap { Int64($0) }
        guard pages.count > 2 else { return nil }
        return Use(resident: (pages[1] - pages[2]) * Int64(sysconf(Int32(_SC_PAGESIZE))), allocated: allocated)
    }
}

/// Pure decision when to trim: more memory is resident than is allocated, and the allocated bytes do not grow.
struct HeapTrimSchedule: Sendable {
    /// The least excess that is worth a trim, in bytes.
    private static let leastExcess: Int64 = 4 << 20
    /// Growth between two samples at which there is no trim, in bytes.
    private static let growth: Int64 = 1 << 20

    /// The resident bytes above the allocated ones that a trim does not return: stacks, parts of pages.
    private var remainder = Int64.max
    /// The allocated bytes of the last sample.
    private var last = Int64.max

    /// Records a sample; whether a trim is due.
    mutating func isDue(at use: HeapTrimmer.Use) -> Bool {
        defer { last = use.allocated }
        let excess = use.resident - use.allocated
        remainder = min(remainder, excess)
        return excess - remainder >= Self.leastExcess && use.allocated - Self.growth <= last
    }

    /// Records the use after a trim.
    mutating func trimmed(to use: HeapTrimmer.Use) { remainder = use.resident - use.allocated }
}
