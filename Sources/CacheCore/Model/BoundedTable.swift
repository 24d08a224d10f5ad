/// A dictionary with a bounded weight that drops the least recently used entries, in constant amortized time.
///
/// It keeps two generations of half the capacity. When the younger one is full, it becomes the older one, and the
/// former older one is dropped. A look-up moves an entry to the younger generation.
package struct BoundedTable<Key: Hashable, Value> {
    private let half: Int
    private let weight: @Sendable (Value) -> Int
    private var young: [Key: Value] = [:]
    private var old: [Key: Value] = [:]
    /// The weight of the younger generation.
    private var youngWeight = 0

    /// - Parameters:
    ///   - capacity: The maximum sum of the weights; at least 2.
    ///   - weight: The weight of an entry; at least 1, and at most half the capacity.
    package init(capacity: Int, weight: @escaping @Sendable (Value) -> Int = { _ in 1 }) {
        half = max(1, capacity / 2)
        self.weight = weight
    }

    /// The number of entries.
    package var count: Int { young.count + old.count }

    /// All entries, the older generation first.
    package var entries: [(key: Key, value: Value)] { [old, young].flatMap { $0.map { ($0.key, $0.value) } } }

    /// The value of a key. Nil removes it.
    package subscript(key: Key) -> Value? {
        mutating get {
            if let value = young[key] { return value }
            guard let value = old.removeValue(forKey: key) else { return nil }
            insert(value, for: key)
            return value
        }
        set {
            old.removeValue(forKey: key)
            if let former = young.removeValue(forKey: key) { youngWeight -= weight(former) }
            if let newValue { insert(newValue, for: key) }
        }
    }

    package mutating func removeAll() { removeAll { _ in true } }

    /// Removes the selected entries.
    package mutating func removeAll(where isSelected: (Value) -> Bool) {
        old = old.filter { !isSelected($0.value) }
        young = young.filter { !isSelected($0.value) }
        youngWeight = young.values.reduce(0) { $0 + weight($1) }
    }

    /// Inserts an entry that the younger generation does not have.
    private mutating func insert(_ value: Value, for key: Key) {
        let added = weight(value)
        if youngWeight + added > half {
            (old, young, youngWeight) = (young, [:], 0)
        }
        young[key] = value
        youngWeight += added
    }
}

extension BoundedTable: Sendable where Key: Sendable, Value: Sendable {}
