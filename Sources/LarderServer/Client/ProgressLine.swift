/// One line of progress: a bar, the share that is done, and figures, fitted to the width of the terminal.
struct ProgressLine: Hashable {
    /// The share that is done, 0 to 1; nil while the whole is unknown.
    var share: Double?
    /// Figures in descending importance. The last ones are left out in a narrow terminal.
    var figures: [String]

    init(share: Double?, figures: [String]) {
        self.share = share
        self.figures = figures
    }

    /// The progress over bytes, for example `1.5 GiB of 12.0 GiB verified`; `whole` is nil while it is unknown.
    init(bytes: Int64, of whole: Int64?, verb: String) {
        let sum = whole.map { " of \(FigureText.bytes($0))" } ?? ""
        let share = whole.map { $0 > 0 ? min(1, Double(bytes) / Double($0)) : 1 }
        self.init(share: share, figures: ["\(FigureText.bytes(bytes))\(sum) \(verb)"])
    }

    private static let longestBar = 30
    private static let shortestBar = 10

    /// The line with at most `columns` characters.
    func text(columns: Int) -> String {
        let percent = share.map { Self.percent($0) }
        let start = percent.map { $0 + "  " } ?? ""
        // Two brackets and two blanks surround the bar.
        let least = start.count + Self.shortestBar + 4
        guard columns >= least + (figures.first?.count ?? 0) else {
            return String((start + (figures.first ?? "")).prefix(max(0, columns)))
        }
        var text = start
        for (index, figure) in figures.enumerated() {
            let next = text + (index > 0 ? "  " : "") + figure
            guard next.count + Self.shortestBar + 4 <= columns else { break }
            text = next
        }
        let bar = min(Self.longestBar, columns - text.count - 4)
        return "[\(Self.bar(share ?? 0, width: bar))]  \(text)"
    }

    /// The line for a log: no bar, and all figures.
    var plain: String {
        ((share.map { [Self.percent($0).drop { $0 == " " }.description] } ?? []) + figures).joined(separator: ", ")
    }

    /// Full blocks for the share that is done. The bar is full only at the end.
    static func bar(_ share: Double, width: Int) -> String {
        let filled = Int((min(max(share, 0), 1) * Double(width)).rounded(.down))
        return String(repeating: "█", count: filled) + String(repeating: "░", count: width - filled)
    }

    /// The share in whole percent, rounded down, three digits wide.
    private static func percent(_ share: Double) -> String {
        let whole = String(Int((min(max(share, 0), 1) * 100).rounded(.down)))
        return String(repeating: " ", count: 3 - whole.count) + whole + " %"
    }
}
