import CacheCore

/// Small files such as the lock file and the secret key, read and written as a whole.
extension Disk {
    /// Reads a small file from its beginning, at most `limit` bytes.
    func readAll(_ descriptor: Descriptor, limit: Int) throws(CacheError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: limit)
        var filled = 0
        while filled < limit {
            let count = try read(&bytes, of: descriptor, from: filled)
            if count == 0 { break }
            filled += count
        }
        return Array(bytes.prefix(filled))
    }

    /// Writes a small file from its beginning. Throws `storageFull` if the disk is full.
    func writeAll(_ descriptor: Descriptor, _ bytes: [UInt8]) throws(CacheError) {
        var written = 0
        while written < bytes.count {
            written += try write(bytes, to: descriptor, from: written)
        }
    }

    /// Makes one read call; it may return fewer bytes than requested.
    private func read(_ bytes: inout [UInt8], of descriptor: Descriptor, from start: Int) throws(CacheError) -> Int {
        let outcome: Result<Int, CacheError> = bytes.withUnsafeMutableBytes { buffer in
            do throws(CacheError) {
                let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[start...])
                return .success(try read(descriptor, into: rest, at: Int64(start)))
            } catch {
                return .failure(error)
            }
        }
        return try outcome.get()
    }

    /// Makes one write call; it may write fewer bytes than given.
    private func write(_ bytes: [UInt8], to descriptor: Descriptor, from start: Int) throws(CacheError) -> Int {
        let outcome: Result<Int, CacheError> = bytes.withUnsafeBytes { buffer in
            do throws(CacheError) {
                let rest = UnsafeRawBufferPointer(rebasing: buffer[start...])
                return .success(try write(descriptor, rest, at: Int64(start)))
            } catch {
                return .failure(error)
            }
        }
        return try outcome.get()
    }
}
