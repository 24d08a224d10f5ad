package import CacheCore
import GRDB

/// Copies an asset out of a store's directory, even while a service uses the store. Changes nothing in the store.
package enum Export {
    /// The file to copy and its checksums.
    private struct Source {
        let length: Int64
        let name: FileName
        let sums: BlockChecksums
        /// False if the file was written before checksums existed.
        let isSummed: Bool
        /// The sealed key and the nonces of an encrypted file.
        let sealed: (key: SealedKey, runs: NonceRuns)?
        var cipher: FileCipher?
    }

    /// Writes the complete asset to a new file; returns the number of bytes. `text` is an asset identifier or a key.
    ///
    /// Throws `notFound` if there is no such store or asset. Throws `conflict` if the asset is not completely cached,
    /// or if `path` exists. Throws `storageCorrupt` if bytes do not match their checksums, and `encryptionKeyMissing` if
    /// `masterKeys` lacks the key of an encrypted file. `onProgress` is called
    /// before each block with the copied bytes and the length of the asset.
    package static func copy(
        _ text: String, from directory: String, to path: String, masterKeys: MasterKeys.Content = .init(),
        disk: any Disk = SystemDisk(),
        onProgress: (_ bytes: Int64, _ whole: Int64) -> Void = { _, _ in }
    ) throws(CacheError) -> Int64 {
        let layout = StoreLayout(directory: directory)
        guard try disk.status(of: layout.catalog) != nil else {
            throw CacheError(.notFound, "There is no store in \(directory).")
        }
        var source = try source(text, layout)
        if let (sealed, runs) = source.sealed {
            let master = masterKeys.keys.first { $0.id == sealed.masterKey }
            guard let key = master.flatMap({ sealed.opened(with: $0, of: source.name.serial) }) else {
                throw SealedKey.missing(sealed)
            }
            source.cipher = FileCipher(sealedKey: sealed, runs: runs) { key }
        }
        guard try disk.status(of: path) == nil else { throw CacheError(.conflict, "\(path) exists already.") }
        // The target gets its name only when it is complete and synced.
        let partial = path + ".partial"
        try disk.unlink(partial)
        let input = try disk.open(layout.path(of: source.name), .readOnly)
        defer { disk.close(input) }
        let output = try disk.open(partial, .create)
        do throws(CacheError) {
            defer { disk.close(output) }
            for part in BlockChecksums.cut(0..<source.length) {
                onProgress(part.lowerBound, source.length)
                try copy(part, of: source, input, output, disk)
            }
            try disk.sync(output)
            try disk.rename(partial, to: path)
        } catch {
            // A failure to clean up must not hide the first error.
            try? disk.unlink(partial)
            throw error
        }
        return source.length
    }

    /// Copies one block, after comparing it with its checksum.
    private static func copy(
        _ part: ByteRange, of source: Source, _ input: Descriptor, _ output: Descriptor, _ disk: any Disk
    ) throws(CacheError) {
        let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: Int(part.length), alignment: 8)
        defer { bytes.deallocate() }
        func read() throws(CacheError) -> Int {
            var filled = 0
            while filled < bytes.count {
                let rest = UnsafeMutableRawBufferPointer(rebasing: bytes[filled...])
                let count = try disk.read(input, into: rest, at: part.lowerBound + Int64(filled))
                guard count > 0 else { throw damaged(part) }
                filled += count
            }
            return filled
        }
        if let cipher = source.cipher {
            _ = try cipher.read(into: bytes, at: part.lowerBound, read)
        } else {
            _ = try read()
        }
        if source.isSummed {
            let pieces = source.sums.pieces(touching: part)
            guard source.sums.gaps(in: part).isEmpty, let first = pieces.first, let last = pieces.last,
                first.range.lowerBound == part.lowerBound, last.range.upperBound == part.upperBound
            else { throw damaged(part) }
            for piece in pieces {
                let run = Int(piece.range.lowerBound - part.lowerBound)..<Int(piece.range.upperBound - part.lowerBound)
                let plain = UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(bytes)[run])
                let sum = source.cipher?.sum(of: plain, at: piece.range.lowerBound) ?? .crc32C(Checksum.of(plain))
                guard sum == piece.sum else { throw damaged(part) }
            }
        }
        var written = 0
        while written < bytes.count {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[written...])
            written += try disk.write(output, rest, at: part.lowerBound + Int64(written))
        }
    }

    /// The error for bytes that are missing or do not match.
    private static func damaged(_ part: ByteRange) -> CacheError {
        CacheError(
            .storageCorrupt,
            "The bytes from offset \(part.lowerBound) do not match their checksum, or were evicted meanwhile.")
    }

    /// Opens the catalog read-only and looks the asset up. A locked catalog is retried for 5 s.
    private static func source(_ text: String, _ layout: StoreLayout) throws(CacheError) -> Source {
        do {
            return try Catalog.readOnly(layout.catalog).read { db in try source(text, db) }
        } catch {
            throw CacheError(database: error)
        }
    }

    /// Looks the asset up and checks that its extents cover its whole length.
    private static func source(_ text: String, _ db: Database) throws -> Source {
        let row = try Row.fetchOne(
            db, sql: "SELECT id, generation, file_serial, length FROM assets WHERE id = ? OR key = ?",
            arguments: [AssetID(text).map(RowCoding.blob), text])
        guard let row else { throw CacheError(.notFound, "There is no asset \(text).") }
        guard let serial = row[2] as Int64?, let length = row[3] as Int64?,
            try ExtentTable.extents(of: serial, db).byteCount == length
        else {
            throw CacheError(.conflict, "The asset \(text) is not completely cached.")
        }
        return Source(
            length: length, name: FileName(asset: try RowCoding.assetID(row[0]), generation: row[1], serial: serial),
            sums: try ChecksumTable.sums(of: serial, around: 0..<length, db).sums,
            isSummed: try !ChecksumTable.isUnsummed(serial, db),
            sealed: try NonceTable.key(of: serial, db).map { ($0, try NonceTable.runs(of: serial, db)) })
    }
}
