package import CacheCore
import CacheEngine
import HTTPTypes
import NIOCore
import NIOHTTP1
import NIOHTTPTypesHTTP1
import ReaderAccess

/// An error response: an RFC 9457 problem document with its status and header fields.
package struct Problem: Sendable {
    package var error: CacheError
    /// The HTTP status.
    package var status: Int
    /// The request's path as a URI reference (RFC 9457 §3.1.5), without its query and the tokens of signed URLs.
    package let instance: String
    package var requestID: String
    /// The probe that has failed; nil: the problem is of another request.
    private let probe: ProbeFailure?

    /// - Parameter status: Nil for the status of the error's code.
    package init(
        _ error: CacheError, status: Int? = nil, instance: String, requestID: String, probe: ProbeFailure? = nil
    ) {
        self.error = error
        self.status = status ?? error.code.status
        self.instance = PercentEncoding.valid(path: LoggedPath.masked(instance))
        self.requestID = requestID
        self.probe = probe
    }

    /// The problem document. Members for a payload of the code are absent for other codes; those of a failed probe have
    /// a value or are null.
    package var document: ProblemDocument {
        var document = ProblemDocument(
            type: "urn:larder:problem:" + error.code.name, title: Self.title(of: error.code.name), status: status,
            detail: error.message, remedy: error.code.remedyText, instance: instance, code: error.code.name,
            requestId: requestID)
        if let probe {
            (document.outcome, document.upstreamStatus, document.timeout) = (.value("failed"), .null, .null)
            document.timings = .value(TimingsDocument(probe.timings))
        }
        switch error.code {
        case .invalidField(let name):
            document.field = .value(name.count > Self.fieldCharacters ? name.prefix(Self.fieldCharacters) + "…" : name)
        case .upstreamRefused(let status, _): document.upstreamStatus = .value(status)
        case .upstreamTimedOut(let timeout):
            document.timeout = .value(timeout.rawValue)
            if probe != nil { document.outcome = .value("timedOut") }
        case .cancelled: if probe != nil { document.outcome = .value("cancelled") }
        default: break
        }
        return document
    }

    static let mediaType = "application/problem+json"
    /// The most characters of a field's name: those of an unknown member come from the client.
    static let fieldCharacters = 256

    /// The response with the document.
    var response: Response {
        Response(status: .init(code: status), headers: fields, body: .document(body))
    }

    /// The header fields without `Content-Length`.
    var fields: HTTPFields {
        var fields = error.headers
        fields[.contentType] = Self.mediaType
        fields[.cacheControl] = "no-store"
        return fields
    }

    var body: ByteBuffer { ByteBuffer(json: document) }

    /// The head of the last response of a connection.
    var lastHead: HTTPResponseHead {
        var fields = fields
        fields[.contentLength] = "\(body.readableBytes)"
        fields[.connection] = "close"
        fields[.requestID] = requestID
        return HTTPResponseHead(HTTPResponse(status: .init(code: status), headerFields: fields))
    }

    /// The title made from an error code: `upstreamTimedOut` becomes `Upstream timed out`.
    private static func title(of code: String) -> String {
        let words = code.reduce(into: "") { text, character in
            text += character.isUppercase ? " " + character.lowercased() : String(character)
        }
        return words.prefix(1).uppercased() + words.dropFirst()
    }
}

extension CacheError {
    /// Converts any error that a route throws. Unknown errors become `.internal` with the error as their cause.
    package init(foreign error: any Error) {
        switch error {
        case let error as CacheError: self = error
        case let failure as ReadFailure: self = failure.error
        case let refused as RefusedBody: self = refused.error
        case is CancellationError: self.init(.cancelled, "The request was cancelled.", cause: error)
        default: self.init(.internal, "An internal error occurred; see the log.", cause: error)
        }
    }
}
