package import CacheCore
package import CacheEngine

extension CreateJobRequest {
    private struct Document: Decodable {
        var items: List<10_000, Item>?
        var priority: JobPriority?
        var label, queue: Omittable<String>
        var supersede, pinned: Bool?
        var maxBytesPerSecond: Omittable<Limited<Positive>>
        var timeoutSeconds: Omittable<Limited<SecondsAboveZero>>
        var deadlineAt, notBefore: Omittable<Timestamp>
        var windows: Omittable<WindowList>
        var when: Omittable<Trigger>
        var tags: TagList?
        var dryRun: Bool?
    }

    /// The point of an asset.
    private struct Trigger: Decodable {
        private struct Document: Decodable {
            var assetId: AssetID?
            var atPercent: Limited<Percent>?
        }

        private enum Percent: NumberLimits { static let range = 0...100.0 }

        /// The members of the schema.
        static var keys: [String] { JSON.keys(of: Document.self) + ["origin", "path"] }

        var reference: AssetReference
        var percent: Double

        init(from decoder: any Decoder) throws {
            let document = try Document(from: decoder)
            reference = try AssetReference(from: decoder, id: document.assetId)
            switch reference {
            case .known, .mounted(_, _, nil): break
            case .mounted, .url: throw decoder.invalid("An asset by assetId, or by origin and path, is expected here.")
            }
            guard let percent = document.atPercent?.value else {
                throw decoder.invalid("The point is missing: a percentage of the length.", at: "atPercent")
            }
            self.percent = percent
        }
    }

    /// The members of the schema.
    package static var keys: [String] { JSON.keys(of: Document.self) }
    /// The members of an item.
    static var itemKeys: [String] { JSON.keys(of: Item.self) }

    /// Reads the `CreateJobRequest` schema. Null is the same as an absent member.
    ///
    /// - Parameter fingerprint: The digest of the request body, compared when an idempotency key is repeated.
    package init(_ json: JSON, fingerprint: String) throws(CacheError) {
        let document = try json.decode(Document.self)
        guard let items = document.items?.values, !items.isEmpty else {
            throw .invalid("items", "At least one item is expected here.")
        }
        try self.init(document, items: items, fingerprint: fingerprint)
    }

    private init(_ document: Document, items: [Item], fingerprint: String) throws(CacheError) {
        let label = document.label.value
        guard label?.unicodeScalars.count ?? 0 <= 256 else {
            throw .invalid("label", "A label has at most 256 characters.")
        }
        self.init(
            items: items, priority: document.priority ?? .normal, label: label, queue: document.queue.value,
            supersedes: document.supersede ?? false, maxBytesPerSecond: document.maxBytesPerSecond.value?.value,
            timeout: document.timeoutSeconds.value?.duration, deadlineAt: document.deadlineAt.value,
            tags: document.tags?.values.map(\.text) ?? [], isPinned: document.pinned ?? false, fingerprint: fingerprint)
        times = JobTimes(
            notBefore: document.notBefore.value, windows: document.windows.value?.values.map(\.window) ?? [])
        when = document.when.value.map { ($0.reference, $0.percent) }
        isDryRun = document.dryRun ?? false
    }
}

extension CreateJobRequest.Item: Decodable {
    private struct Document: Decodable {
        var assetId: AssetID?
        var ranges: List<256, Checked<RangeRule>>?
        var play: PlayRequest?
        var list: ListSelectionRequest?
        var live: Bool?
    }

    /// Ranges in the syntax of the `Range` field.
    private enum RangeRule: TextRule {
        static let expectation = "A range like bytes=0-1048575 or bytes=-65536 is expected here."
        static func permits(_ text: String) -> Bool {
            if case .ranges = RangeHeader.parse(text) { true } else { false }
        }
    }

    /// Reads the `JobItemRequest` schema.
    package init(from decoder: any Decoder) throws {
        let document = try Document(from: decoder)
        self.init(
            reference: try AssetReference(from: decoder, id: document.assetId),
            ranges: document.ranges?.values.map(\.text) ?? [], play: document.play, list: document.list?.selection)
        if document.live == true {
            guard play?.isLive ?? true else {
                throw decoder.invalid("A live playlist is followed until its end; remove seconds.", at: "play.seconds")
            }
            guard ranges.isEmpty, list == nil else {
                throw decoder.invalid(
                    "A live playlist cannot be combined with ranges or a list; remove them.", at: "live")
            }
            play = play ?? .live
        } else if play?.isLive == true {
            throw decoder.invalid("The number of seconds to play is missing.", at: "play.seconds")
        }
        guard play == nil || ranges.isEmpty else {
            throw decoder.invalid("play cannot be combined with ranges; remove one of them.", at: "play")
        }
        guard list != nil else { return }
        switch reference {
        case .mounted(_, _, nil), .url(_, nil): break
        default:
            throw decoder.invalid("A list needs origin and path, or the URL below an origin, and no key.", at: "list")
        }
        guard ranges.isEmpty else {
            throw decoder.invalid("A list cannot be combined with ranges; remove one of them.", at: "list")
        }
    }
}

extension CreateJobRequest {
    /// A line of a request in lines.
    package enum Line {
        /// The members of the job but its items. Only the first line has this form.
        case head(JSON)
        case item(Item)

        /// Reads a `JobItemRequest`, or an object with `job`.
        package init(_ json: JSON) throws(CacheError) {
            guard case .object(let members) = json, members.contains(where: { $0.key == "job" }) else {
                self = .item(try json.decode(Item.self))
                return
            }
            self = .head(try json.decode(Head.self).job)
        }
    }

    private struct Head: Decodable { var job: JSON }

    /// Reads the `CreateJobRequest` schema without `items`, which follow in lines; nil: no member is given.
    package init(head json: JSON?) throws(CacheError) {
        guard let json else {
            self.init(items: [])
            return
        }
        let document = try json.decode(Document.self)
        guard document.items == nil else {
            throw .invalid("items", "The items follow, one on each line; remove this member.")
        }
        try self.init(document, items: [], fingerprint: "")
    }
}

extension JobPatch {
    private struct Document: Decodable {
        var priority: JobPriority?
        var maxBytesPerSecond: Omittable<Limited<Positive>>
        var deadlineAt, notBefore: Omittable<Timestamp>
        var windows: Omittable<WindowList>
        var state: State?
    }

    /// The states that a change can set.
    private enum State: String, ChoiceCodable { case paused, queued }

    /// The members of the schema.
    package static var keys: [String] { JSON.keys(of: Document.self) }

    /// Reads the `JobPatch` schema. Null removes a limit; it is an error for other members.
    package init(_ json: JSON) throws(CacheError) {
        let document = try json.decode(Document.self)
        self.init(
            priority: document.priority, maxBytesPerSecond: document.maxBytesPerSecond.map(\.value),
            deadlineAt: document.deadlineAt, notBefore: document.notBefore,
            windows: document.windows.map { $0.values.map(\.window) }, isPaused: document.state.map { $0 == .paused })
    }
}

typealias WindowList = List<16, WindowText>

/// A ``JobWindow`` as text.
struct WindowText: Decodable, Sendable {
    let window: JobWindow

    init(from decoder: any Decoder) throws {
        let text = try String(from: decoder)
        do throws(CacheError) {
            window = try JobWindow(text)
        } catch {
            throw decoder.invalid(error.message)
        }
    }
}
