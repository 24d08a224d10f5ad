/// Stores a large value outside of the type that contains it, so that copies of that type stay cheap. Each change makes
/// a new copy of the value.
@propertyWrapper
package struct Boxed<Value: Hashable & Sendable>: Hashable, Sendable, CustomStringConvertible {
    private final class Box: Sendable {
        let value: Value

        init(_ value: Value) { self.value = value }
    }

    private var box: Box

    package init(wrappedValue: Value) { box = Box(wrappedValue) }

    package var wrappedValue: Value {
        get { box.value }
        set { box = Box(newValue) }
    }

    package var description: String { "\(box.value)" }

    package static func == (left: Self, right: Self) -> Bool {
        left.box === right.box || left.box.value == right.box.value
    }

    package func hash(into hasher: inout Hasher) { box.value.hash(into: &hasher) }
}
