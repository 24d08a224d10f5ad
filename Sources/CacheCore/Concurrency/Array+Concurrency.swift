extension Array where Element: Sendable {
    /// The results of `transform` in the order of the elements. At most `width` elements are transformed at a time.
    ///
    /// Tasks that return `(index, result)` themselves are not safe: Swift 6.3 drops the stored index from an optimized
    /// task that returns such a pair in a typed `do`.
    package func mapConcurrently<Result: Sendable>(
        atMost width: Int, _ transform: @escaping @Sendable (Element) async -> Result
    ) async -> [Result] {
        await withTaskGroup(of: (Int, Result).self) { group in
            var results = [Result?](repeating: nil, count: count)
            for (index, element) in enumerated() {
                if index >= width, let (place, result) = await group.next() { results[place] = result }
                group.addTask { (index, await transform(element)) }
            }
            for await (place, result) in group { results[place] = result }
            return results.compactMap(\.self)
        }
    }
}
