/// A dictionary with a bounded number of entries that drops the least recently used ones, in constant amortized time.
///
/// It keeps two generations of half the capacity. When the younger one is full, it becomes the older one, and the
/// former older one is dropped. A look-up moves an entry to the younger generation.
package struct BoundedTable<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private let half: Int
    private var young: [Key: Value] = [:]
    private var old: [Key: Value] = [:]

    /// - Parameter capacity: The maximum number of entries; at least 2.
    package init(capacity: Int) { half = max(1, capacity / 2) }

    /// The number of entries.
    package var count: Int { young.count + old.count }

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
            if let newValue { insert(newValue, for: key) } else { young.removeValue(forKey: key) }
        }
    }

    package mutating func removeAll() {
        young = [:]
        old = [:]
    }

    private mutating func insert(_ value: Value, for key: Key) {
        if young.count >= half, young[key] == nil {
            old = young
            young = [:]
        }
        young[key] = value
    }
}
