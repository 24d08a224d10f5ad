import CacheCore

/// Pure state of the checks of a file, or of the files of a directory: a change counts when nothing has changed for a
/// while. A writer can need several writes, and an incomplete file must not be applied.
struct WatchedFile: Sendable {
    /// The stamps of the files that exist, by path.
    typealias Stamps = [String: FileStamp]

    /// The time between two checks.
    static let checkInterval = Duration.seconds(1)

    /// The time without a change after which the content is read.
    private let settling: Duration
    /// The stamps before the last reading.
    private var read: Stamps
    /// The stamps of the last check, and the uptime of the first check that had them.
    private var seen: Stamps
    private var seenAt = Duration.zero

    init(read stamps: Stamps, settling: Duration) {
        self.settling = settling
        read = stamps
        seen = stamps
    }

    /// Whether the last check has found a change that is not read yet.
    var hasChanged: Bool { seen != read }

    /// Records a check at the uptime `now`. Returns whether there is a change that is to be read now.
    mutating func check(_ stamps: Stamps, at now: Duration) -> Bool {
        if stamps != seen { (seen, seenAt) = (stamps, now) }
        return hasChanged && now - seenAt >= settling
    }

    /// Records that the content with these stamps was read.
    mutating func markRead(_ stamps: Stamps) { read = stamps }

    /// The stamps of the files that exist. Blocks its thread.
    static func stamps(of paths: [String]) -> Stamps { paths.reduce(into: [:]) { $0[$1] = FileStamp(path: $1) } }
}
