import CacheCore
import MediaParsing

/// Anticipation of the index of a media file. A player that opens an MP4 file with the index at its end asks for it one
/// round trip after the first bytes; the transfer of the index begins before that.
extension OpenAsset {
    /// A reader has read enough to count as a player when it has passed this position.
    private static let leastPosition: Int64 = 256 << 10
    /// The largest number of bytes behind the media data that are fetched.
    private static let indexBytes: Int64 = 2 << 20
    /// The number of bytes at the beginning that are examined.
    private static let headBytes = 4096

    /// Finds the index in the first bytes of the asset; nil if the origin does not anticipate.
    var indexAnticipation: (@Sendable (UnsafeRawBufferPointer) -> Void)? {
        guard target.settings.anticipatesIndex else { return nil }
        return { [self] bytes in
            guard let offset = MP4Parser.mediaDataBeforeIndex(head: [UInt8](bytes.prefix(Self.headBytes))) else {
                return
            }
            change { state in
                state.expectedIndex = offset
                return ((), [])
            }
        }
    }
}

extension OpenAsset.State {
    /// The actions that fetch the expected index, once a player has reached `position`.
    mutating func anticipateIndex(at position: Int64) -> [FillLedger.Action] {
        guard let offset = expectedIndex, position >= OpenAsset.leastPosition else { return [] }
        expectedIndex = nil
        guard let length = ledger.length, offset < length, length - offset <= OpenAsset.indexBytes else { return [] }
        return ledger.anticipate(offset - offset % MediaIndex.blockBytes..<length)
    }
}
