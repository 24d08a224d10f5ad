/// A POSIX extended regular expression (IEEE 1003.1 §9.4) in the POSIX locale, matched against whole texts.
///
/// The matcher simulates Thompson's automaton (Regular Expression Search Algorithm, 1968), so the time is at most the
/// product of the lengths of text and automaton. A backtracking matcher could take exponential time for a pattern from
/// another signer.
///
/// Patterns with undefined meaning are refused: repeated or leading quantifiers, empty alternatives and groups, a
/// backslash before a letter or digit, collating symbols. So no pattern has another meaning here than for its signer.
struct ExtendedRegex: Sendable {
    /// A set of byte values.
    struct ByteSet: Hashable, Sendable {
        private var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)

        static func == (left: Self, right: Self) -> Bool { left.words == right.words }

        func hash(into hasher: inout Hasher) {
            hasher.combine(words.0)
            hasher.combine(words.1)
            hasher.combine(words.2)
            hasher.combine(words.3)
        }

        func contains(_ byte: UInt8) -> Bool {
            let bit: UInt64 = 1 << UInt64(byte & 63)
            return switch byte >> 6 {
            case 0: words.0 & bit != 0
            case 1: words.1 & bit != 0
            case 2: words.2 & bit != 0
            default: words.3 & bit != 0
            }
        }

        mutating func insert(_ byte: UInt8) {
            let bit: UInt64 = 1 << UInt64(byte & 63)
            switch byte >> 6 {
            case 0: words.0 |= bit
            case 1: words.1 |= bit
            case 2: words.2 |= bit
            default: words.3 |= bit
            }
        }

        mutating func invert() { words = (~words.0, ~words.1, ~words.2, ~words.3) }

        mutating func formIntersection(_ other: Self) {
            words = (
                words.0 & other.words.0, words.1 & other.words.1, words.2 & other.words.2, words.3 & other.words.3
            )
        }

        /// The set of all bytes.
        static let all = {
            var set = Self()
            set.invert()
            return set
        }()
    }

    /// An instruction of the automaton.
    enum Instruction: Sendable {
        case byte(ByteSet)
        case split(Int, Int)
        case jump(Int)
        /// The beginning of the text.
        case begin
        /// The end of the text.
        case end
        case accept
    }

    /// The maximum length of a pattern in bytes.
    static let patternLimit = 2048
    /// The maximum number of instructions after the expansion of intervals.
    static let stateLimit = 4096
    /// The maximum length of a text in bytes; longer ones do not match.
    static let textLimit = 16 * 1024
    /// The maximum number of steps of one match, about 10 ms; a match that needs more fails.
    static let stepLimit = 2_000_000

    private let program: [Instruction]

    /// Nil if the pattern is invalid, undefined in POSIX, or exceeds a limit.
    init?(_ pattern: String) {
        guard pattern.utf8.count <= Self.patternLimit else { return nil }
        var parser = ExtendedRegexParser(Array(pattern.utf8))
        guard let node = parser.parse(), let program = ExtendedRegexCompiler.compile(node) else { return nil }
        self.program = program
    }

    /// Whether the pattern matches the whole text.
    func matches(_ text: some Sequence<UInt8>) -> Bool {
        let text = Array(text)
        guard text.count <= Self.textLimit else { return false }
        var run = Run(program, length: text.count)
        run.start()
        for byte in text where !run.advance(byte) { return false }
        return run.isAccepting
    }

    /// The pattern for texts where encoded slashes and backslashes count as characters of their own. Only their
    /// escapes `%2F` and `%5C` in the pattern match them: `.` and `[^/]` do not. Nil if the pattern has no such escape.
    init?(hidingSlashesIn pattern: String) {
        let hidden = Self.hidingSlashes(in: pattern)
        guard !hidden.elementsEqual(pattern.utf8), hidden.count <= Self.patternLimit else { return nil }
        var parser = ExtendedRegexParser(hidden, matchesAnyOf: Self.visible)
        guard let node = parser.parse(), let program = ExtendedRegexCompiler.compile(node) else { return nil }
        self.program = program
    }

    /// The text with each encoded slash or backslash as one byte that does not occur in UTF-8.
    static func hidingSlashes(in text: String) -> [UInt8] {
        var (hidden, rest) = ([UInt8](), Array(text.utf8)[...])
        while let byte = rest.popFirst() {
            let escape = rest.prefix(2)
            guard byte == UInt8(ascii: "%"), escape.elementsEqual("2F".utf8) || escape.elementsEqual("5C".utf8) else {
                hidden.append(byte)
                continue
            }
            hidden.append(escape.first == UInt8(ascii: "2") ? 0xFE : 0xFF)
            rest = rest.dropFirst(2)
        }
        return hidden
    }

    /// All bytes except those of hidden slashes.
    private static let visible = {
        var set = ByteSet()
        for byte in UInt8(0)...0xFD { set.insert(byte) }
        return set
    }()

    /// A pattern that matches exactly `text`.
    static func escaped(_ text: String) -> String {
        var pattern: [UInt8] = []
        for byte in text.utf8 {
            if #".[\()*+?{|^$"#.utf8.contains(byte) { pattern.append(UInt8(ascii: "\\")) }
            pattern.append(byte)
        }
        return String(decoding: pattern, as: UTF8.self)
    }
}

extension ExtendedRegex {
    /// The set of active states while a text is read.
    private struct Run {
        private let program: [Instruction]
        private let length: Int
        private var position = 0
        private var active: [Int] = []
        /// The position where each state was added last; bounds the work per byte.
        private var addedAt: [Int]
        private(set) var isAccepting = false
        private var steps = 0

        init(_ program: [Instruction], length: Int) {
            self.program = program
            self.length = length
            addedAt = Array(repeating: -1, count: program.count)
        }

        mutating func start() { add([0]) }

        /// Consumes a byte; false if no state remains.
        mutating func advance(_ byte: UInt8) -> Bool {
            let current = active
            active.removeAll(keepingCapacity: true)
            position += 1
            isAccepting = false
            var next: [Int] = []
            for state in current {
                if case .byte(let set) = program[state], set.contains(byte) { next.append(state + 1) }
            }
            steps += current.count
            add(next)
            guard steps <= ExtendedRegex.stepLimit else {
                isAccepting = false
                return false
            }
            return !active.isEmpty || isAccepting
        }

        /// Adds states and those that they reach without a byte.
        private mutating func add(_ states: [Int]) {
            var pending = states
            while let state = pending.popLast() {
                guard addedAt[state] != position else { continue }
                addedAt[state] = position
                steps += 1
                switch program[state] {
                case .byte: active.append(state)
                case .jump(let target): pending.append(target)
                case .split(let first, let second):
                    pending.append(first)
                    pending.append(second)
                case .begin: if position == 0 { pending.append(state + 1) }
                case .end: if position == length { pending.append(state + 1) }
                case .accept: if position == length { isAccepting = true }
                }
            }
        }
    }
}
