import Dispatch

/// Runs the parsers of media files and playlists on one thread of their own (SE-0417), because a large or hostile file can
/// keep a processor busy for seconds. While a parser waits for bytes, another one runs.
final class MediaExecutor: TaskExecutor {
    private let queue = DispatchQueue(label: "larder.media")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
