extension JSON {
    /// Returns the document with `patch` applied as a JSON merge patch (RFC 7396 §2): null removes a member.
    ///
    /// - Parameter whole: Names of top-level members that are replaced as a whole instead of merged.
    package func merged(with patch: JSON, whole: Set<String> = []) -> JSON {
        guard case .object(let changes) = patch else { return patch }
        var members: [Member] = if case .object(let present) = self { present } else { [] }
        for change in changes {
            let index = members.firstIndex { $0.key == change.key }
            guard change.value != .null else {
                if let index { members.remove(at: index) }
                continue
            }
            let present = whole.contains(change.key) ? nil : index.map { members[$0].value }
            let member = Member(change.key, (present ?? .null).merged(with: change.value))
            if let index { members[index] = member } else { members.append(member) }
        }
        return .object(members)
    }
}

extension JSON {
    /// Sets the member at `path`, and creates the objects above it. Other values on the way are replaced.
    package mutating func insert(_ value: JSON, at path: [String]) {
        guard let key = path.first else { return self = value }
        var members: [Member] = if case .object(let present) = self { present } else { [] }
        let index = members.firstIndex { $0.key == key }
        var inner = index.map { members[$0].value } ?? [:]
        inner.insert(value, at: Array(path.dropFirst()))
        if let index { members[index].value = inner } else { members.append(Member(key, inner)) }
        self = .object(members)
    }
}
