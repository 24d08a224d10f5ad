/// The syntax tree of a POSIX extended regular expression.
indirect enum ExtendedRegexNode: Sendable {
    case set(ExtendedRegex.ByteSet)
    case begin
    case end
    case sequence([ExtendedRegexNode])
    case alternatives([ExtendedRegexNode])
    /// `most`: nil for no limit.
    case repeated(ExtendedRegexNode, least: Int, most: Int?)
}

/// Recursive-descent parser of POSIX extended regular expressions. Each method returns nil for an invalid pattern.
struct ExtendedRegexParser {
    private static let depthLimit = 32
    /// `RE_DUP_MAX` of POSIX.
    private static let repetitionLimit = 255

    private let pattern: [UInt8]
    private var position = 0
    private var depth = 0

    /// The bytes that `.` and negated brackets can match.
    private let any: ExtendedRegex.ByteSet

    init(_ pattern: [UInt8], matchesAnyOf any: ExtendedRegex.ByteSet = .all) {
        self.pattern = pattern
        self.any = any
    }

    /// Parses the whole pattern.
    mutating func parse() -> ExtendedRegexNode? {
        guard let node = alternatives(), position == pattern.count else { return nil }
        return node
    }

    private var next: UInt8? { position < pattern.count ? pattern[position] : nil }

    private mutating func take(_ character: Unicode.Scalar) -> Bool {
        guard next == UInt8(ascii: character) else { return false }
        position += 1
        return true
    }

    private mutating func alternatives() -> ExtendedRegexNode? {
        var branches: [ExtendedRegexNode] = []
        repeat {
            guard let branch = sequence() else { return nil }
            branches.append(branch)
        } while take("|")
        return branches.count == 1 ? branches.first : .alternatives(branches)
    }

    /// One alternative; it must not be empty.
    private mutating func sequence() -> ExtendedRegexNode? {
        var nodes: [ExtendedRegexNode] = []
        while let byte = next, byte != UInt8(ascii: "|"), byte != UInt8(ascii: ")") {
            guard let node = piece() else { return nil }
            nodes.append(node)
        }
        return nodes.isEmpty ? nil : .sequence(nodes)
    }

    /// An atom with at most one quantifier.
    private mutating func piece() -> ExtendedRegexNode? {
        guard let (atom, isAnchor) = atom() else { return nil }
        guard let (least, most) = quantifier() else { return nil }
        guard least != 1 || most != 1 else { return atom }
        // A second quantifier, and one behind an anchor, are undefined.
        guard !isAnchor, !isQuantifier else { return nil }
        return .repeated(atom, least: least, most: most)
    }

    private var isQuantifier: Bool { next.map { "*+?{".utf8.contains($0) } ?? false }

    /// The bounds of a quantifier; 1 and 1 without one.
    private mutating func quantifier() -> (Int, Int?)? {
        if take("*") { return (0, nil) }
        if take("+") { return (1, nil) }
        if take("?") { return (0, 1) }
        guard take("{") else { return (1, 1) }
        guard let least = number() else { return nil }
        var most: Int? = least
        if take(",") {
            most = nil
            if next != UInt8(ascii: "}") {
                guard let bound = number(), bound >= least else { return nil }
                most = bound
            }
        }
        // An interval of exactly one is no quantifier, but must not hide another one.
        guard take("}"), !isQuantifier else { return nil }
        return (least, most)
    }

    /// A number up to 255.
    private mutating func number() -> Int? {
        var value: Int?
        while let byte = next, (48...57).contains(byte) {
            value = (value ?? 0) * 10 + Int(byte - 48)
            guard let current = value, current <= Self.repetitionLimit else { return nil }
            position += 1
        }
        return value
    }

    private mutating func atom() -> (ExtendedRegexNode, isAnchor: Bool)? {
        guard let byte = next, !isQuantifier else { return nil }
        position += 1
        switch byte {
        case UInt8(ascii: "("):
            depth += 1
            defer { depth -= 1 }
            guard depth <= Self.depthLimit, let node = alternatives(), take(")") else { return nil }
            return (node, false)
        case UInt8(ascii: "["): return bracket().map { (.set($0), false) }
        case UInt8(ascii: "."): return (.set(any), false)
        case UInt8(ascii: "^"): return (.begin, true)
        case UInt8(ascii: "$"): return (.end, true)
        case UInt8(ascii: "\\"):
            guard let escaped = next, !Self.isAlphanumeric(escaped) else { return nil }
            position += 1
            return (.set(Self.single(escaped)), false)
        default: return (.set(Self.single(byte)), false)
        }
    }

    private static func single(_ byte: UInt8) -> ExtendedRegex.ByteSet {
        var set = ExtendedRegex.ByteSet()
        set.insert(byte)
        return set
    }

    private static func isAlphanumeric(_ byte: UInt8) -> Bool {
        (48...57).contains(byte) || (97...122).contains(byte | 0x20)
    }
}

// MARK: Bracket expressions

extension ExtendedRegexParser {
    /// Parses a bracket expression behind its `[` (§9.3.5). A backslash is an ordinary character in it.
    private mutating func bracket() -> ExtendedRegex.ByteSet? {
        var set = ExtendedRegex.ByteSet()
        let isNegated = take("^")
        var isFirst = true
        while let byte = next {
            if byte == UInt8(ascii: "]"), !isFirst {
                position += 1
                if isNegated {
                    set.invert()
                    set.formIntersection(any)
                }
                return set
            }
            isFirst = false
            if byte == UInt8(ascii: "["), let kind = after(1), ".=:".utf8.contains(kind) {
                guard kind == UInt8(ascii: ":"), let members = characterClass() else { return nil }
                for member in members { set.insert(member) }
                continue
            }
            position += 1
            guard next == UInt8(ascii: "-"), let end = after(1), end != UInt8(ascii: "]") else {
                set.insert(byte)
                continue
            }
            // A range must not end with a class.
            guard end >= byte, end != UInt8(ascii: "[") else { return nil }
            position += 2
            for member in byte...end { set.insert(member) }
        }
        return nil
    }

    /// The byte at a distance from the next one.
    private func after(_ distance: Int) -> UInt8? {
        position + distance < pattern.count ? pattern[position + distance] : nil
    }

    /// Parses `[:name:]`; nil for an unknown class.
    private mutating func characterClass() -> [UInt8]? {
        let classes: [(String, (UInt8) -> Bool)] = [
            ("alnum", { Self.isAlphanumeric($0) }),
            ("alpha", { (97...122).contains($0 | 0x20) && $0 < 128 }),
            ("blank", { $0 == 0x20 || $0 == 0x09 }),
            ("cntrl", { $0 < 0x20 || $0 == 0x7F }),
            ("digit", { (48...57).contains($0) }),
            ("graph", { (0x21...0x7E).contains($0) }),
            ("lower", { (97...122).contains($0) }),
            ("print", { (0x20...0x7E).contains($0) }),
            ("punct", { (0x21...0x7E).contains($0) && !Self.isAlphanumeric($0) }),
            ("space", { $0 == 0x20 || (0x09...0x0D).contains($0) }),
            ("upper", { (65...90).contains($0) }),
            ("xdigit", { (48...57).contains($0) || (97...102).contains($0 | 0x20) }),
        ]
        for (name, contains) in classes {
            let text = Array("[:\(name):]".utf8)
            if pattern[position...].starts(with: text) {
                position += text.count
                return (0...UInt8.max).filter(contains)
            }
        }
        return nil
    }
}

/// Translates a syntax tree into the instructions of the automaton.
struct ExtendedRegexCompiler {
    /// The maximum number of visited nodes. An expansion such as `((a{0}){255}){255}` visits many without an
    /// instruction.
    private static let visitLimit = 65_536

    private var program: [ExtendedRegex.Instruction] = []
    private var visits = 0

    /// Nil if the automaton or its expansion exceeds a limit.
    static func compile(_ node: ExtendedRegexNode) -> [ExtendedRegex.Instruction]? {
        var compiler = ExtendedRegexCompiler()
        guard compiler.emit(node), compiler.append(.accept) != nil else { return nil }
        return compiler.program
    }

    /// Appends an instruction and returns its index; nil at the limit.
    private mutating func append(_ instruction: ExtendedRegex.Instruction) -> Int? {
        guard program.count < ExtendedRegex.stateLimit else { return nil }
        program.append(instruction)
        return program.count - 1
    }

    private mutating func emit(_ node: ExtendedRegexNode) -> Bool {
        visits += 1
        guard visits <= Self.visitLimit else { return false }
        switch node {
        case .set(let set): return append(.byte(set)) != nil
        case .begin: return append(.begin) != nil
        case .end: return append(.end) != nil
        case .sequence(let nodes):
            for node in nodes where !emit(node) { return false }
            return true
        case .alternatives(let nodes): return emit(alternatives: nodes)
        case .repeated(let node, let least, let most):
            for _ in 0..<least where !emit(node) { return false }
            guard let most else { return emit(loop: node) }
            return emit(optional: node, count: most - least)
        }
    }

    private mutating func emit(alternatives nodes: [ExtendedRegexNode]) -> Bool {
        var jumps: [Int] = []
        for (index, node) in nodes.enumerated() {
            guard index < nodes.count - 1 else {
                guard emit(node) else { return false }
                break
            }
            guard let split = append(.jump(0)), emit(node), let jump = append(.jump(0)) else { return false }
            program[split] = .split(split + 1, program.count)
            jumps.append(jump)
        }
        for jump in jumps { program[jump] = .jump(program.count) }
        return true
    }

    /// Zero or more repetitions.
    private mutating func emit(loop node: ExtendedRegexNode) -> Bool {
        guard let split = append(.jump(0)), emit(node), append(.jump(split)) != nil else { return false }
        program[split] = .split(split + 1, program.count)
        return true
    }

    /// Zero to `count` repetitions.
    private mutating func emit(optional node: ExtendedRegexNode, count: Int) -> Bool {
        var splits: [Int] = []
        for _ in 0..<count {
            guard let split = append(.jump(0)), emit(node) else { return false }
            splits.append(split)
        }
        for split in splits { program[split] = .split(split + 1, program.count) }
        return true
    }
}
