import CacheCore
import CacheEngine

/// The document with all figures of a table, in the order of the table, and with documents that are no figures.
struct FigureDocument<Root: Sendable>: Sendable {
    /// The document of one `Root`.
    struct Values: Encodable {
        fileprivate let document: FigureDocument
        fileprivate let root: Root

        func encode(to encoder: any Encoder) throws { try document.encode(root, to: encoder) }
    }

    private enum Content: Sendable {
        case value(@Sendable (Root) -> any Encodable)
        case object(FigureDocument)
    }

    private var members: [(key: String, content: Content)]

    init(_ figures: [Figure<Root>] = []) { self = Self.empty.adding(figures) }

    private init(members: [(key: String, content: Content)]) { self.members = members }

    private static var empty: FigureDocument { FigureDocument(members: []) }

    /// The same document, followed by all figures of a table.
    func adding(_ figures: [Figure<Root>]) -> FigureDocument {
        figures.flatMap(\.series).reduce(self) { document, series in
            let value = series.value
            return series.member.map { document.adding($0) { value($0) } } ?? document
        }
    }

    /// The same document, followed by a member at the dotted path.
    func adding(_ path: String, _ value: @escaping @Sendable (Root) -> any Encodable) -> FigureDocument {
        var document = self
        document.insert(at: path.split(separator: ".")[...], value)
        return document
    }

    func callAsFunction(of root: Root) -> Values { Values(document: self, root: root) }

    /// The dotted paths of all members.
    var paths: [String] {
        members.flatMap { key, content in
            switch content {
            case .value: [key]
            case .object(let object): object.paths.map { "\(key).\($0)" }
            }
        }
    }

    private func encode(_ root: Root, to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: JSONKey.self)
        for (key, content) in members {
            switch content {
            case .value(let value): try container.encode(value(root), forKey: JSONKey(key))
            case .object(let object): try container.encode(object(of: root), forKey: JSONKey(key))
            }
        }
    }

    private mutating func insert(at path: ArraySlice<Substring>, _ value: @escaping @Sendable (Root) -> any Encodable) {
        guard let key = path.first.map(String.init) else { return }
        guard path.count > 1 else { return members.append((key, .value(value))) }
        let index = members.firstIndex { $0.key == key } ?? members.endIndex
        var object = Self.empty
        if index < members.endIndex, case .object(let present) = members[index].content { object = present }
        object.insert(at: path.dropFirst(), value)
        if index < members.endIndex { members.remove(at: index) }
        members.insert((key, .object(object)), at: index)
    }
}

extension FigureValue: Encodable {
    /// The value in documents.
    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .integer(let value): try container.encode(value)
        case .number(let value): try container.encode(value)
        case .flag(let value): try container.encode(value)
        case .seconds(let value): try container.encode(value.documentSeconds)
        case .time(let value): try container.encode(value)
        case .none: try container.encodeNil()
        }
    }
}
