import CacheCore
import CacheEngine
import NIOCore
import NIOHTTP1

/// Template of a response head with variable fields for range, time and request identifier.
///
/// The status line and all fields that change at most once per second are rendered once and reused (``Opening``). A
/// response then appends `Content-Range`, `Content-Length` and `X-Request-Id` only.
final class ResponseHeadTemplate {
    let status: Int
    private let statusLine: String
    /// The fields that never change.
    private let fixed: HTTPHeaders
    /// The `Cache-Status` values of caches between the origin server and this one.
    private let upstreamStatus: [String]
    /// Whether the upstream sent a `Date`; it is then in `fixed`.
    private let hasDate: Bool
    /// The last rendered prefix.
    private var latest: Opening?

    /// The rendered prefix of a head: everything up to the fields of one response. Valid for less than a second.
    private struct Opening {
        /// The times of its validity: `Date`, `Age` and the `ttl` of `Cache-Status` have the same second throughout.
        var times: Range<Timestamp>
        /// The fields, for ``head(_:of:as:at:)``.
        var fields: HTTPHeaders
        /// Status line and fields as text, for ``write(_:of:as:at:to:)``.
        var text: [UInt8]
    }

    /// Names of the fields that are not copied from the first response, in lower case.
    private static let variable: Set<String> = [
        "content-range", "content-length", "x-request-id", "age", "cache-status", "date",
    ]

    /// Makes a template from the head of a response. `upstreamStatus` has the upstream's values of `Cache-Status`.
    init(_ head: HTTPResponseHead, upstreamStatus: [String]) {
        status = Int(head.status.code)
        self.upstreamStatus = upstreamStatus
        var fields = HTTPHeaders(head.headers.filter { !Self.variable.contains($0.name.lowercased()) })
        let date = head.headers.first(name: "Date")
        hasDate = date != nil
        if let date { fields.add(name: "Date", value: date) }
        fixed = fields
        statusLine = "HTTP/1.1 \(status) \(head.status.reasonPhrase)\r\n"
    }

    /// Appends the head of a response for `run`, including the empty line.
    func write(
        _ run: ByteRange, of view: FreshAssetSnapshot, as name: RequestID, at time: Timestamp,
        to buffer: inout ByteBuffer
    ) {
        buffer.writeBytes(opening(of: view, at: time).text)
        buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: ASCIIWriter.mostBytes) { space in
            var writer = ASCIIWriter(space)
            if status == 206 {
                writer.write("Content-Range: bytes ")
                writer.write(decimal: run.lowerBound)
                writer.write("-")
                writer.write(decimal: run.upperBound - 1)
                writer.write("/")
                writer.write(decimal: view.length)
                writer.write("\r\n")
            }
            writer.write("Content-Length: ")
            writer.write(decimal: run.length)
            writer.write("\r\nX-Request-Id: ")
            writer.write(name)
            writer.write("\r\n\r\n")
            return writer.count
        }
    }

    /// The same head as a value, for NIO's encoder.
    func head(
        _ run: ByteRange, of view: FreshAssetSnapshot, as requestID: String, at time: Timestamp
    ) -> HTTPResponseHead {
        var fields = opening(of: view, at: time).fields
        if status == 206 {
            fields.add(name: "Content-Range", value: ContentRange.run(run, of: view.length).description)
        }
        fields.add(name: "Content-Length", value: String(run.length))
        fields.add(name: "X-Request-Id", value: requestID)
        return HTTPResponseHead(version: .http1_1, status: .init(statusCode: status), headers: fields)
    }

    /// Returns the rendered prefix for `time`, and renders it anew if the last one is not valid.
    private func opening(of view: FreshAssetSnapshot, at time: Timestamp) -> Opening {
        if let latest, latest.times.contains(time) { return latest }
        let (age, outcome) = (view.age(at: time), view.outcome(at: time))
        var fields = fixed
        fields.add(name: "Age", value: age.wholeSecondsText)
        fields.add(name: "Cache-Status", value: CacheStatus.field(outcome, after: upstreamStatus))
        if !hasDate { fields.add(name: "Date", value: HTTPDate.format(time)) }
        let text = statusLine + fields.map { "\($0.name): \($0.value)\r\n" }.joined()
        // Milliseconds until `Date`, `Age` and `ttl` change; the first change ends the validity.
        let steps = [
            time.seconds * 1000 + 1000 - time.milliseconds, 1000 - age.wholeMilliseconds % 1000,
            (outcome.timeToLive?.wholeMilliseconds ?? 999) % 1000 + 1,
        ]
        let end = Timestamp(milliseconds: time.milliseconds + max(steps.min() ?? 1, 1))
        let made = Opening(times: time..<end, fields: fields, text: Array(text.utf8))
        latest = made
        return made
    }
}

@available(*, unavailable)
extension ResponseHeadTemplate: Sendable {}

/// Writes ASCII text into memory of sufficient size.
private struct ASCIIWriter {
    /// An upper bound for the text of one head: 130 characters and four numbers.
    static let mostBytes = 256

    private let space: UnsafeMutableRawBufferPointer
    /// The number of bytes written.
    private(set) var count = 0

    init(_ space: UnsafeMutableRawBufferPointer) { self.space = space }

    mutating func write(_ text: StaticString) {
        let bytes = UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
        UnsafeMutableRawBufferPointer(rebasing: space[count...]).copyMemory(from: bytes)
        count += bytes.count
    }

    mutating func write(_ name: RequestID) { count += name.write(to: space[count...]) }

    /// Writes the decimal digits of a number; it must not be negative.
    mutating func write(decimal value: Int64) {
        var (rest, end) = (UInt64(value), count)
        repeat {
            end += 1
            rest /= 10
        } while rest > 0
        (rest, count) = (UInt64(value), end)
        repeat {
            end -= 1
            space[end] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
            rest /= 10
        } while rest > 0
    }
}
