import CacheCore
import TestChance

/// Model of a directory across a power loss: synced changes are durable, unsynced changes may survive or not.
///
/// A file's bytes are durable after a sync of the file. A created, renamed or removed name is durable after a sync of
/// its directory.
package struct DiskImage: Sendable {
    /// The unsynced changes that survive a power loss.
    package enum Keeping: Sendable, CustomStringConvertible {
        case nothing
        case everything
        /// A random subset of the sectors of each write and of the other changes, determined by the seed.
        case some(seed: UInt64)

        package var description: String {
            switch self {
            case .nothing: "nothing"
            case .everything: "everything"
            case .some(let seed): "some (seed \(seed))"
            }
        }
    }

    /// The files and directories found after a power loss.
    package struct Tree: Sendable {
        package var directories: Set<String> = []
        package var files: [String: [UInt8]] = [:]

        package init() {}
    }

    private enum Entry { case directory, file(Int) }

    /// The durable bytes of a file and its unsynced changes.
    private struct File {
        var bytes: [UInt8] = []
        var pending: [DiskLog.Operation] = []
        /// The size of an atomic device write.
        var sectorBytes = 4096
    }

    private var files: [File] = []
    private var entries: [String: Entry] = [:]
    /// Unsynced changes of names, keyed by directory.
    private var pendingEntries: [String: [DiskLog.Operation]] = [:]
    /// Incremented by each change of the durable state.
    package private(set) var version = 0

    package init() {}

    /// The image of a tree found after a power loss: everything in it is durable.
    package init(_ tree: Tree) {
        for name in tree.directories { entries[name] = .directory }
        for (name, bytes) in tree.files.sorted(by: { $0.key < $1.key }) {
            entries[name] = .file(files.count)
            files.append(File(bytes: bytes, sectorBytes: Self.sectorBytes(name)))
        }
    }

    var fileCount: Int { files.count }

    /// The file numbers, keyed by durable name.
    var names: [String: Int] {
        entries.compactMapValues { entry in if case .file(let file) = entry { file } else { nil } }
    }

    /// WAL frames are not aligned to pages, so the WAL uses the sector size.
    private static func sectorBytes(_ name: String) -> Int { name.hasSuffix("-wal") ? 512 : 4096 }

    /// Applies the next operation of a log.
    package mutating func apply(_ operation: DiskLog.Operation) {
        switch operation {
        case .create(let name, let file):
            while files.count <= file { files.append(File(sectorBytes: Self.sectorBytes(name))) }
            pendingEntries[Self.parent(of: name), default: []].append(operation)
        case .createDirectory(let name), .unlink(let name), .rename(let name, _):
            pendingEntries[Self.parent(of: name), default: []].append(operation)
        case .syncDirectory(let name):
            for operation in pendingEntries.removeValue(forKey: name) ?? [] {
                Self.change(&entries, operation)
                version += 1
            }
        case .write(let file, _, _), .truncate(let file, _), .punch(let file, _):
            files[file].pending.append(operation)
        case .sync(let file):
            guard !files[file].pending.isEmpty else { return }
            for operation in files[file].pending { Self.change(&files[file].bytes, operation) }
            files[file].pending = []
            version += 1
        }
    }

    private static func parent(of name: String) -> String {
        name.utf8.lastIndex(of: UInt8(ascii: "/")).map { String(name[..<$0]) } ?? ""
    }

    /// The tree found after a power loss at this point.
    package func found(_ keeping: Keeping) -> Tree {
        var (entries, random) = (entries, Chances(keeping))
        for (_, operations) in pendingEntries.sorted(by: { $0.key < $1.key }) {
            for operation in operations where random.keeps() { Self.change(&entries, operation) }
        }
        var tree = Tree()
        // Visit each directory before its entries.
        for (name, entry) in entries.sorted(by: { $0.key < $1.key }) {
            let parent = Self.parent(of: name)
            guard parent.isEmpty || tree.directories.contains(parent) else { continue }
            switch entry {
            case .directory: tree.directories.insert(name)
            case .file(let file): tree.files[name] = bytes(of: files[file], &random)
            }
        }
        return tree
    }

    private func bytes(of file: File, _ random: inout Chances) -> [UInt8] {
        var bytes = file.bytes
        for operation in file.pending {
            for piece in random.isTorn ? Self.pieces(of: operation, file.sectorBytes) : [operation] where random.keeps()
            {
                Self.change(&bytes, piece)
            }
        }
        return bytes
    }

    private static func pieces(of operation: DiskLog.Operation, _ sectorBytes: Int) -> [DiskLog.Operation] {
        guard case .write(let file, var offset, let bytes) = operation else { return [operation] }
        var (rest, pieces): (ArraySlice<UInt8>, [DiskLog.Operation]) = (bytes[...], [])
        while !rest.isEmpty {
            let piece = rest.prefix(sectorBytes - offset % sectorBytes)
            pieces.append(.write(file: file, offset: offset, bytes: Array(piece)))
            offset += piece.count
            rest = rest.dropFirst(piece.count)
        }
        return pieces
    }

    private static func change(_ entries: inout [String: Entry], _ operation: DiskLog.Operation) {
        switch operation {
        case .create(let name, let file): entries[name] = .file(file)
        case .createDirectory(let name): entries[name] = .directory
        case .unlink(let name): entries[name] = nil
        case .rename(let name, let newName):
            if let entry = entries.removeValue(forKey: name) { entries[newName] = entry }
        default: break
        }
    }

    private static func change(_ bytes: inout [UInt8], _ operation: DiskLog.Operation) {
        switch operation {
        case .write(_, let offset, let written):
            grow(&bytes, to: offset + written.count)
            bytes.withUnsafeMutableBytes { $0[offset..<offset + written.count].copyBytes(from: written) }
        case .truncate(_, let size):
            grow(&bytes, to: size)
            bytes.removeLast(bytes.count - size)
        case .punch(_, let range):
            let (first, end) = (min(Int(range.lowerBound), bytes.count), min(Int(range.upperBound), bytes.count))
            guard first < end else { return }
            let zeros = [UInt8](repeating: 0, count: end - first)
            bytes.withUnsafeMutableBytes { $0[first..<end].copyBytes(from: zeros) }
        default: break
        }
    }

    private static func grow(_ bytes: inout [UInt8], to size: Int) {
        if bytes.count < size { bytes += [UInt8](repeating: 0, count: size - bytes.count) }
    }
}

/// Random choice of the unsynced changes that survive.
private struct Chances {
    let isTorn: Bool
    private var random: SeededRandom
    /// The survival probability in units of 1/256.
    private var share: UInt64

    init(_ keeping: DiskImage.Keeping) {
        switch keeping {
        case .nothing: (isTorn, random, share) = (false, SeededRandom(seed: 0), 0)
        case .everything: (isTorn, random, share) = (false, SeededRandom(seed: 0), 256)
        case .some(let seed):
            (isTorn, random, share) = (true, SeededRandom(seed: seed), 0)
            share = [16, 64, 128, 192, 240][Int(random.next() % 5)]
        }
    }

    mutating func keeps() -> Bool { share == 256 || (share > 0 && random.next() >> 56 < share) }
}
