import CacheCore
import CacheEngine
import NIOCore

/// Adapter from ``FilePiece`` to NIO's `FileRegion`. Keeps the file pinned and never closes its descriptor.
///
/// Each write needs its own instance, because NIO's handle supports one operation at a time.
final class PinnedFile {
    private let handle: NIOFileHandle
    private let piece: FilePiece

    init(_ piece: FilePiece) {
        self.piece = piece
        handle = NIOFileHandle(_deprecatedTakingOwnershipOfDescriptor: piece.descriptor)
    }

    /// The bytes to send. Valid while this object lives.
    var region: FileRegion {
        FileRegion(
            fileHandle: handle, readerIndex: Int(piece.range.lowerBound), endIndex: Int(piece.range.upperBound))
    }

    // NIO's handle must not be deallocated while it owns the descriptor. The call throws only for a closed handle, and
    // nothing closes this one.
    deinit { _ = try? handle.takeDescriptorOwnership() }
}

@available(*, unavailable)
extension PinnedFile: Sendable {}
