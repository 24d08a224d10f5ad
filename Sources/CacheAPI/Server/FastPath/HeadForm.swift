import CacheCore
import CacheEngine
import NIOCore
import NIOHTTP1

/// The head of an answer, with room for what differs between one answer and the next: its range, its moment and
/// its request's identifier.
final class HeadForm {
    let status: Int
    private let statusLine: String
    private let fixed: HTTPHeaders
    /// What caches in front of this one said of themselves.
    private let upstreamStatus: [String]
    private let hasDate: Bool
    private var latest: Opening?

    /// What is the same in all heads of a while: the fields, and the text with the line before them.
    private struct Opening {
        /// While neither the date nor the age nor the time to live becomes another second.
        var times: Range<Timestamp>
        var fields: HTTPHeaders
        var text: [UInt8]
    }

    private static let variable: Set<String> = [
        "content-range", "content-length", "x-request-id", "age", "cache-status", "date",
        WireRules.contentDate.lowercased(),
    ]

    /// The form of an answer with that head.
    init(_ head: HTTPResponseHead, upstreamStatus: [String]) {
        status = Int(head.status.code)
        self.upstreamStatus = upstreamStatus
        var fields = HTTPHeaders(head.headers.filter { !Self.variable.contains($0.name.lowercased()) })
        let date = head.headers.first(name: WireRules.contentDate)
        hasDate = date != nil
        if let date { fields.add(name: "Date", value: date) }
        fixed = fields
        statusLine = "HTTP/1.1 \(status) \(head.status.reasonPhrase)\r\n"
    }

    /// Appends a head for `run`, up to the body.
    func write(
        _ run: ByteRange, of view: FreshView, as name: RequestName, at time: Timestamp, to buffer: inout ByteBuffer
    ) {
        buffer.writeBytes(opening(of: view, at: time).text)
        buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: Pen.mostBytes) { space in
            var pen = Pen(space)
            if status == 206 {
                pen.write("Content-Range: bytes ")
                pen.write(decimal: run.lowerBound)
                pen.write("-")
                pen.write(decimal: run.upperBound - 1)
                pen.write("/")
                pen.write(decimal: view.length)
                pen.write("\r\n")
            }
            pen.write("Content-Length: ")
            pen.write(decimal: run.length)
            pen.write("\r\nX-Request-Id: ")
            pen.write(name)
            pen.write("\r\n\r\n")
            return pen.count
        }
    }

    /// The same, for whoever encodes it.
    func head(
        _ run: ByteRange, of view: FreshView, as requestID: String, at time: Timestamp
    ) -> HTTPResponseHead {
        var fields = opening(of: view, at: time).fields
        if status == 206 {
            fields.add(name: "Content-Range", value: ContentRange.run(run, of: view.length).description)
        }
        fields.add(name: "Content-Length", value: String(run.length))
        fields.add(name: "X-Request-Id", value: requestID)
        return HTTPResponseHead(version: .http1_1, status: .init(statusCode: status), headers: fields)
    }

    private func opening(of view: FreshView, at time: Timestamp) -> Opening {
        if let latest, latest.times.contains(time) { return latest }
        let (age, outcome) = (view.age(at: time), view.outcome(at: time))
        var fields = fixed
        fields.add(name: "Age", value: age.wholeSecondsText)
        fields.add(name: "Cache-Status", value: CacheStatus.field(outcome, after: upstreamStatus))
        if !hasDate { fields.add(name: "Date", value: HTTPDate.format(time)) }
        let text = statusLine + fields.map { "\($0.name): \($0.value)\r\n" }.joined()
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
extension HeadForm: Sendable {}

/// Writes text where there is room for all of it.
private struct Pen {
    /// More than the longest text: 130 characters and four numbers.
    static let mostBytes = 256

    private let space: UnsafeMutableRawBufferPointer
    private(set) var count = 0

    init(_ space: UnsafeMutableRawBufferPointer) { self.space = space }

    mutating func write(_ text: StaticString) {
        let bytes = UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
        UnsafeMutableRawBufferPointer(rebasing: space[count...]).copyMemory(from: bytes)
        count += bytes.count
    }

    mutating func write(_ name: RequestName) { count += name.write(to: space[count...]) }

    /// The digits of a number that is not negative.
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
