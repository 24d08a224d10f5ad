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
        JSON(present: [
            "traceId": .string(span.context.traceID.description), "spanId": .string(span.context.spanID.description),
            "traceState": span.context.tracestate.map(JSON.string),
            "parentSpanId": span.parent.map { .string($0.spanID.description) },
            "flags": flags(span.context.flags, isRemote: span.parent?.isRemote ?? false), "name": .string(span.name),
            "kind": number(of: span.kind), "startTimeUnixNano": .string(String(span.start)),
            "endTimeUnixNano": .string(String(span.end)),
            "attributes": span.attributes.isEmpty ? nil : json(span.attributes),
            "droppedAttributesCount": count(span.droppedAttributes),
            "links": span.links.isEmpty ? nil : .array(span.links.map(json)),
            "droppedLinksCount": count(span.droppedLinks), "status": json(span.status),
        ])
    }

    /// A `uint32`; nil for 0.
    private static func count(_ count: Int) -> JSON? {
        count > 0 ? .integer(Int64(clamping: min(count, Int(UInt32.max)))) : nil
    }

    private static func json(_ link: SpanLink) -> JSON {
        [
            "traceId": .string(link.traceID.description), "spanId": .string(link.spanID.description),
            "flags": flags(link.flags, isRemote: link.isRemote),
        ]
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
