/// A row of small bars for the course of a value.
enum Sparkline {
    private static let bars: [Character] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"]

    /// The last `width` values as bars, the newest at the right end; blanks stand for missing values. The highest bar
    /// is `top`, by default the largest value that is shown.
    static func text(_ values: [Double], width: Int, top: Double? = nil) -> String {
        let shown = values.suffix(max(0, width))
        let top = top ?? shown.max() ?? 0
        let blanks = String(repeating: " ", count: max(0, width) - shown.count)
        return blanks + String(shown.map { bar($0, top: top) })
    }

    /// The lowest bar only for values that are zero or nearly zero.
    private static func bar(_ value: Double, top: Double) -> Character {
        guard value > 0, top > 0 else { return bars[0] }
        let step = (value / top * Double(bars.count)).rounded(.up)
        return bars[min(max(Int(step) - 1, 0), bars.count - 1)]
    }
}
