package import CacheCore

/// The declaration of one figure of `Root`: name, unit, help, kind, labels and source. The tables `all` contain all
/// declarations; JSON documents, `/metrics`, sums, minute records and the documentation are derived from them.
package struct Figure<Root: Sendable>: Sendable {
    /// A value with the labels that distinguish it.
    package typealias Sample = (labels: [(String, String)], value: Double)
    /// A distribution with the labels that distinguish it.
    package typealias Distribution = (labels: [(String, String)], histogram: HistogramSnapshot)

    /// One value of a figure.
    package struct Series: Sendable {
        /// The value of the figure's label; nil: the figure has none.
        package let label: String?
        /// The dotted path in JSON documents; nil: they do not contain the value.
        package let member: String?
        package let value: @Sendable (Root) -> FigureValue
        /// The counter; nil for values that are derived from others.
        let counter: (any WritableKeyPath<Root, Int64> & Sendable)?

        package init(
            _ label: String?, _ member: String?, _ value: @escaping @Sendable (Root) -> some FigureConvertible
        ) {
            (self.label, self.member, counter) = (label, member, nil)
            self.value = { value($0).figure }
        }

        /// A counter, which grows by `+=`.
        package init(
            _ label: String?, _ member: String, _ counter: any WritableKeyPath<Root, Int64> & Sendable
        ) {
            (self.label, self.member, self.counter) = (label, member, counter)
            value = { .integer($0[keyPath: counter]) }
        }
    }

    /// The origin of the values.
    package enum Source: Sendable {
        case series([Series])
        /// Values whose labels are known at run time only.
        case samples(@Sendable (Root) -> [Sample])
        case distributions(@Sendable (Root) -> [Distribution])
    }

    /// The name in `/metrics` without the prefix `larder_`; nil: only documents contain the figure.
    package let metric: String?
    package let kind: FigureKind
    package let unit: FigureUnit
    /// The HELP text of `/metrics`, without a full stop at the end. It states the cause and, where needed, the unit.
    package let help: String
    /// The names of the labels.
    package let labels: [String]
    package let source: Source

    package init(
        _ metric: String?, _ kind: FigureKind, _ unit: FigureUnit, _ help: String, by labels: [String] = [],
        _ source: Source
    ) {
        self.metric = metric
        self.kind = kind
        self.unit = unit
        self.help = help
        self.labels = labels
        self.source = source
    }

    /// A counter with one value.
    package init(
        _ metric: String?, _ unit: FigureUnit, _ help: String, _ member: String,
        _ counter: any WritableKeyPath<Root, Int64> & Sendable
    ) {
        self.init(metric, .counter, unit, help, .series([Series(nil, member, counter)]))
    }

    /// A figure with one value.
    package init(
        _ metric: String?, _ kind: FigureKind, _ unit: FigureUnit, _ help: String, _ member: String?,
        _ value: @escaping @Sendable (Root) -> some FigureConvertible
    ) {
        self.init(metric, kind, unit, help, .series([Series(nil, member, value)]))
    }

    /// The values with a place in documents or a label of their own; none for ``Source/samples(_:)``.
    package var series: [Series] { if case .series(let series) = source { series } else { [] } }

    /// The same figure of `Whole`, which contains `Root` as its `part`; in documents below `group`.
    package func moved<Whole>(
        _ part: any KeyPath<Whole, Root> & Sendable, below group: String? = nil
    ) -> Figure<Whole> {
        let source: Figure<Whole>.Source =
            switch source {
            case .series(let series):
                .series(
                    series.map { series in
                        let member = series.member.map { (group.map { $0 + "." } ?? "") + $0 }
                        return Figure<Whole>.Series(series.label, member) { series.value($0[keyPath: part]) }
                    })
            case .samples(let samples): .samples { samples($0[keyPath: part]) }
            case .distributions(let distributions): .distributions { distributions($0[keyPath: part]) }
            }
        return Figure<Whole>(metric, kind, unit, help, by: labels, source)
    }

    /// The samples of `root`.
    package func samples(of root: Root) -> [Sample] {
        switch source {
        case .series(let series):
            series.map { series in
                (series.label.map { [(labels.last ?? "", $0)] } ?? [], series.value(root).number)
            }
        case .samples(let samples): samples(root)
        case .distributions: []
        }
    }
}

/// Whether a figure only grows, goes up and down, or is a distribution.
package enum FigureKind: String, Sendable { case counter, gauge, histogram }

/// The unit of a figure.
package enum FigureUnit: String, Sendable {
    case count, bytes, seconds, ratio
    /// 1 or 0; in JSON documents true or false.
    case flag
    /// A Unix time; in JSON documents RFC 3339.
    case time
    case bytesPerSecond = "bytes per second"
}

/// A value of a figure.
package enum FigureValue: Hashable, Sendable {
    case integer(Int64)
    case number(Double)
    case flag(Bool)
    case seconds(Duration)
    case time(Timestamp)
    /// Null in documents, +Inf in `/metrics`: not defined, or without a limit.
    case none

    /// The value in `/metrics`.
    package var number: Double {
        switch self {
        case .integer(let value): Double(value)
        case .number(let value): value
        case .flag(let value): value ? 1 : 0
        case .seconds(let value): value.inSeconds
        case .time(let value): Double(value.milliseconds) / 1000
        case .none: .infinity
        }
    }
}

/// A type whose values are values of figures.
package protocol FigureConvertible: SendableMetatype {
    var figure: FigureValue { get }
}

extension FigureValue: FigureConvertible {
    package var figure: FigureValue { self }
}
extension Int64: FigureConvertible {
    package var figure: FigureValue { .integer(self) }
}
extension Int: FigureConvertible {
    package var figure: FigureValue { .integer(Int64(self)) }
}
extension Double: FigureConvertible {
    package var figure: FigureValue { .number(self) }
}
extension Bool: FigureConvertible {
    package var figure: FigureValue { .flag(self) }
}
extension Duration: FigureConvertible {
    package var figure: FigureValue { .seconds(self) }
}
extension Timestamp: FigureConvertible {
    package var figure: FigureValue { .time(self) }
}
extension Optional: FigureConvertible where Wrapped: FigureConvertible {
    package var figure: FigureValue { map(\.figure) ?? .none }
}
