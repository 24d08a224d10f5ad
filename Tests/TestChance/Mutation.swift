/// Valid texts with some bytes changed, duplicated, inserted or removed; a few inputs are long.
package struct Mutation {
    private static let alphabet = Array("0123456789-=,/*\"\\ %:;.\t+TZWG{}[]?#@&é\u{0}\r\n\u{7F}".utf8)
    private static let numbers = [
        "0", "-1", "9223372036854775807", "9223372036854775808", "18446744073709551616", "1e400", "0x10", "٣",
    ]
    /// One input in this many is long.
    private static let longEvery: UInt64 = 20_000
    package static let longBytes = 1 << 20

    /// The input of this number; it depends only on the number and the seed.
    package static func input(_ number: UInt64, seed: UInt64, from seeds: [[UInt8]]) -> [UInt8] {
        var random = SeededRandom(seed: seed ^ number &* 0xA24B_AED4_963E_E407)
        var bytes = seeds[Int.random(in: 0..<seeds.count, using: &random)]
        for _ in 0..<Int.random(in: 0..<8, using: &random) { change(&bytes, seeds, &random) }
        guard random.next() % longEvery == 0, !bytes.isEmpty else { return Array(bytes.prefix(4096)) }
        return lengthened(bytes, &random)
    }

    private static func change(_ bytes: inout [UInt8], _ seeds: [[UInt8]], _ random: inout SeededRandom) {
        let place = Int.random(in: 0...bytes.count, using: &random)
        let end = Int.random(in: place...bytes.count, using: &random)
        switch Int.random(in: 0..<8, using: &random) {
        case 0 where place < bytes.count: bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &random)
        case 1 where place < bytes.count: bytes.remove(at: place)
        case 2: bytes.removeSubrange(place..<end)
        case 3: bytes.insert(contentsOf: bytes[place..<end], at: place)
        case 4: bytes.insert(contentsOf: numbers[Int.random(in: 0..<numbers.count, using: &random)].utf8, at: place)
        case 5: bytes.append(contentsOf: seeds[Int.random(in: 0..<seeds.count, using: &random)])
        default: bytes.insert(alphabet[Int.random(in: 0..<alphabet.count, using: &random)], at: place)
        }
    }

    /// Repeats one piece of the input, which exposes quadratic parsers.
    private static func lengthened(_ bytes: [UInt8], _ random: inout SeededRandom) -> [UInt8] {
        let place = Int.random(in: 0..<bytes.count, using: &random)
        let end = Int.random(in: (place + 1)...bytes.count, using: &random)
        let (piece, room) = (bytes[place..<end], longBytes - bytes.count)
        guard room > 0 else { return bytes }
        var long = Array(bytes[..<place])
        while long.count < place + room { long += piece }
        return long + bytes[place...]
    }
}
