/// The position of a request in a distributed trace, as carried by `traceparent` and `tracestate` (W3C Trace Context
/// Level 2).
package struct TraceContext: Hashable, Sendable {
    /// The bits of `trace-flags` (§3.2.2.5). Unknown bits are neither kept nor sent.
    package struct Flags: OptionSet, Hashable, Sendable {
        package let rawValue: UInt8

        package init(rawValue: UInt8) { self.rawValue = rawValue }

        /// The caller may have recorded its span.
        package static let sampled = Flags(rawValue: 1)
        /// The last 56 bits of the trace identifier are random.
        package static let random = Flags(rawValue: 2)
    }

    /// The trace.
    package let traceID: TraceID
    /// The span in this trace that is the parent of the work this context is passed to.
    package let spanID: SpanID
    package let flags: Flags
    /// Entries of other tracing systems, passed on unchanged.
    package let state: TraceState
    /// Whether the context was received from another process.
    package let isRemote: Bool

    package init(
        traceID: TraceID, spanID: SpanID, flags: Flags, state: TraceState = TraceState(), isRemote: Bool = false
    ) {
        self.traceID = traceID
        self.spanID = spanID
        self.flags = flags
        self.state = state
        self.isRemote = isRemote
    }

    /// Whether the span of this context is recorded.
    package var isSampled: Bool { flags.contains(.sampled) }
}

// MARK: Fields

extension TraceContext {
    /// The name of the field with identifiers and flags (§3.2.1).
    package static let parentField = "traceparent"
    /// The name of the field with entries of tracing systems (§3.3.1).
    package static let stateField = "tracestate"
    /// The size of a `traceparent` of version 00.
    private static let parentBytes = 55

    /// Parses the values of all `traceparent` and `tracestate` fields of a request. Nil unless there is exactly one
    /// `traceparent` and it is valid (§3.2.4, §4.3).
    package init?(traceparent parents: [String], tracestate states: @autoclosure () -> [String] = []) {
        guard parents.count == 1, let parent = parents.first else { return nil }
        self.init(traceparent: parent, tracestate: states())
    }

    /// Parses the value of the only `traceparent` field, and the values of all `tracestate` fields.
    ///
    /// Nil if the `traceparent` is invalid: the trace then has to be restarted (§3.2.4). An invalid `tracestate` is
    /// discarded and does not affect the result (§3.3).
    package init?(traceparent parent: String, tracestate states: @autoclosure () -> [String] = []) {
        var parent = parent
        guard let fields = parent.withUTF8({ Self.parse($0) }) else { return nil }
        self.init(
            traceID: fields.traceID, spanID: fields.spanID, flags: fields.flags, state: TraceState(fields: states()),
            isRemote: true)
    }

    /// The value of `traceparent` in version 00 (§3.2.2).
    package var traceparent: String {
        "00-\(traceID)-\(spanID)-" + HexDigits.text(UInt64(flags.rawValue), digits: 2)
    }

    /// The value of `tracestate`; nil if it is empty, because empty fields should not be sent (§3.3.1.1).
    package var tracestate: String? { state.text.isEmpty ? nil : state.text }

    /// Parses one value. Of versions after 00, which are longer, only the known fields are used (§3.2.4).
    private static func parse(
        _ text: UnsafeBufferPointer<UInt8>
    ) -> (traceID: TraceID, spanID: SpanID, flags: Flags)? {
        let dash = UInt8(ascii: "-")
        guard text.count >= parentBytes, text[2] == dash, text[35] == dash, text[52] == dash,
            let version = HexDigits.parse(text[..<2]), version != 0xFF,
            text.count == parentBytes || (version > 0 && text[parentBytes] == dash),
            let high = HexDigits.parse(text[3..<19]), let low = HexDigits.parse(text[19..<35]),
            let traceID = TraceID(high: high, low: low),
            let spanID = HexDigits.parse(text[36..<52]).flatMap({ SpanID($0) }),
            let bits = HexDigits.parse(text[53..<55])
        else { return nil }
        let known: Flags = version == 0 ? [.sampled, .random] : [.sampled]
        return (traceID, spanID, Flags(rawValue: UInt8(truncatingIfNeeded: bits)).intersection(known))
    }
}
