extension Int64 {
    /// The number without its fraction; what does not fit is the nearest that does, and what is no number 0.
    package init(saturating value: Double) {
        self = value.isNaN ? 0 : Int64(exactly: value.rounded(.towardZero)) ?? (value < 0 ? .min : .max)
    }
}
