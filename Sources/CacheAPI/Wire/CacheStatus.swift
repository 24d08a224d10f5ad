import CacheCore
package import CacheEngine
import StructuredFieldValues

/// Larder's member of `Cache-Status` (RFC 9211).
package enum CacheStatus {
    /// The field's value: the upstream's own members first, ours last (§2).
    package static func field(_ outcome: ReadOutcome, after upstream: String? = nil) -> String {
        let member = Member(outcome)
        // A list of one token with plain parameters can always be written.
        let ours = (try? StructuredFieldValueEncoder().encode(List(items: [member])))
            .map { String(decoding: $0, as: UTF8.self) }
        return [upstream, ours ?? "Larder"].compactMap(\.self).joined(separator: ", ")
    }

    private struct List: StructuredFieldValue {
        static let structuredFieldType = StructuredFieldType.list
        var items: [Member]
    }

    /// Strings that are tokens are written as tokens, as §2 wants them.
    private struct Member: Codable, Equatable {
        struct Parameters: Codable, Equatable {
            var hit: Bool?
            var fwd: String?
            var fwdStatus: Int?
            var ttl: Int?
            var stored: Bool?
            var collapsed: Bool?
            var detail: String?

            enum CodingKeys: String, CodingKey {
                case hit, fwd, ttl, stored, collapsed, detail
                case fwdStatus = "fwd-status"
            }
        }

        var item: String
        var parameters: Parameters

        init(_ outcome: ReadOutcome) {
            item = "Larder"
            parameters = Parameters()
            if let forwarding = outcome.forwarding {
                parameters.fwd = forwarding.rawValue
            } else if outcome.requestClass != .error {
                parameters.hit = true
            }
            parameters.fwdStatus = outcome.upstreamStatus
            parameters.ttl = outcome.timeToLive.map { Int($0.components.seconds) }
            parameters.stored = outcome.isStored ? true : nil
            parameters.collapsed = outcome.isCollapsed ? true : nil
            parameters.detail = outcome.detail
        }
    }
}
