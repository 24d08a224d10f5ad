/// The role of a span in a request (OpenTelemetry specification, trace API, "SpanKind").
package enum SpanKind: Hashable, Sendable {
    /// Work inside this service.
    case `internal`
    /// The response to a request of another process.
    case server
    /// A request to another process.
    case client
}

/// The result of a span (OpenTelemetry specification, trace API, "Set Status").
package enum SpanStatus: Hashable, Sendable {
    case unset
    case ok
    /// The message is for developers and contains no secret.
    case error(String)
}

/// A reference to another span, in the same trace or in a different one (OpenTelemetry specification, trace API,
/// "Link"). It has no trace state; this bounds its size.
package struct SpanLink: Hashable, Sendable {
    package let traceID: TraceID
    package let spanID: SpanID
    package let flags: TraceContext.Flags
    /// Whether the linked span belongs to another process.
    package let isRemote: Bool

    /// A link to the span of `context`.
    package init(_ context: TraceContext) {
        traceID = context.traceID
        spanID = context.spanID
        flags = context.flags
        isRemote = context.isRemote
    }
}

/// The data of one span (OpenTelemetry specification, trace API, "Span").
package struct SpanRecord: Hashable, Sendable {
    /// One attribute; keys are unique within a span.
    package struct Attribute: Hashable, Sendable {
        package var key: String
        package var value: AttributeValue

        package init(_ key: String, _ value: AttributeValue) {
            self.key = key
            self.value = value
        }
    }

    /// The largest number of attributes; further ones are counted only.
    static let maxAttributes = 32
    /// The largest number of links; further ones are counted only.
    package static let maxLinks = 128
    /// The largest number of linked spans that are remembered to recognise a repeated link.
    private static let maxRemembered = 16_384
    /// The largest number of characters in an attribute's text; longer ones are truncated.
    static let maxTextLength = 1024

    /// A name with few distinct values: a route, not a path.
    package var name: String
    package let kind: SpanKind
    /// The position of this span in its trace.
    package let context: TraceContext
    /// The parent; nil for the first span of a trace.
    package let parent: SpanLink?
    /// Nanoseconds since 1970.
    package let start: UInt64
    /// Nanoseconds since 1970; not before `start`.
    package var end: UInt64
    package private(set) var attributes: [Attribute] = []
    package private(set) var droppedAttributes = 0
    package private(set) var links: [SpanLink] = []
    package private(set) var droppedLinks = 0
    /// The spans of the links, also of dropped ones.
    private var linked: Set<SpanID> = []
    package var status = SpanStatus.unset

    package init(name: String, kind: SpanKind, context: TraceContext, parent: SpanLink?, start: UInt64) {
        self.name = name
        self.kind = kind
        self.context = context
        self.parent = parent
        self.start = start
        end = start
    }

    /// Adds an attribute or replaces its value.
    package mutating func set(_ key: String, _ value: AttributeValue) {
        let value = value.limited(to: Self.maxTextLength)
        if let index = attributes.firstIndex(where: { $0.key == key }) {
            attributes[index].value = value
        } else if attributes.count < Self.maxAttributes {
            attributes.append(Attribute(key, value))
        } else {
            droppedAttributes += 1
        }
    }

    /// Adds a link. A second link to the same span has no effect.
    package mutating func link(_ link: SpanLink) {
        guard !linked.contains(link.spanID) else { return }
        if linked.count < Self.maxRemembered { linked.insert(link.spanID) }
        if links.count < Self.maxLinks { links.append(link) } else { droppedLinks += 1 }
    }

    /// Sets the end and releases memory that only a span in progress needs.
    mutating func finish(at time: UInt64) {
        end = time
        linked = []
    }
}
