import CacheCore
import CacheEngine
import NIOCore

/// A piece's handle, which serves one write at a time, and never closes the file.
final class FileHold {
    private let handle: NIOFileHandle
    private let piece: FilePiece

    init(_ piece: FilePiece) {
        self.piece = piece
        handle = NIOFileHandle(_deprecatedTakingOwnershipOfDescriptor: piece.descriptor)
    }

    var region: FileRegion {
        FileRegion(
            fileHandle: handle, readerIndex: Int(piece.range.lowerBound), endIndex: Int(piece.range.upperBound))
    }

    // It throws where the handle is closed, which nobody does.
    deinit { _ = try? handle.takeDescriptorOwnership() }
}

@available(*, unavailable)
extension FileHold: Sendable {}
