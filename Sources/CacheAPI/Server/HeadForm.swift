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

    /// What is the same in all heads of a second: the fields, and the text with the line before them.
    private struct Opening {
        var seconds: Seconds
        var fields: HTTPHeaders
        var text: [UInt8]
    }

    private struct Seconds: Equatable {
        var now: Int64
        var age: Int64
        var left: Int64?

        init(_ moment: FreshView.Moment) {
            now = moment.now.seconds
            age = moment.age.components.seconds
            left = moment.outcome.timeToLive?.components.seconds
        }
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
        _ run: ByteRange, of length: Int64, as name: RequestName, at moment: FreshView.Moment,
        to buffer: inout ByteBuffer
    ) {
        buffer.writeBytes(opening(at: moment).text)
        if status == 206 {
            buffer.writeStaticString("Content-Range: bytes ")
            buffer.write(decimal: run.lowerBound)
            buffer.writeStaticString("-")
            buffer.write(decimal: run.upperBound - 1)
            buffer.writeStaticString("/")
            buffer.write(decimal: length)
            buffer.writeStaticString("\r\n")
        }
        buffer.writeStaticString("Content-Length: ")
        buffer.write(decimal: run.length)
        buffer.writeStaticString("\r\nX-Request-Id: ")
        name.write(to: &buffer)
        buffer.writeStaticString("\r\n\r\n")
    }

    /// The same, for whoever encodes it.
    func head(
        _ run: ByteRange, of length: Int64, as requestID: String, at moment: FreshView.Moment
    ) -> HTTPResponseHead {
        var fields = opening(at: moment).fields
        if status == 206 {
            fields.add(name: "Content-Range", value: ContentRange.run(run, of: length).description)
        }
        fields.add(name: "Content-Length", value: String(run.length))
        fields.add(name: "X-Request-Id", value: requestID)
        return HTTPResponseHead(version: .http1_1, status: .init(statusCode: status), headers: fields)
    }

    private func opening(at moment: FreshView.Moment) -> Opening {
        let seconds = Seconds(moment)
        if let latest, latest.seconds == seconds { return latest }
        var fields = fixed
        fields.add(name: "Age", value: moment.age.wholeSecondsText)
        fields.add(name: "Cache-Status", value: CacheStatus.field(moment.outcome, after: upstreamStatus))
        if !hasDate { fields.add(name: "Date", value: HTTPDate.format(moment.now)) }
        let text = statusLine + fields.map { "\($0.name): \($0.value)\r\n" }.joined()
        let made = Opening(seconds: seconds, fields: fields, text: Array(text.utf8))
        latest = made
        return made
    }
}

@available(*, unavailable)
extension HeadForm: Sendable {}

extension ByteBuffer {
    /// Appends the digits of a number that is not negative.
    fileprivate mutating func write(decimal value: Int64) {
        writeWithUnsafeMutableBytes(minimumWritableBytes: 19) { space in
            var (rest, count) = (value, 0)
            repeat {
                space[18 - count] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
                rest /= 10
                count += 1
            } while rest > 0
            for index in 0..<count { space[index] = space[19 - count + index] }
            return count
        }
    }
}
