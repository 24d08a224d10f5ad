package import CacheCore

/// The kinds of events that webhooks deliver, by the `type` of their messages.
package enum WebhookKind: String, Hashable, Sendable, CaseIterable {
    case jobEnded = "job.ended"
    case jobAtRisk = "job.atRisk"
    case circuitOpened = "circuit.opened"
    case diskFull = "disk.full"
    case credentialsExpiring = "credentials.expiring"

    /// The kind of an event; nil: webhooks do not deliver it.
    init?(_ content: CacheEvent.Content) {
        switch content {
        case .job(let job, .state) where job.record.state.isFinished && !job.isOfOtherNode: self = .jobEnded
        case .job(let job, .atRisk) where !job.isOfOtherNode: self = .jobAtRisk
        case .circuitOpened: self = .circuitOpened
        case .diskFull: self = .diskFull
        case .credentialsExpiring: self = .credentialsExpiring
        case .job, .fillStarted, .fillEnded, .evicted, .log, .readiness, .second: return nil
        }
    }
}

/// The settings of one webhook.
package struct WebhookSettings: Hashable, Sendable {
    package var name: String
    /// An http or https URL without user info.
    package var url: String
    package var kinds: Set<WebhookKind>
    /// The keys of the signatures; each request has one signature for each of them.
    package var keys: [WebhookKey]
    package var allowsPrivateAddresses: Bool
    /// The time limit of one request.
    package var timeout: Duration
    package var tls: TLSSettings

    package init(
        name: String, url: String, kinds: Set<WebhookKind> = Set(WebhookKind.allCases), keys: [WebhookKey],
        allowsPrivateAddresses: Bool = false, timeout: Duration = .seconds(10), tls: TLSSettings = TLSSettings()
    ) {
        self.name = name
        self.url = url
        self.kinds = kinds
        self.keys = keys
        self.allowsPrivateAddresses = allowsPrivateAddresses
        self.timeout = timeout
        self.tls = tls
    }

    /// The URL without its query, which can be a secret.
    package var shownURL: String { String(url.prefix { $0 != "?" && $0 != "#" }) }
}
