import Glibc

/// One thread of the pool's own, outside Swift's cooperative pool because libcurl's loop blocks.
struct WorkerThread {
    private let thread: pthread_t

    /// Processor cores this process may use.
    static var coreCount: Int { max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))) }

    /// Runs `body` on a new thread; nil where the system has none left.
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

    /// Waits until the thread has ended; called from that thread itself it lets go instead.
    func join() {
        if pthread_equal(thread, pthread_self()) != 0 { pthread_detach(thread) } else { pthread_join(thread, nil) }
    }

    func detach() { pthread_detach(thread) }

    private final class Body: Sendable {
        let run: @Sendable () -> Void
        init(run: @escaping @Sendable () -> Void) { self.run = run }
    }

    /// With CURLOPT_NOSIGNAL libcurl leaves SIGPIPE to us.
    private static func blockBrokenPipes() {
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGPIPE)
        pthread_sigmask(SIG_BLOCK, &signals, nil)
    }
}
