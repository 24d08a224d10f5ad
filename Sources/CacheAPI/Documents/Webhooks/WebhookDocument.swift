package import CacheCore
package import CacheEngine

/// The `WebhookList` schema.
package struct WebhookListDocument: Codable {
    package var items: [WebhookDocument]
    /// The queued events of all webhooks, and the maximum of them.
    package var queued, capacity: Int
}

extension WebhookListDocument {
    package init(_ webhooks: [WebhookReport]) {
        self.init(
            items: webhooks.map(WebhookDocument.init), queued: webhooks.reduce(0) { $0 + $1.queued },
            capacity: Webhooks.capacity)
    }
}

/// The `Webhook` schema.
package struct WebhookDocument: Codable {
    package var name: String
    /// Without its query.
    package var url: String
    package var events: [String]
    package var allowPrivateAddresses: Bool
    /// `active`, `failing`, or `gone` after status 410.
    package var state: String
    package var queued: Int
    package var oldestQueuedAt: Timestamp?
    package var delivered, failedAttempts, expired, dropped: Int64
    package var lastAttemptAt, lastSuccessAt: Timestamp?
    package var lastStatus: Int?
    package var lastError: String?
}

extension WebhookDocument {
    package init(_ webhook: WebhookReport) {
        let (settings, figures) = (webhook.settings, webhook.figures)
        self.init(
            name: settings.name, url: settings.shownURL,
            events: WebhookKind.allCases.filter(settings.kinds.contains).map(\.rawValue),
            allowPrivateAddresses: settings.allowsPrivateAddresses, state: webhook.state.rawValue,
            queued: webhook.queued, oldestQueuedAt: webhook.oldestQueuedAt,
            delivered: figures.delivered, failedAttempts: figures.failures, expired: figures.expired,
            dropped: figures.dropped, lastAttemptAt: figures.lastAttemptAt, lastSuccessAt: figures.lastSuccessAt,
            lastStatus: figures.lastStatus, lastError: figures.lastError)
    }
}

/// The `CircuitEvent` schema: the circuit of an upstream address that has opened.
struct CircuitEventDocument: Codable {
    var origin: String?
    var address: String
    var failuresInARow: Int
    var pauseSeconds: Double
    var error: String
}

extension CircuitEventDocument {
    init(_ circuit: CircuitEvent) {
        self.init(
            origin: circuit.origin, address: circuit.address, failuresInARow: circuit.failuresInARow,
            pauseSeconds: circuit.pause.documentSeconds, error: circuit.error)
    }
}

/// The `DiskEvent` schema: the state of a disk that is full.
struct DiskEventDocument: Codable {
    var freeBytes, minFreeBytes, usedBytes: Int64
    var hasRefusedWrites: Bool
}

extension DiskEventDocument {
    init(_ disk: DiskEvent) {
        self.init(
            freeBytes: disk.freeBytes, minFreeBytes: disk.minFreeBytes, usedBytes: disk.usedBytes,
            hasRefusedWrites: disk.hasRefusedWrites)
    }
}

/// The `CredentialsEvent` schema: the credentials of an origin that end and are not renewed.
struct CredentialsEventDocument: Codable {
    var origin, kind: String
    var expiresAt: Timestamp
    var error: String?
}

extension CredentialsEventDocument {
    init(_ credentials: CredentialsEvent) {
        self.init(
            origin: credentials.origin, kind: credentials.kind, expiresAt: credentials.expiresAt,
            error: credentials.error)
    }
}

/// The documents in messages of webhooks.
enum WebhookData {
    /// The member `data` of the message about an event: the document that the event has in `/v1/events`, too.
    static func json(of event: CacheEvent) -> JSON {
        let text: String? =
            switch event.content {
            case .job(let job, _): JobDocument(job).jsonText
            case .circuitOpened(let circuit): CircuitEventDocument(circuit).jsonText
            case .diskFull(let disk): DiskEventDocument(disk).jsonText
            case .credentialsExpiring(let credentials): CredentialsEventDocument(credentials).jsonText
            case .fillStarted, .fillEnded, .evicted, .log, .readiness, .second: nil
            }
        // The text of a document is always JSON.
        return text.flatMap { try? JSONParser.parse($0.utf8) } ?? [:]
    }
}
