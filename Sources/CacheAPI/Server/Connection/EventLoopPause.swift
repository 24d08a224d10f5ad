import NIOCore

extension EventLoop {
    /// Runs a step of long work after the event loop has served its other channels.
    ///
    /// `execute` does not do that: an event loop of NIO runs tasks until none is left before it looks at its channels again,
    /// also those that tasks add. The delay need only outlast that loop.
    func pause(before step: @escaping @Sendable () -> Void) {
        scheduleTask(in: .microseconds(100), step)
    }
}
