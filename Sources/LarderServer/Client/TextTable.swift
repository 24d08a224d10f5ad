/// A table for people: aligned columns, two blanks apart.
struct TextTable {
    /// A column with its title.
    struct Column {
        enum Alignment { case leading, trailing }

        let title: String
        let alignment: Alignment

        static func leading(_ title: String) -> Column { Column(title: title, alignment: .leading) }
        static func trailing(_ title: String) -> Column { Column(title: title, alignment: .trailing) }
    }

    private let columns: [Column]
    private let hasTitles: Bool
    private var rows: [[String]] = []
    /// The widths of the columns in the lines that were taken; empty: none was.
    private var takenWidths: [Int] = []

    init(_ columns: Column...) { self.init(columns) }

    init(_ columns: [Column]) {
        self.columns = columns
        hasTitles = true
    }

    /// A table of names and values, without titles.
    init() {
        columns = [.leading(""), .leading("")]
        hasTitles = false
    }

    /// Appends a row. Control characters in cells are replaced; missing cells are empty.
    mutating func add(_ cells: String...) { add(cells) }

    mutating func add(_ cells: [String]) {
        let missing = columns.count - cells.count
        rows.append(cells.map(PrintableText.of) + Array(repeating: "", count: max(0, missing)))
    }

    /// The lines, without blanks at their ends and without a line feed at the end.
    var text: String {
        let lines = (hasTitles ? [columns.map(\.title)] : []) + rows
        let widths = widths(of: lines)
        return lines.map { cells in line(cells, widths) }.joined(separator: "\n")
    }

    /// Removes the rows and returns their lines, for a long list that is printed while it is read; nil without rows. The titles
    /// precede the first lines; columns are never narrower than before.
    mutating func takeLines() -> String? {
        guard !rows.isEmpty else { return nil }
        let lines = (takenWidths.isEmpty ? [columns.map(\.title)] : []) + rows
        let widths = zip(widths(of: lines), takenWidths + Array(repeating: 0, count: columns.count)).map(max)
        (rows, takenWidths) = ([], widths)
        return lines.map { cells in line(cells, widths) }.joined(separator: "\n")
    }

    private func widths(of lines: [[String]]) -> [Int] {
        columns.indices.map { column in lines.map { $0[column].count }.max() ?? 0 }
    }

    private func line(_ cells: [String], _ widths: [Int]) -> String {
        var line = ""
        for (index, column) in columns.enumerated() {
            let blanks = String(repeating: " ", count: widths[index] - cells[index].count)
            if index > 0 { line += "  " }
            line += column.alignment == .leading ? cells[index] + blanks : blanks + cells[index]
        }
        while line.last == " " { line.removeLast() }
        return line
    }
}
