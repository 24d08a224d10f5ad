import CacheCore
import CacheEngine
import HTTPTypes
import NIOCore
import ReaderAccess

/// A response of the fast path that is reused for requests which differ in `Range` only, while the asset is unchanged
/// and fresh.
final class PreparedResponse {
    /// The first request that it answered. Its range does not matter.
    let fingerprint: RequestFingerprint
    let view: FreshAssetSnapshot
    /// The request as the access log names it.
    let logged: LoggedRequest
    let template: ResponseHeadTemplate
    /// The value of ``LiveAPISettings/changes`` before the first request was authorized.
    let settings: UInt64
    /// The reader that the first request was authorized for; nil without a token. Equal requests have the same reader,
    /// because the token is part of the fingerprint, until the directory of tokens changes.
    let reader: Reader?
    /// The counter of the reader.
    let counter: ReaderFigures.Counter?
    /// The times to the first byte of the origin.
    let firstBytes: Histogram
    /// The server in traces.
    let server: RequestTracing.Server

    /// The largest body that is copied; larger ones are sent from the file.
    private static let mostBytes: Int64 = 64 << 10
    /// The capacity of a buffer for a copied body and its head.
    static let bufferBytes = Int(mostBytes) + (8 << 10)

    init(
        _ fingerprint: RequestFingerprint, view: FreshAssetSnapshot, logged: LoggedRequest,
        template: ResponseHeadTemplate,
        settings: UInt64, reader: Reader? = nil, counter: ReaderFigures.Counter? = nil, firstBytes: Histogram,
        server: RequestTracing.Server
    ) {
        self.fingerprint = fingerprint
        self.view = view
        self.logged = logged
        self.template = template
        self.settings = settings
        self.reader = reader
        self.counter = counter
        self.firstBytes = firstBytes
        self.server = server
    }

    /// Whether the authorization of the first request holds at `now`, with the number of changes of the live settings.
    func isAuthorized(at now: Timestamp, _ changes: UInt64) -> Bool {
        settings == changes && (reader?.expiresAt.map { now < $0 } ?? true)
    }

    var status: Int { template.status }

    /// The range that a request asks for. Nil if it is not a single satisfiable range, or if the asset is empty.
    func range(_ request: RequestFingerprint) -> ByteRange? {
        guard !request.range.isEmpty else { return view.length > 0 ? 0..<view.length : nil }
        return request.bytes.withUnsafeReadableBytes { text in
            RangeHeader.single(UnsafeRawBufferPointer(rebasing: text[request.range]), length: view.length)
        }
    }

    /// The source of a response's body.
    enum Body {
        /// The body follows the head in the buffer.
        case copied
        /// The body is sent from the file, under a lease.
        case file(LeasedPiece)

        /// The file range; nil for a copied body.
        var piece: FilePiece? { if case .file(let leased) = self { leased.piece } else { nil } }
    }

    /// Writes the head into `buffer`, followed by the body if it is copied.
    ///
    /// Bodies of ``FilePiece/leastBytes`` and more are sent from the file, if `fromFile` permits it and the file can be
    /// pinned. Returns nil if the body is too large for one piece, or if its bytes are not available; `buffer` may then
    /// contain a head.
    func write(
        _ range: ByteRange, as requestID: RequestID, at time: Timestamp, to buffer: inout ByteBuffer, fromFile: Bool
    ) -> Body? {
        let lent = fromFile && range.length >= FilePiece.leastBytes ? view.lend(range) : nil
        guard lent != nil || range.length <= Self.mostBytes else { return nil }
        template.write(range, of: view, as: requestID, at: time, to: &buffer)
        if let lent { return .file(lent) }
        return view.read(range, into: &buffer) ? .copied : nil
    }
}

@available(*, unavailable)
extension PreparedResponse: Sendable {}
