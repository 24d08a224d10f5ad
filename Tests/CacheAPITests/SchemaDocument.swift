import CacheCore
import Foundation
import Yams

/// `openapi.yaml` as JSON, with a validator for its subset of JSON Schema.
struct SchemaDocument {
    let root: JSON

    /// The project's `openapi.yaml`.
    static func openAPI() throws -> SchemaDocument { try loaded.get() }

    /// Parsed once, because that takes a second without optimization.
    private static let loaded = Result {
        let file = URL(fileURLWithPath: #filePath).appendingPathComponent("../../../openapi.yaml").standardized
        let text = try String(contentsOf: file, encoding: .utf8)
        guard let node = try Yams.compose(yaml: text) else { throw CacheError(.internal, "openapi.yaml is empty.") }
        return SchemaDocument(root: try JSON(node))
    }

    func schema(_ name: String) -> JSON { root["components"]?["schemas"]?[name] ?? .null }

    func properties(of name: String) -> Set<String> { Self.keys(of: schema(name)["properties"] ?? .null) }

    static func keys(of json: JSON) -> Set<String> { Set(json.members.map(\.key)) }

    /// The operations of all paths. `parameters` is no operation; it applies to all operations of its path.
    var operations: [(method: String, path: String, statuses: [String])] {
        (root["paths"] ?? .null).members.flatMap { path in
            path.value.members.filter { $0.key != "parameters" }.map { operation in
                (operation.key.uppercased(), path.key, (operation.value["responses"] ?? .null).members.map(\.key))
            }
        }
    }

    /// The statuses that have a problem response.
    var problemStatuses: [Int] {
        (root["components"]?["responses"] ?? .null).members.compactMap { Int($0.key.dropFirst("Problem".count)) }
    }

    func faults(of value: JSON, in name: String) -> [String] { faults(of: value, schema(name), at: name) }

    /// Validates every example that has a schema.
    func checkExamples() -> (count: Int, faults: [String]) {
        var (count, faults): (Int, [String]) = (0, [])
        func walk(_ json: JSON, _ place: String) {
            if let schema = json["schema"], let example = json["example"] {
                count += 1
                faults += self.faults(of: example, schema, at: place)
            }
            if json["type"] != nil, case .array(let examples)? = json["examples"] {
                count += examples.count
                for example in examples { faults += self.faults(of: example, json, at: place) }
            }
            for member in json.members { walk(member.value, place + "/" + member.key) }
            if case .array(let values) = json { for value in values { walk(value, place) } }
        }
        walk(root, "")
        return (count, faults)
    }

    /// The schemas of all properties by dotted path; `isGroup` tells for which paths the properties inside are meant.
    func leaves(of name: String, isGroup: (String) -> Bool) -> [String: JSON] {
        func walk(_ schema: JSON, _ prefix: String) -> [String: JSON] {
            (schema["properties"] ?? .null).members.reduce(into: [:]) { leaves, member in
                let (path, property) = (prefix + member.key, resolved(member.value))
                if isGroup(path) {
                    leaves.merge(walk(property, path + ".")) { first, _ in first }
                } else {
                    leaves[path] = property
                }
            }
        }
        return walk(schema(name), "")
    }

    private func resolved(_ schema: JSON) -> JSON {
        guard case .string(let reference)? = schema["$ref"] else { return schema }
        return reference.split(separator: "/").dropFirst().reduce(root) { $0[String($1)] ?? .null }
    }

    private func faults(of value: JSON, _ schema: JSON, at place: String) -> [String] {
        let schema = resolved(schema)
        guard schema != .null else { return ["\(place): the schema is missing"] }
        for keyword in ["oneOf", "anyOf"] {
            guard case .array(let choices)? = schema[keyword] else { continue }
            let fitting = choices.count { faults(of: value, $0, at: place).isEmpty }
            if fitting == 0 || keyword == "oneOf" && fitting > 1 {
                return ["\(place): fits \(fitting) of \(keyword)"]
            }
        }
        if let types = schema["type"]?.alternatives, !types.contains(where: { value.isOf(type: $0) }) {
            return ["\(place): \(value.text) is not \(types)"]
        }
        if case .array(let choices)? = schema["enum"], !choices.contains(value) {
            return ["\(place): \(value.text) is not in the enum"]
        }
        if case .string(let pattern)? = schema["pattern"], let expression = try? Regex(pattern),
            value.text.dropFirst().dropLast().wholeMatch(of: expression) == nil
        {
            return ["\(place): \(value.text) does not match the pattern"]
        }
        if case .array(let values) = value, let items = schema["items"] {
            return values.flatMap { faults(of: $0, items, at: place + "[]") }
        }
        return value.members.isEmpty && schema["required"] == nil ? [] : objectFaults(value, schema, place)
    }

    private func objectFaults(_ value: JSON, _ schema: JSON, _ place: String) -> [String] {
        guard case .object(let members) = value else { return [] }
        let properties = schema["properties"] ?? .null
        let missing = (schema["required"]?.array ?? []).map(\.plain).filter { value[$0] == nil }
        return missing.map { "\(place): \($0) is missing" }
            + members.flatMap { member -> [String] in
                if let property = properties[member.key] {
                    return faults(of: member.value, property, at: place + "." + member.key)
                }
                switch schema["additionalProperties"] {
                case .bool(false)?: return ["\(place): \(member.key) is not a declared property"]
                case let other?: return faults(of: member.value, other, at: place + "." + member.key)
                case nil: return []
                }
            }
    }
}

extension JSON {
    var members: [Member] { if case .object(let members) = self { members } else { [] } }
    var array: [JSON] { if case .array(let values) = self { values } else { [] } }
    /// The types of a schema: `type` is a string or an array.
    fileprivate var alternatives: [String] {
        if case .string(let type) = self { [type] } else { array.map(\.plain) }
    }
    var plain: String { if case .string(let text) = self { text } else { "" } }

    fileprivate func isOf(type: String) -> Bool {
        switch (self, type) {
        case (.null, "null"), (.bool, "boolean"), (.integer, "integer"), (.integer, "number"), (.number, "number"),
            (.string, "string"), (.array, "array"), (.object, "object"):
            true
        default: false
        }
    }

    fileprivate init(_ node: Node) throws {
        switch node {
        case .mapping(let mapping):
            self = .object(try mapping.map { Member($0.key.string ?? "", try JSON($0.value)) })
        case .sequence(let values): self = .array(try values.map { try JSON($0) })
        default:
            if node.null != nil, node.tag == Tag(.null) || node.string == "null" {
                self = .null
            } else if node.scalar?.style != .plain {
                self = .string(node.string ?? "")
            } else if let value = node.bool {
                self = .bool(value)
            } else if let value = node.int {
                self = .integer(Int64(value))
            } else if let value = node.float {
                self = Int64(exactly: value).map(JSON.integer) ?? .number(value)
            } else {
                self = .string(node.string ?? "")
            }
        }
    }
}
