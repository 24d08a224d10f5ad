import CacheCore
import Logging

/// Log handler that writes one JSON object per line: `time`, `level`, `logger`, `message`, then the metadata under
/// their own keys; or all of them under the names of ``ElasticFields``.
struct JSONLogHandler: LogHandler {
    /// Metadata keys that are renamed to `metadata.KEY`, because the line has a member of that name.
    private static let reserved: Set<String> = ["time", "level", "logger", "message", "error"]

    var metadata: Logger.Metadata = [:]
    var metadataProvider: Logger.MetadataProvider?
    var logLevel: Logger.Level
    private let label: String
    private let fields: LogSettings.Fields
    private let now: @Sendable () -> Timestamp
    private let write: @Sendable (String) -> Void

    /// `write` receives whole lines including the newline, on any thread.
    init(
        label: String, logLevel: Logger.Level, fields: LogSettings.Fields = .larder,
        now: @escaping @Sendable () -> Timestamp = { SystemWallClock().now() },
        write: @escaping @Sendable (String) -> Void = StandardError.write
    ) {
        self.label = label
        self.logLevel = logLevel
        self.fields = fields
        self.now = now
        self.write = write
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    /// Precedence for equal keys: event, provider, handler. Keys are sorted.
    func log(event: LogEvent) {
        var merged = metadata
        for source in [metadataProvider?.get(), event.metadata] {
            merged.merge(source ?? [:]) { _, newer in newer }
        }
        let members =
            switch fields {
            case .larder: members(of: event, merged)
            case .ecs: ElasticFields.members(of: event, merged, label: label, at: now())
            }
        write(Self.object(members) + "\n")
    }

    private func members(
        of event: LogEvent, _ metadata: Logger.Metadata
    ) -> [(name: String, value: Logger.MetadataValue)] {
        var fields: [(name: String, value: Logger.MetadataValue)] = [
            ("time", .string(RFC3339.format(now()))), ("level", .string(event.level.rawValue)),
            ("logger", .string(label)), ("message", .string(event.message.description)),
        ]
        if let error = event.error { fields.append(("error", .string(String(describing: error)))) }
        for (key, value) in metadata.sorted(by: { $0.key < $1.key }) {
            fields.append((Self.reserved.contains(key) ? "metadata.\(key)" : key, value))
        }
        return fields
    }

    private static func object(_ fields: [(name: String, value: Logger.MetadataValue)]) -> String {
        "{" + fields.map { "\(quoted($0.name)):\(json($0.value))" }.joined(separator: ",") + "}"
    }

    /// Numbers and Booleans keep their JSON types; non-finite numbers are strings.
    private static func json(_ value: Logger.MetadataValue) -> String {
        switch value {
        case .string(let text): quoted(text)
        case .stringConvertible(let number as any BinaryInteger): number.description
        case .stringConvertible(let number as Double) where number.isFinite: number.description
        case .stringConvertible(let flag as Bool): flag.description
        case .stringConvertible(let other): quoted(other.description)
        case .array(let members): "[" + members.map(json).joined(separator: ",") + "]"
        case .dictionary(let members):
            object(members.sorted { $0.key < $1.key }.map { (name: $0.key, value: $0.value) })
        }
    }

    /// A JSON string. C1 control characters and line separators are escaped too, because some readers treat them as
    /// line ends.
    private static func quoted(_ text: String) -> String {
        JSON.string(text).text.unicodeScalars.reduce(into: "") { quoted, scalar in
            if lineEnds.contains(scalar) {
                let digits = String(scalar.value, radix: 16)
                quoted += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            } else {
                quoted.unicodeScalars.append(scalar)
            }
        }
    }

    private static let lineEnds = Set((0x7F...0x9F).map { Unicode.Scalar(UInt8($0)) } + ["\u{2028}", "\u{2029}"])
}
