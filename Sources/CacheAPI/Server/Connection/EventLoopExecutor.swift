import NIOCore

/// Runs the tasks of a connection on its event loop (SE-0417).
///
/// Each hop between an event loop and the shared executor wakes a thread, which costs more than the work of most
/// requests. Requests other than content reads return to the shared executor, because they may compute for long.
final class EventLoopExecutor: TaskExecutor {
    private let eventLoop: any EventLoop

    init(_ eventLoop: any EventLoop) { self.eventLoop = eventLoop }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        eventLoop.execute { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
