import Configuration
import Foundation
import Yams

/// A YAML or JSON file of settings, every key of it known; its values are still text.
struct ConfigurationFile {
    private(set) var values: [AbsoluteConfigKey: ConfigValue] = [:]
    /// Every name in the file, groups too.
    private(set) var paths: [SettingsPath] = []

    /// Reads the file; throws what is wrong with it, with the key where there is one.
    init(path: String) throws(SettingsError) {
        let text: String
        do {
            text = try String(contentsOfFile: path, encoding: .utf8)
        } catch {
            throw SettingsError(path, "cannot be read (is it there, is it UTF-8?)")
        }
        try self.init(text: text, name: path)
    }

    /// Takes `text` apart: JSON is read as the YAML that it is (YAML 1.2 §1.3).
    init(text: String, name: String) throws(SettingsError) {
        let root: Node?
        do {
            root = try Yams.compose(yaml: text)
        } catch {
            throw SettingsError(name, "is neither YAML nor JSON: \(Self.firstLine(of: error))")
        }
        guard let root, root.tag != Tag(.null) else { return }  // an empty file says nothing
        guard let mapping = root.mapping else { throw SettingsError(name, "holds no settings, but \(root.kindName)") }
        try walk(mapping, below: [])
    }

    private mutating func walk(_ mapping: Node.Mapping, below parents: [String]) throws(SettingsError) {
        for (key, node) in mapping {
            let components = parents + [key.scalar?.string ?? "(\(key.kindName))"]
            switch try SettingsSchema.place(of: components) {
            case .group:
                paths.append(SettingsPath(components))  // an origin without settings is one that lacks its URL
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

    private mutating func add(_ node: Node, at path: SettingsPath, isList: Bool) throws(SettingsError) {
        let content: ConfigContent
        if isList {
            guard let sequence = node.sequence, sequence.allSatisfy({ $0.scalar != nil }) else {
                throw SettingsError(path.dotted, "is \(node.kindName), not a list of values")
            }
            content = .stringArray(sequence.compactMap { $0.scalar?.string })
        } else {
            guard let scalar = node.scalar, node.tag != Tag(.null) else {
                throw SettingsError(path.dotted, "is \(node.kindName), not one value")
            }
            content = .string(scalar.string)
        }
        values[path.absoluteKey] = ConfigValue(content, isSecret: SettingsSchema.isSecret(path))
        paths.append(path)
    }

    private static func mapping(of node: Node, at components: [String]) throws(SettingsError) -> Node.Mapping {
        guard let mapping = node.mapping else {
            throw SettingsError(
                SettingsPath(components).dotted, "is \(node.kindName), not a group of settings")
        }
        return mapping
    }

    private static func firstLine(of error: any Error) -> String {
        String(describing: error).split(separator: "\n").first.map(String.init) ?? "unreadable"
    }
}

extension Node {
    /// What stands there, with its article.
    fileprivate var kindName: String {
        switch self {
        case .scalar where tag == Tag(.null): "empty"
        case .scalar: "one value"
        case .mapping: "a mapping"
        case .sequence: "a list"
        case .alias: "an alias"
        }
    }
}
