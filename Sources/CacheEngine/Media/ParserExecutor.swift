import Dispatch

/// Runs the parsers of long input on one thread of their own (SE-0417): media files, playlists, request bodies. Such input
/// can keep a processor busy for seconds. While a parser waits for bytes, another one runs. The thread has a low priority.
package final class ParserExecutor: TaskExecutor {
    private let queue: DispatchQueue

    /// - Parameter label: The name of the thread's queue.
    package init(label: String) { queue = DispatchQueue(label: label, qos: .utility) }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
