import CCurl
import CacheCore
import Synchronization

/// What a worker is told from other threads.
enum CurlCommand: Sendable {
    case begin(CurlTransfer)
    case cancel(CurlTransfer)
    /// Look at what the caller wishes of this transfer, and whether it has a place.
    case steer(CurlTransfer)
    /// Transfers share a rate anew.
    case ratesChanged
    /// Tell this transfer, which never began, how it ended.
    case deliver(CurlTransfer, CacheError)
    /// Look at the clock again.
    case look
    case stop
}

/// A worker's command queue, together with the multi handle that is woken when something lies in it.
///
/// Unchecked because `multi` is a C pointer: the worker's thread alone uses it, but for `curl_multi_wakeup`, which libcurl
/// allows from any thread, and which is called under the lock so that it never meets a multi that is gone.
final class CurlMailbox: @unchecked Sendable {
    private struct State {
        var commands: [CurlCommand] = []
        var isClosed = false
        /// Whether `.ratesChanged` lies in it: once is enough.
        var haveRatesChanged = false
    }

    /// The worker's own.
    let multi: UnsafeMutableRawPointer
    /// The worker's own: the sockets of the multi's connections.
    let sockets = OpenedSockets()
    private let state = Mutex(State())

    init?() {
        guard let multi = curl_multi_init() else { return nil }
        self.multi = multi
    }

    deinit { curl_multi_cleanup(multi) }

    /// False where the worker has stopped and takes nothing more.
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

    /// What has come since the last call.
    func collect() -> [CurlCommand] {
        state.withLock { state in
            defer {
                state.commands = []
                state.haveRatesChanged = false
            }
            return state.commands
        }
    }

    /// Takes nothing from now on; answers what is left.
    func close() -> [CurlCommand] {
        state.withLock { state in
            state.isClosed = true
            defer { state.commands = [] }
            return state.commands
        }
    }
}
