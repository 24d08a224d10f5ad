import CacheCore
import Foundation

/// A read of the media trace: one block of an asset, in 24 bytes.
struct BlockRead {
    private let number: Int32
    private let block: Int32
    private let bytes: Int32
    let at: Timestamp

    init(asset: Int64, block: Int64, bytes: Int64, at: Timestamp) {
        number = Int32(asset)
        self.block = Int32(block)
        self.bytes = Int32(bytes)
        self.at = at
    }

    var asset: AssetID { AssetID(high: 0, low: UInt64(number)) }
    var run: ByteRange { ByteRange(offset: Int64(block) * MediaTrace.blockBytes, length: Int64(bytes)) }
}

enum TraceError: Error, CustomStringConvertible {
    case unreadable(String)

    var description: String {
        switch self {
        case .unreadable(let path): "\(path) cannot be unpacked, or is not a table of numbers"
        }
    }
}

/// A gzipped table of integers below one header line.
struct NumberTable {
    private(set) var rows: [[Int64]] = []

    init(unpacking path: String) throws {
        let unpacker = Process()
        let output = Pipe()
        unpacker.executableURL = URL(filePath: "/usr/bin/env")
        unpacker.arguments = ["gzip", "-dc", path]
        unpacker.standardOutput = output
        try unpacker.run()
        let data = output.fileHandleForReading.readDataToEndOfFile()
        unpacker.waitUntilExit()
        for line in data.split(separator: UInt8(ascii: "\n")).dropFirst() {
            let row = line.split(separator: UInt8(ascii: ",")).compactMap { Int64(String(decoding: $0, as: UTF8.self)) }
            guard row.count == rows.first?.count ?? row.count else { throw TraceError.unreadable(path) }
            rows.append(row)
        }
        guard !rows.isEmpty else { throw TraceError.unreadable(path) }
    }
}

/// The reads of a media library's viewers, in blocks of 1 MiB, in order of time.
struct MediaTrace {
    static let blockBytes: Int64 = 1 << 20

    let name: String
    private(set) var reads: [BlockRead] = []
    /// The bytes of all distinct blocks.
    private(set) var footprint: Int64 = 0

    /// Reads `<folder>/<name>.assets.csv.gz` (asset,bytes,…) and `.runs.csv.gz` (start_ms,asset,first_block,n_blocks,
    /// ms_per_block,…).
    init(named name: String, in folder: String) throws {
        self.name = name
        let assets = try NumberTable(unpacking: "\(folder)/\(name).assets.csv.gz").rows
        let runs = try NumberTable(unpacking: "\(folder)/\(name).runs.csv.gz").rows
        let sizes = assets.map { $0[1] }
        var unordered: [BlockRead] = []
        var seen: Set<Int64> = []
        for run in runs {
            for offset in 0..<run[3] {
                let block = run[2] + offset
                let bytes = min(Self.blockBytes, sizes[Int(run[1])] - block * Self.blockBytes)
                let at = Timestamp(milliseconds: run[0] + offset * run[4])
                unordered.append(BlockRead(asset: run[1], block: block, bytes: bytes, at: at))
                if seen.insert(run[1] << 32 | block).inserted { footprint += bytes }
            }
        }
        let order = unordered.indices.map { UInt64(unordered[$0].at.milliseconds) << 32 | UInt64($0) }.sorted()
        reads = order.map { unordered[Int($0 & 0xFFFF_FFFF)] }
    }
}
