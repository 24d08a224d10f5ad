import CacheCore
import CacheEngine
import HTTPTypes
import NIOCore

/// An answer of the express lane that can be given again, for another range: to the same question in the same words,
/// while the asset stays as it was.
final class Reprise {
    let question: RepriseQuestion
    let view: FreshView
    let path: String
    let form: HeadForm

    /// More is not copied in one piece.
    private static let mostBytes: Int64 = 64 << 10
    /// As large as a head and a body are together.
    static let bufferBytes = Int(mostBytes) + (8 << 10)

    init(_ question: RepriseQuestion, view: FreshView, path: String, form: HeadForm) {
        self.question = question
        self.view = view
        self.path = path
        self.form = form
    }

    var status: Int { form.status }

    /// The bytes `question` asks for, where they are one run.
    func run(_ question: RepriseQuestion) -> ByteRange? {
        guard !question.range.isEmpty else { return view.length > 0 ? 0..<view.length : nil }
        return question.bytes.withUnsafeReadableBytes { text in
            RangeHeader.single(UnsafeRawBufferPointer(rebasing: text[question.range]), length: view.length)
        }
    }

    /// Where the body of an answer is.
    enum Body {
        case copied
        case file(LeasedPiece)

        var piece: FilePiece? { if case .file(let leased) = self { leased.piece } else { nil } }
    }

    /// Writes the answer's head into `buffer`, and its body where it is small; nil where it cannot be given in one piece.
    func write(
        _ run: ByteRange, as name: RequestName, at time: Timestamp, to buffer: inout ByteBuffer
    ) -> Body? {
        let lent = run.length >= FilePiece.leastBytes ? view.lend(run) : nil
        guard lent != nil || run.length <= Self.mostBytes else { return nil }
        form.write(run, of: view, as: name, at: time, to: &buffer)
        if let lent { return .file(lent) }
        return view.read(run, into: &buffer) ? .copied : nil
    }
}

@available(*, unavailable)
extension Reprise: Sendable {}
