import CacheCore
import Foundation
import Yams

/// Parser of a YAML or JSON configuration file. It checks that each key is known; values are still text.
struct ConfigurationFile {
    /// The largest file in bytes.
    static let maxBytes = 16 << 20
    private(set) var values: [SettingsPath: SettingText] = [:]
    /// Every key path in the file, including groups.
    private(set) var paths: [SettingsPath] = []
    /// Whether the text ends with a line feed, or is one JSON object. Another text can be the beginning of a file that is
    /// being written, because a part of a YAML document can be a valid document.
    let isComplete: Bool

    /// Reads and parses the file. Throws an error with the key, or with the path if the file itself is unusable.
    init(path: String) throws(SettingsError) {
        let text: String
        let file = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
        let size = try? FileManager.default.attributesOfItem(atPath: file)[.size] as? Int  // an error is reported below
        guard size ?? 0 <= Self.maxBytes else {
            throw SettingsError(path, "has more than \(Self.maxBytes) bytes")
        }
        do {
            text = try String(contentsOfFile: path, encoding: .utf8)
        } catch {
            throw SettingsError(path, "cannot be read; the file must exist, be readable and be UTF-8")
        }
        try self.init(text: text, name: path)
    }

    /// Parses `text`. JSON is parsed as YAML, of which it is a subset (YAML 1.2 §1.3).
    init(text: String, name: String) throws(SettingsError) {
        isComplete = text.hasSuffix("\n") || text.hasPrefix("{") && text.hasSuffix("}")
        let root: Node?
        do {
            root = try Yams.compose(yaml: text)
        } catch {
            throw SettingsError(name, "is neither YAML nor JSON: \(Self.firstLine(of: error))")
        }
        guard let root, root.tag != Tag(.null) else { return }  // an empty file sets nothing
        guard let mapping = root.mapping else {
            throw SettingsError(name, "contains \(root.kindName) instead of settings")
        }
        try walk(mapping, below: [])
    }

    /// Visits a mapping and adds its values.
    private mutating func walk(_ mapping: Node.Mapping, below parents: [String]) throws(SettingsError) {
        for (key, node) in try Self.merged(mapping, at: parents) {
            let components = parents + [key.scalar?.string ?? "(\(key.kindName))"]
            switch try SettingsSchema.place(of: components) {
            case .group:
                paths.append(SettingsPath(components))  // so that an origin without settings is reported
                try walk(try Self.mapping(of: node, at: components), below: components)
            case .value(let isList):
                if let inner = node.mapping, SettingsSchema.isGroup(components) {
                    try walk(inner, below: components)
                } else {
                    try add(node, at: SettingsPath(components), isList: isList)
                }
            }
        }
    }

    /// Adds one value or list.
    private mutating func add(_ node: Node, at path: SettingsPath, isList: Bool) throws(SettingsError) {
        if isList {
            guard let sequence = node.sequence, sequence.allSatisfy({ $0.scalar != nil }) else {
                throw SettingsError(path.dotted, "is \(node.kindName), not a list of values")
            }
            values[path] = .list(sequence.compactMap { $0.scalar?.string })
        } else {
            guard let scalar = node.scalar, node.tag != Tag(.null) else {
                throw SettingsError(path.dotted, "is \(node.kindName), not a single value")
            }
            values[path] = .scalar(scalar.string)
        }
        paths.append(path)
    }

    /// The entries of a mapping with those of its merge key `<<`, a mapping or a list of mappings. The mapping's own
    /// entries take precedence, then those of an earlier mapping of the list ("Merge Key Language-Independent Type for
    /// YAML Version 1.1").
    private static func merged(_ mapping: Node.Mapping, at parents: [String]) throws(SettingsError) -> [(Node, Node)] {
        let own = mapping.filter { $0.key.tag != Tag(.merge) }.map { ($0.key, $0.value) }
        guard let merge = mapping.first(where: { $0.key.tag == Tag(.merge) })?.value else { return own }
        var entries = own
        var keys = Set(own.map(\.0))
        for node in merge.sequence.map({ Array($0) }) ?? [merge] {
            guard let inner = node.mapping else {
                throw SettingsError(
                    SettingsPath(parents + ["<<"]).dotted, "is \(node.kindName), not a mapping or a list of mappings")
            }
            for entry in try merged(inner, at: parents) where keys.insert(entry.0).inserted { entries.append(entry) }
        }
        return entries
    }

    private static func mapping(of node: Node, at components: [String]) throws(SettingsError) -> Node.Mapping {
        guard let mapping = node.mapping else {
            throw SettingsError(
                SettingsPath(components).dotted, "is \(node.kindName), not a group of settings")
        }
        return mapping
    }

    /// The first line of a parser error; the others show the source text.
    private static func firstLine(of error: any Error) -> String {
        String(describing: error).split(separator: "\n").first.map(String.init) ?? "unreadable"
    }
}

extension Node {
    /// The kind of the node with its article, for error messages.
    fileprivate var kindName: String {
        switch self {
        case .scalar where tag == Tag(.null): "empty"
        case .scalar: "a single value"
        case .mapping: "a mapping"
        case .sequence: "a list"
        case .alias: "an alias"
        }
    }
}
