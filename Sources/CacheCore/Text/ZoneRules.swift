/// The offsets of a time zone from UTC, read from a file of the tz database (TZif, RFC 8536).
package struct ZoneRules: Hashable, Sendable {
    /// UTC, which needs no file.
    package static let utc = ZoneRules(transitions: [], first: 0, rule: nil)

    /// An instant at which the offset changes.
    private struct Transition: Hashable {
        /// Seconds since 1970.
        let at: Int64
        let offset: Int
    }

    private let transitions: [Transition]
    /// The offset before the first transition.
    private let first: Int
    /// The offsets after the last transition.
    private let rule: PosixZone?

    private init(transitions: [Transition], first: Int, rule: PosixZone?) {
        (self.transitions, self.first, self.rule) = (transitions, first, rule)
    }

    /// Nil for bytes that are not a TZif file of version 2 or later.
    package init?(tzif bytes: [UInt8]) {
        // The block of version 1, with times of 32 bits, is skipped.
        guard let old = Header(bytes, at: 0), old.version >= UInt8(ascii: "2"),
            let header = Header(bytes, at: Header.size + old.bodySize(timeBytes: 4))
        else { return nil }
        var place = Header.size * 2 + old.bodySize(timeBytes: 4)
        guard header.typeCount > 0, place + header.bodySize(timeBytes: 8) <= bytes.count else { return nil }
        let times = (0..<header.timeCount).map { bytes.signed(at: place + $0 * 8, bytes: 8) }
        place += header.timeCount * 8
        let indices = bytes[place..<place + header.timeCount].map(Int.init)
        place += header.timeCount
        let offsets = (0..<header.typeCount).map { Int(bytes.signed(at: place + $0 * 6, bytes: 4)) }
        guard indices.allSatisfy({ $0 < offsets.count }), zip(times, times.dropFirst()).allSatisfy({ $0 < $1 }) else {
            return nil
        }
        place += header.bodySize(timeBytes: 8) - header.timeCount * 9
        let footer = bytes[place...]
        guard footer.first == UInt8(ascii: "\n"), let end = footer.dropFirst().firstIndex(of: UInt8(ascii: "\n")) else {
            return nil
        }
        let text = String(decoding: footer[(place + 1)..<end], as: UTF8.self)
        let rule = PosixZone(text)
        guard text.isEmpty || rule != nil else { return nil }
        self.init(
            transitions: zip(times, indices).map { Transition(at: $0, offset: offsets[$1]) }, first: offsets[0],
            rule: rule)
    }

    /// The seconds east of UTC at an instant, in seconds since 1970.
    package func offset(at seconds: Int64) -> Int {
        guard let last = transitions.last else { return rule?.offset(at: seconds) ?? first }
        if seconds >= last.at { return rule?.offset(at: seconds) ?? last.offset }
        var (low, high) = (0, transitions.count)
        while low < high {
            let middle = (low + high) / 2
            if transitions[middle].at <= seconds { low = middle + 1 } else { high = middle }
        }
        return low == 0 ? first : transitions[low - 1].offset
    }

    /// The instants at which clocks of the zone show a local time, in seconds since 1970 as if it were UTC. Two instants for a
    /// time that is shown twice. The instant of the change for a time that is skipped.
    package func instants(ofLocal local: Int64) -> (first: Int64, last: Int64) {
        let (before, after) = (offset(at: local - 86_400), offset(at: local + 86_400))
        let (early, late) = (local - Int64(max(before, after)), local - Int64(min(before, after)))
        let isEarly = offset(at: early) == max(before, after)
        let isLate = offset(at: late) == min(before, after)
        switch (isEarly, isLate) {
        case (true, true): return (early, late)
        case (true, false): return (early, early)
        case (false, true): return (late, late)
        case (false, false):
            // The clocks skip the time: the change lies between both readings.
            var (low, high) = (early, late)
            while low < high {
                let middle = low + (high - low) / 2
                if offset(at: middle) == after { high = middle } else { low = middle + 1 }
            }
            return (low, low)
        }
    }
}

/// The header of a block of a TZif file (RFC 8536 §3.1).
private struct Header {
    static let size = 44
    let version: UInt8
    let utcCount, wallCount, leapCount, timeCount, typeCount, textCount: Int

    init?(_ bytes: [UInt8], at place: Int) {
        guard place >= 0, bytes.count >= place + Self.size, bytes[place..<place + 4].elementsEqual("TZif".utf8) else {
            return nil
        }
        version = bytes[place + 4]
        let counts = (0..<6).map { Int(bytes.signed(at: place + 20 + $0 * 4, bytes: 4)) }
        guard counts.allSatisfy({ (0...100_000).contains($0) }) else { return nil }
        (utcCount, wallCount, leapCount) = (counts[0], counts[1], counts[2])
        (timeCount, typeCount, textCount) = (counts[3], counts[4], counts[5])
    }

    /// The size of the data behind the header.
    func bodySize(timeBytes: Int) -> Int {
        timeCount * (timeBytes + 1) + typeCount * 6 + textCount + leapCount * (timeBytes + 4) + wallCount + utcCount
    }
}

extension [UInt8] {
    /// A big-endian integer in two's complement.
    fileprivate func signed(at place: Int, bytes: Int) -> Int64 {
        let value = self[place..<place + bytes].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        let shift = UInt64(64 - bytes * 8)
        return Int64(bitPattern: value << shift) >> Int64(shift)
    }
}

extension ZoneRules {
    /// The local day of an instant, counted from 1970-01-01.
    func day(at seconds: Int64) -> Int64 {
        let local = seconds + Int64(offset(at: seconds))
        return (local >= 0 ? local : local - 86_399) / 86_400
    }
}
