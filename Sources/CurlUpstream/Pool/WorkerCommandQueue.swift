import CCurl
import CacheCore

/// A command from another thread to a worker.
enum CurlCommand: Sendable {
    /// Start an admitted transfer.
    case begin(CurlTransfer)
    /// End a transfer with `.cancelled`.
    case cancel(CurlTransfer)
    /// Apply the desired state of a transfer, and check whether it holds a permit.
    case steer(CurlTransfer)
    /// Recompute the rate limits of all exchanges.
    case ratesChanged
    /// End a transfer that never started, with this error.
    case deliver(CurlTransfer, CacheError)
    /// Recompute the poll timeout.
    case look
    /// End all exchanges and leave the loop.
    case stop
}

/// Command queue of one worker, with the multi handle that is woken when a command is posted.
///
/// `@unchecked Sendable` because `multi` is a C pointer. Only the worker's thread uses it, except for
/// `curl_multi_wakeup`, which libcurl allows on any thread. It is called under the lock, so that the handle exists
/// during the call.
final class WorkerCommandQueue: @unchecked Sendable {
    private struct State {
        var commands: [CurlCommand] = []
        var isClosed = false
        /// Whether `.ratesChanged` is queued already; it is queued once.
        var haveRatesChanged = false
    }

    /// The multi handle; used on the worker's thread only.
    let multi: UnsafeMutableRawPointer
    /// The sockets of the multi handle's connections; used on the worker's thread only.
    let sockets = OpenedSockets()
    /// Guards the queued commands and the closed flag.
    private let state = OrderedMutex(.leaf, State())

    /// Nil if libcurl has no memory left.
    init?() {
        guard let multi = curl_multi_init() else { return nil }
        self.multi = multi
    }

    deinit { curl_multi_cleanup(multi) }

    /// Appends a command and wakes the worker. False if the queue is closed.
    func post(_ command: CurlCommand) -> Bool {
        state.withLock { state in
            guard !state.isClosed else { return false }
            if case .ratesChanged = command {
                guard !state.haveRatesChanged else { return true }
                state.haveRatesChanged = true
            }
            state.commands.append(command)
            curl_multi_wakeup(multi)
            return true
        }
    }

    /// Dequeues all commands.
    func collect() -> [CurlCommand] {
        state.withLock { state in
            defer {
                state.commands = []
                state.haveRatesChanged = false
            }
            return state.commands
        }
    }

    /// Closes the queue; returns the remaining commands.
    func close() -> [CurlCommand] {
        state.withLock { state in
            state.isClosed = true
            defer { state.commands = [] }
            return state.commands
        }
    }
}
