import CacheCore
import CacheEngine

/// The document with all figures of a table, in the order of the table.
struct FigureDocument<Root: Sendable>: Sendable {
    /// A member: a value, or an object of members.
    private enum Content: Sendable {
        case value(@Sendable (Root) -> FigureValue)
        case object(FigureDocument)
    }

    private var members: [(key: String, content: Content)] = []

    init(_ figures: [Figure<Root>]) {
        for series in figures.flatMap(\.series) {
            if let member = series.member { insert(series.value, at: member.split(separator: ".")[...]) }
        }
    }

    /// The members of the document of `root`.
    func members(of root: Root) -> [JSON.Member] {
        members.map { key, content in
            switch content {
            case .value(let value): JSON.Member(key, value(root).json)
            case .object(let object): JSON.Member(key, .object(object.members(of: root)))
            }
        }
    }

    private mutating func insert(_ value: @escaping @Sendable (Root) -> FigureValue, at path: ArraySlice<Substring>) {
        guard let key = path.first.map(String.init) else { return }
        guard path.count > 1 else { return members.append((key, .value(value))) }
        let index = members.firstIndex { $0.key == key } ?? members.endIndex
        var object = FigureDocument([])
        if index < members.endIndex, case .object(let present) = members[index].content { object = present }
        object.insert(value, at: path.dropFirst())
        if index < members.endIndex { members.remove(at: index) }
        members.insert((key, .object(object)), at: index)
    }
}

extension FigureValue {
    /// The value in documents.
    fileprivate var json: JSON {
        switch self {
        case .integer(let value): .integer(value)
        case .number(let value): .number(value)
        case .flag(let value): .bool(value)
        case .seconds(let value): .seconds(value)
        case .time(let value): .instant(value)
        case .none: .null
        }
    }
}
