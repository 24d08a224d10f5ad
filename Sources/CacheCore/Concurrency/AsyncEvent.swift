/// Manual-reset event: it stays open until it is closed.
package final class AsyncEvent: Sendable {
    private let isOpen = AsyncCondition(false)

    package init() {}

    /// Opens the event and resumes all waiting tasks.
    package func open() { isOpen.change { $0 = true } }

    /// Closes the event: later calls of `wait` suspend.
    package func close() { isOpen.change { $0 = false } }

    /// Returns when the event is open or the task is cancelled.
    package func wait() async { _ = await isOpen.valueUnlessCancelled { $0 ? () : nil } }
}
