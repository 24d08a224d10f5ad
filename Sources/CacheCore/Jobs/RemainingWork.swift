/// The sums of the running, or of the other unfinished items of a job at one party.
struct RemainingWork: Hashable, Sendable {
    struct Key: Hashable, Sendable {
        /// Empty: unknown before a run.
        let party: String
        let isRunning: Bool

        init(_ item: JobItemRecord) {
            party = item.reference.party ?? ""
            isRunning = item.state == .running
        }
    }

    private(set) var items = 0
    /// The number of items of unknown size.
    private(set) var unknown = 0
    /// The missing bytes of the items of known size.
    private(set) var bytes: Int64 = 0

    /// Adds an unfinished item, or removes it with `times` -1.
    mutating func count(_ item: JobItemRecord, times: Int) {
        items += times
        guard let total = item.bytesTotal else { return unknown += times }
        bytes += max(0, total - item.bytesDone) * Int64(times)
    }
}
