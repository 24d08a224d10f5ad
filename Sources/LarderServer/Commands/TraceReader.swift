import CacheCore
import Foundation

/// Reads a CSV file of reads, a piece of the file at a time.
struct TraceReader {
    struct Read: Hashable {
        var at: Timestamp
        var asset: AssetID
        /// Nil: the object is read as a whole.
        var offset: Int64?
        var bytes: Int64
    }

    enum Fault: Error, CustomStringConvertible {
        case unreadable(String)
        case line(Int, String)

        var description: String {
            switch self {
            case .unreadable(let reason): reason
            case .line(let number, let reason): "line \(number): \(reason)"
            }
        }
    }

    private let file: FileHandle
    private var buffer = Data()
    private var number = 0
    private var columns: Int?
    private var latest = -Double.infinity
    private var isAtEnd = false
    private static let longestLine = 1 << 16

    init(path: String) throws {
        guard let file = FileHandle(forReadingAtPath: path) else {
            throw Fault.unreadable("The file cannot be opened.")
        }
        self.file = file
    }

    /// Nil at the end; throws ``Fault``.
    mutating func next() throws -> Read? {
        while let line = try nextLine() {
            number += 1
            let fields = line.split(separator: ",", omittingEmptySubsequences: false)
                .map { $0.trimmingCharacters(in: .whitespacesAndNewlines) }
            if fields == [""] { continue }
            if number == 1, Double(fields[0]) == nil { continue }
            return try read(fields)
        }
        return nil
    }

    private mutating func read(_ fields: [String]) throws -> Read {
        guard fields.count == columns ?? fields.count, fields.count == 3 || fields.count == 4 else {
            throw Fault.line(number, "time,key,bytes or time,asset,offset,bytes is expected, as in the lines before.")
        }
        columns = fields.count
        guard let seconds = Double(fields[0]), abs(seconds) < 1e12 else {
            throw Fault.line(number, "\"\(fields[0])\" is not a time in seconds.")
        }
        let numbers = try fields[2...].map { text throws -> Int64 in
            guard let value = Int64(text), value >= 0, value <= 1 << 60 else {
                throw Fault.line(number, "\"\(text)\" is not a number of bytes.")
            }
            return value
        }
        guard seconds >= latest else { throw Fault.line(number, "The time is before that of an earlier line.") }
        latest = seconds
        return Read(
            at: Timestamp(milliseconds: Int64(seconds * 1000)), asset: Self.name(fields[1]),
            offset: numbers.count > 1 ? numbers[0] : nil, bytes: numbers[numbers.count - 1])
    }

    /// The same for the same text in every run (FNV-1a).
    private static func name(_ text: String) -> AssetID {
        let hash = text.utf8.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
        return AssetID(high: UInt64(text.utf8.count), low: hash)
    }

    private mutating func nextLine() throws -> String? {
        while true {
            if let feed = buffer.firstIndex(of: UInt8(ascii: "\n")) {
                defer { buffer = buffer[(feed + 1)...] }
                return String(decoding: buffer[buffer.startIndex..<feed], as: UTF8.self)
            }
            guard !isAtEnd else {
                defer { buffer = Data() }
                return buffer.isEmpty ? nil : String(decoding: buffer, as: UTF8.self)
            }
            guard buffer.count <= Self.longestLine else { throw Fault.line(number + 1, "The line is too long.") }
            let more: Data?
            do { more = try file.read(upToCount: 1 << 20) } catch {
                throw Fault.unreadable("The file cannot be read.")
            }
            isAtEnd = more?.isEmpty ?? true
            buffer = Data(buffer) + (more ?? Data())
        }
    }
}
