package import CacheCore
import Logging

extension Store {
    /// An asset as it can be used: its row, and its extents as far as the file really has them. Nil where it is not
    /// known.
    ///
    /// What the row claims beyond the file's end, or of a file that is gone, is taken out of the catalog as well.
    package func load(_ id: AssetID) async throws(CacheError) -> LoadedAsset? {
        guard let stored = try await catalog.asset(id) else { return nil }
        guard let name = stored.file else {
            return LoadedAsset(record: stored.record, extents: ByteRangeSet(), file: nil)
        }
        let opened = try await onDiskQueue { () throws(CacheError) -> (SparseFile, Int64)? in
            guard let file = try self.openFile(name) else { return nil }
            return (file, try file.size())
        }
        guard let (file, size) = opened else {
            logger.warning("an asset's file is gone", metadata: ["file": "\(name)"])
            try await catalog.emptyRow(of: name, ifGone: layout.path(of: name), disk)
            return LoadedAsset(record: stored.record, extents: ByteRangeSet(), file: nil)
        }
        var extents = stored.extents
        if let last = extents.runs.last, last.upperBound > size {
            logger.warning("an asset's file is shorter than its extents", metadata: ["file": "\(name)"])
            extents.remove(size..<last.upperBound)
            try await catalog.cutRow(of: name, toEndOf: layout.path(of: name), disk)
        }
        return LoadedAsset(record: stored.record, extents: extents, file: file)
    }
}
