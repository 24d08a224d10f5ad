package import CacheCore
package import CacheEngine
package import Hummingbird
package import NIOCore
import Synchronization

/// One content response's bytes on their way to the client, and the promise that the read is finished exactly once.
package final class ContentBody: Sendable {
    package typealias Next = @Sendable () async throws(CacheError) -> ByteBuffer?
    package typealias Finish = @Sendable (ReadEnding) -> Void

    private enum Turn: Sendable {
        case bytes(ByteBuffer?)
        case clientGone
    }

    private let next: Next
    private let finish: Finish
    /// What the head promised; nil: nothing.
    private let length: Int64?
    private let presence: ClientPresence?
    private let isFinished = Mutex(false)

    init(length: Int64?, presence: ClientPresence?, next: @escaping Next, finish: @escaping Finish) {
        self.length = length
        self.presence = presence
        self.next = next
        self.finish = finish
    }

    // The framework drops a body without a call when the head cannot be written, and a cancelled wait drops the read.
    deinit { end(.clientGone) }

    /// The first bytes, awaited before the head is sent, so that failures can still be told.
    package func first() async throws(CacheError) -> ByteBuffer? {
        do throws(CacheError) {
            return try await next()
        } catch {
            end(.failed(error))
            throw error
        }
    }

    /// Sends `first` and all that follows. An error here cuts the connection, so that nobody takes a part for the whole:
    /// nothing more is written, neither the promised length's rest nor the last chunk's mark.
    package func send(first: ByteBuffer?, to writer: inout any ResponseBodyWriter) async throws {
        var sent: Int64 = 0
        do {
            if let first {
                try await writer.write(first)
                sent += Int64(first.readableBytes)
                try await sendRest(to: &writer, sent: &sent)
            }
            guard length == nil || length == sent else {
                throw CacheError(.internal, "The body has \(sent) bytes in place of \(length ?? 0).")
            }
        } catch {
            end((error as? CacheError).map { ReadEnding.failed($0) } ?? .clientGone)
            throw error
        }
        end(.sent)
    }

    /// Each wait for bytes is also one for the client's leaving.
    private func sendRest(to writer: inout any ResponseBodyWriter, sent: inout Int64) async throws {
        try await withThrowingTaskGroup(of: Turn.self) { group in
            if let presence {
                group.addTask {
                    await presence.gone()
                    return .clientGone
                }
            }
            defer { group.cancelAll() }
            while true {
                group.addTask { [next] in .bytes(try await next()) }
                switch try await group.next() {
                case .bytes(let bytes?):
                    try await writer.write(bytes)
                    sent += Int64(bytes.readableBytes)
                case .clientGone:
                    end(.clientGone)
                    throw CancellationError()
                case .bytes(nil), nil: return
                }
            }
        }
    }

    /// Tells the read how it ended, the first time.
    package func end(_ ending: ReadEnding) {
        let isFirst = isFinished.withLock { isFinished in
            defer { isFinished = true }
            return !isFinished
        }
        if isFirst { finish(ending) }
    }
}
