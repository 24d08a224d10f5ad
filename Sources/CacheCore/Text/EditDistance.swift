/// The similarity of names, for suggestions in messages.
package enum EditDistance {
    /// The name with the smallest distance, in any case of letters, if that is at most `limit`.
    package static func nearest(to name: String, among names: [String], limit: Int = 3) -> String? {
        let all = names.map { (name: $0, distance: between(name.lowercased(), $0.lowercased())) }
        return all.min { $0.distance < $1.distance }.flatMap { $0.distance <= limit ? $0.name : nil }
    }

    /// The number of insertions, deletions and substitutions (Levenshtein 1966).
    package static func between(_ left: String, _ right: String) -> Int {
        var row = Array(0...right.count)
        for (index, letter) in left.enumerated() {
            var diagonal = row[0]
            row[0] = index + 1
            for (column, other) in right.enumerated() {
                let above = row[column + 1]
                row[column + 1] = min(above + 1, row[column] + 1, diagonal + (letter == other ? 0 : 1))
                diagonal = above
            }
        }
        return row[right.count]
    }
}
