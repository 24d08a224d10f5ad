import CacheCore
import Foundation

/// The rules of time zones, read from the tz database of the system.
final class TimeZones: Sendable {
    private static let directory = "/usr/share/zoneinfo/"
    /// Guards the rules that were read. A zone is read once: a new database has an effect after a restart.
    private let known = OrderedMutex<[String: ZoneRules]>(.leaf, ["UTC": .utc])

    /// The rules of a zone; nil if the database lacks it, or there is none. Reads a file of a few KiB.
    func rules(of zone: String) -> ZoneRules? {
        if let rules = known.withLock({ $0[zone] }) { return rules }
        guard let data = FileManager.default.contents(atPath: Self.directory + zone),
            let rules = ZoneRules(tzif: Array(data))
        else { return nil }
        known.withLock { $0[zone] = rules }
        return rules
    }

    /// The rules of the zones of windows, as far as they are known.
    func rules(of windows: [JobWindow]) -> [String: ZoneRules] {
        var rules: [String: ZoneRules] = [:]
        for window in windows { rules[window.zone] = self.rules(of: window.zone) }
        return rules
    }

    /// Throws `.invalidField` for the first window with an unknown zone.
    func check(_ windows: [JobWindow]) throws(CacheError) {
        for (index, window) in windows.enumerated() where rules(of: window.zone) == nil {
            throw LocalTime.unknownZone(window.zone, "windows[\(index)]")
        }
    }
}
