/// Filter of a job list. The list is sorted by creation, newest job first.
package struct JobQuery: Hashable, Sendable {
    /// Only jobs in this state.
    package var state: JobState?
    /// Only jobs with this label.
    package var label: String?
    /// Only jobs of this queue.
    package var queue: String?
    /// Page size, 1…1,000.
    package var limit: Int
    /// `nextCursor` of the previous page; nil for the first page.
    package var cursor: String?

    package init(
        state: JobState? = nil, label: String? = nil, queue: String? = nil, limit: Int = 100, cursor: String? = nil
    ) {
        self.state = state
        self.label = label
        self.queue = queue
        self.limit = limit
        self.cursor = cursor
    }
}
