import CacheCore
import Foundation

/// Streaming parser of a CSV trace of reads.
struct TraceReader {
    /// One line of the trace.
    struct Read: Hashable {
        var at: Timestamp
        var asset: AssetID
        /// Nil: the object is read as a whole.
        var offset: Int64?
        var bytes: Int64
    }

    /// An unreadable file or an invalid line; its description is a sentence for the user.
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
    /// Bytes that were read from the file and not parsed yet.
    private var buffer = Data()
    /// Number of the current line, from 1.
    private var number = 0
    /// Number of columns, 3 or 4; nil before the first data line.
    private var columns: Int?
    /// Time of the previous line in seconds.
    private var latest = -Double.infinity
    private var isAtEnd = false
    /// Maximum length of a line in bytes.
    private static let longestLine = 1 << 16

    init(path: String) throws {
        guard let file = FileHandle(forReadingAtPath: path) else {
            throw Fault.unreadable("The file cannot be opened.")
        }
        self.file = file
    }

    /// The next read; nil at the end of the file. Empty lines and a header line are skipped. Throws ``Fault``.
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

    /// Validates the fields of one line.
    private mutating func read(_ fields: [String]) throws -> Read {
        guard fields.count == columns ?? fields.count, fields.count == 3 || fields.count == 4 else {
            throw Fault.line(
                number, "The columns must be time,key,bytes or time,asset,offset,bytes, as in the lines before.")
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
        guard seconds >= latest else {
            throw Fault.line(number, "The time is earlier than on a previous line; sort the lines by time.")
        }
        latest = seconds
        return Read(
            at: Timestamp(milliseconds: Int64(seconds * 1000)), asset: Self.name(fields[1]),
            offset: numbers.count > 1 ? numbers[0] : nil, bytes: numbers[numbers.count - 1])
    }

    /// An identifier derived from the key by its length and FNV-1a hash, so that it is the same in every run.
    private static func name(_ text: String) -> AssetID {
        let hash = text.utf8.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
        return AssetID(high: UInt64(text.utf8.count), low: hash)
    }

    /// The next line without its line feed; nil at the end of the file. Reads the file in steps of 1 MiB.
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
