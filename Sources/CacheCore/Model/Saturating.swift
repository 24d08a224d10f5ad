extension Int64 {
    /// Truncates the fraction. A value out of range becomes the nearest `Int64`, NaN becomes 0.
    package init(saturating value: Double) {
        self = value.isNaN ? 0 : Int64(exactly: value.rounded(.towardZero)) ?? (value < 0 ? .min : .max)
    }
}
