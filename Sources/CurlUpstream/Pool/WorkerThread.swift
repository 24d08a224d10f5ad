import Glibc

/// A POSIX thread outside Swift's cooperative pool, because libcurl's loop blocks.
struct WorkerThread {
    private let thread: pthread_t

    /// Number of online processor cores.
    static var coreCount: Int { max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))) }

    /// Runs `body` on a new thread. Nil if the system refuses a thread.
    init?(_ body: @escaping @Sendable () -> Void) {
        let box = Unmanaged.passRetained(Body(run: body))
        var thread = pthread_t()
        let failure = pthread_create(
            &thread, nil,
            { context in
                guard let context else { return nil }
                WorkerThread.blockBrokenPipes()
                Unmanaged<Body>.fromOpaque(context).takeRetainedValue().run()
                return nil
            }, box.toOpaque())
        guard failure == 0 else {
            box.release()
            return nil
        }
        self.thread = thread
    }

    /// Waits for the end of the thread. On the thread itself it detaches instead, as joining would deadlock.
    func join() {
        if pthread_equal(thread, pthread_self()) != 0 { pthread_detach(thread) } else { pthread_join(thread, nil) }
    }

    /// Releases the thread's resources at its end without a join.
    func detach() { pthread_detach(thread) }

    private final class Body: Sendable {
        let run: @Sendable () -> Void
        init(run: @escaping @Sendable () -> Void) { self.run = run }
    }

    /// libcurl with CURLOPT_NOSIGNAL does not suppress SIGPIPE.
    private static func blockBrokenPipes() {
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGPIPE)
        pthread_sigmask(SIG_BLOCK, &signals, nil)
    }
}
