/// The members of `Accept` or `Accept-Encoding` with their weights (RFC 9110 §12.4.2).
package struct WeightedMembers: Sendable {
    /// By the lower-case name; parameters other than the weight do not count.
    private let weights: [String: Double]

    /// - Parameter values: All values of the field.
    package init(_ values: [String]) {
        var weights: [String: Double] = [:]
        for member in values.flatMap({ FieldText.members(of: $0) }) {
            let parts = member.split(separator: ";").map { FieldText.lowered(FieldText.trimmed($0)) }
            guard let name = parts.first, !name.isEmpty else { continue }
            let weight = parts.dropFirst().first { $0.hasPrefix("q=") }.map { Double($0.dropFirst(2)) ?? 0 } ?? 1
            weights[name] = max(weights[name] ?? 0, weight)
        }
        self.weights = weights
    }

    /// The weight of a name; 0: it is not acceptable. Nil: the field does not name it.
    package func weight(of name: String) -> Double? { weights[name] }

    /// The weight of a media type, which the field can also name by a wildcard (RFC 9110 §12.5.1).
    private func weight(ofType type: String) -> Double {
        let group = type.prefix { $0 != "/" }
        return weights[type] ?? weights["\(group)/*"] ?? weights["*/*"] ?? 0
    }

    /// Whether the field names a media type itself, and gives it no lower weight than another one.
    package func prefers(_ type: String, over other: String) -> Bool {
        guard let weight = weights[type], weight > 0 else { return false }
        return weight >= self.weight(ofType: other)
    }
}
