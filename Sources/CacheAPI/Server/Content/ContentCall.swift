import CacheCore
import CacheEngine
import HTTPTypes
import NIOHTTP1
import NIOHTTPTypesHTTP1
import ReaderAccess

/// A request for content.
@dynamicMemberLookup struct ContentCall: Sendable {
    let call: RequestCall
    let content: ContentTarget

    subscript<Value>(dynamicMember member: KeyPath<RequestCall, Value>) -> Value { call[keyPath: member] }

    /// Whether the method is one of content.
    static func isMethod(_ method: HTTPMethod) -> Bool { method == .GET || method == .HEAD }

    /// Whether `CDN-Loop` (RFC 8586) contains the service `name`; it is lower case.
    func isLoop(to name: String) -> Bool {
        self.fields[values: .cdnLoop].flatMap { FieldText.members(of: $0) }.contains { member in
            member.split(whereSeparator: { $0 == ";" || $0 == " " || $0 == "\t" }).first?.lowercased() == name
        }
    }

    /// Whether another node of the fleet asks for cached bytes of a known asset.
    var isOfPeer: Bool {
        if case .asset = content { self.fields.contains(.larderPeer) } else { false }
    }

    /// Whether the client asks for a digest (RFC 9530 §4); it needs a wait.
    var wantsDigest: Bool { self.fields.contains(.wantContentDigest) || self.fields.contains(.wantReprDigest) }

    /// The time limit of `Larder-Timeout`; nil without the field. Throws `.malformedRequest` for an invalid value.
    func timeout() throws(CacheError) -> Duration? {
        guard let text = self.fields[.larderTimeout] else { return nil }
        guard let seconds = Double(text), (0.001...3600).contains(seconds) else {
            throw CacheError(.malformedRequest, "Larder-Timeout must be a number of seconds from 0.001 to 3600.")
        }
        return .seconds(seconds)
    }
}
