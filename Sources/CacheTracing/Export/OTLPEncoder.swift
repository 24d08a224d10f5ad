import CacheCore

/// Encodes spans as an `ExportTraceServiceRequest` in OTLP's JSON mapping (OTLP specification, "JSON Protobuf
/// Encoding"): identifiers are hexadecimal, 64-bit integers are strings, enumerations are numbers.
package struct OTLPEncoder: Sendable {
    /// `SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK` and `SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK` of trace.proto.
    private static let (knowsRemote, isRemote): (Int64, Int64) = (0x100, 0x200)

    private let resource: JSON
    private let scope: JSON

    /// `resource` describes this process; `scopeVersion` is the version of the instrumentation.
    package init(resource: [SpanRecord.Attribute], scopeVersion: String) {
        self.resource = ["attributes": Self.json(resource)]
        scope = ["name": "larder", "version": .string(scopeVersion)]
    }

    /// The JSON text of a request.
    package func encode(_ spans: some Sequence<SpanRecord>) -> [UInt8] {
        let scopeSpans: JSON = ["scope": scope, "spans": .array(spans.map(Self.json))]
        let document: JSON = ["resourceSpans": [["resource": resource, "scopeSpans": [scopeSpans]]]]
        return Array(document.text.utf8)
    }

    /// One `Span`. Members with default values are left out.
    private static func json(_ span: SpanRecord) -> JSON {
        var members = identity(span.context.traceID, span.context.spanID)
        if let state = span.context.tracestate { members.append(.init("traceState", .string(state))) }
        if let parent = span.parent { members.append(.init("parentSpanId", .string(parent.spanID.description))) }
        members += [
            .init("flags", flags(span.context.flags, isRemote: span.parent?.isRemote ?? false)),
            .init("name", .string(span.name)), .init("kind", number(of: span.kind)),
            .init("startTimeUnixNano", .string(String(span.start))),
            .init("endTimeUnixNano", .string(String(span.end))),
        ]
        if !span.attributes.isEmpty { members.append(.init("attributes", json(span.attributes))) }
        append(span.droppedAttributes, "droppedAttributesCount", to: &members)
        if !span.links.isEmpty { members.append(.init("links", .array(span.links.map(json)))) }
        append(span.droppedLinks, "droppedLinksCount", to: &members)
        if let status = json(span.status) { members.append(.init("status", status)) }
        return .object(members)
    }

    private static func identity(_ trace: TraceID, _ span: SpanID) -> [JSON.Member] {
        [.init("traceId", .string(trace.description)), .init("spanId", .string(span.description))]
    }

    private static func append(_ count: Int, _ key: String, to members: inout [JSON.Member]) {
        if count > 0 { members.append(.init(key, .integer(Int64(clamping: min(count, Int(UInt32.max)))))) }
    }

    private static func json(_ link: SpanLink) -> JSON {
        .object(identity(link.traceID, link.spanID) + [.init("flags", flags(link.flags, isRemote: link.isRemote))])
    }

    /// `flags`: the flags of the context, and whether the parent or the linked span belongs to another process.
    private static func flags(_ flags: TraceContext.Flags, isRemote: Bool) -> JSON {
        .integer(Int64(flags.rawValue) | knowsRemote | (isRemote ? Self.isRemote : 0))
    }

    /// `SpanKind` of trace.proto.
    private static func number(of kind: SpanKind) -> JSON {
        switch kind {
        case .internal: 1
        case .server: 2
        case .client: 3
        }
    }

    /// `Status` of trace.proto; nil if it is unset.
    private static func json(_ status: SpanStatus) -> JSON? {
        switch status {
        case .unset: nil
        case .ok: ["code": 1]
        case .error(let message): ["message": .string(message), "code": 2]
        }
    }

    private static func json(_ attributes: [SpanRecord.Attribute]) -> JSON {
        .array(attributes.map { ["key": .string($0.key), "value": json($0.value)] })
    }

    /// `AnyValue` of common.proto. Numbers that JSON lacks are texts (ProtoJSON).
    private static func json(_ value: AttributeValue) -> JSON {
        switch value {
        case .string(let text): ["stringValue": .string(text)]
        case .integer(let number): ["intValue": .string(String(number))]
        case .double(let number) where number.isFinite: ["doubleValue": .number(number)]
        case .double(let number):
            ["doubleValue": .string(number.isNaN ? "NaN" : number < 0 ? "-Infinity" : "Infinity")]
        case .bool(let truth): ["boolValue": .bool(truth)]
        case .strings(let texts):
            ["arrayValue": ["values": .array(texts.map { ["stringValue": .string($0)] })]]
        }
    }
}
