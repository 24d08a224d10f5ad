import CacheCore
import CacheEngine
import NIOCore

/// Adapter from ``FilePiece`` to NIO's `FileRegion`. Keeps the file pinned and never closes its descriptor.
///
/// Each piece needs its own instance, because NIO's handle supports one operation at a time.
final class PinnedFile {
    private let handle: NIOFileHandle
    let piece: FilePiece

    init(_ piece: FilePiece) {
        self.piece = piece
        handle = NIOFileHandle(_deprecatedTakingOwnershipOfDescriptor: piece.descriptor)
    }

    /// The bytes to send after the first `count`, in regions. Valid while this object lives.
    ///
    /// A channel reports a region only when all of it has left. Sent bytes are counted by region, so an aborted response
    /// counts less than ``countedBytes`` too few.
    func regions(after count: Int64 = 0) -> [FileRegion] {
        stride(from: piece.range.lowerBound + count, to: piece.range.upperBound, by: Self.countedBytes).map { start in
            let end = min(start + Int64(Self.countedBytes), piece.range.upperBound)
            return FileRegion(fileHandle: handle, readerIndex: Int(start), endIndex: Int(end))
        }
    }

    /// Writes regions, and calls `left` with the size of each one that has left.
    func write(
        _ regions: some Sequence<FileRegion>, to context: ChannelHandlerContext, as data: (FileRegion) -> NIOAny,
        left: @escaping (Int) -> Void
    ) {
        for region in regions {
            let (count, written) = (region.readableBytes, context.eventLoop.makePromise(of: Void.self))
            let here = NIOLoopBound((self, left), eventLoop: context.eventLoop)
            written.futureResult.whenSuccess { here.value.1(count) }
            context.write(data(region), promise: written)
        }
    }

    /// The size of a region. Each costs a system call and often a short segment. A channel writes 16 of them before other
    /// connections get their turn: 4 MiB.
    private static let countedBytes = 256 << 10

    // NIO's handle must not be deallocated while it owns the descriptor. The call throws only for a closed handle, and
    // nothing closes this one.
    deinit { _ = try? handle.takeDescriptorOwnership() }
}

@available(*, unavailable)
extension PinnedFile: Sendable {}
