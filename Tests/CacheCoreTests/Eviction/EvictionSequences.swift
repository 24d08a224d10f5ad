@testable import CacheCore

/// Short request sequences with the expected outcomes under several policies.
struct Sequence: Sendable {
    enum Policy: Sendable {
        case fifo, lru, sieve, lfu, gdsf
        /// S3-FIFO with promotion after two reads, with and without the warm start.
        case s3fifo, s3fifoCold
        /// Cold S3-FIFO with rejection of segments that are not smaller than the small queue.
        case s3fifoRefusing

        func make(capacityBytes: Int64) -> any EvictionPolicy {
            switch self {
            case .fifo, .lru: LRUPolicy(capacityBytes: capacityBytes)
            case .sieve: SievePolicy(capacityBytes: capacityBytes)
            case .lfu: PriorityPolicy(capacityBytes: capacityBytes, weight: .reads, isAging: false)
            case .gdsf: PriorityPolicy(capacityBytes: capacityBytes, weight: .readsPerMegabyte)
            case .s3fifo: S3FIFOPolicy(capacityBytes: capacityBytes, rules: .init(promotionReads: 2))
            case .s3fifoCold, .s3fifoRefusing:
                S3FIFOPolicy(capacityBytes: capacityBytes, rules: .init(promotionReads: 2, startsWarm: false))
            }
        }
    }

    let capacity: Int64
    /// Words of the form `name:bytes`. Later requests of a name have the size of the first; the default size is 1.
    let requests: String
    /// One word for each request: `+` is a hit, `-` a miss, `x` a rejection, and names are the victims of a miss.
    let outcomes: [(policy: Policy, text: String)]

    /// Checked against libCacheSim 0.3.5, except GDSF and the cold S3-FIFO, which are computed by hand.
    static let all: [Sequence] = [
        Sequence(
            capacity: 3, requests: "A B C A D B E A C F A",
            outcomes: [
                (.lru, "- - - + B C A D B E +"),
                (.fifo, "- - - + A + B C D E +"),
                (.lfu, "- - - + B C D + B E +"),
                (.sieve, "- - - + B C D + B E +"),
                (.gdsf, "- - - + B C A D B E +"),
            ]),
        Sequence(
            capacity: 4, requests: "A B A B S1 S2 S3 S4 S5 A B",
            outcomes: [
                (.lru, "- - + + - - A B S1 S2 S3"),
                (.fifo, "- - + + - - A B S1 S2 S3"),
                (.lfu, "- - + + - - S1 S2 S3 + +"),
                (.sieve, "- - + + - - S1 S2 S3 + +"),
            ]),
        Sequence(
            capacity: 4, requests: "A B C D A C E F G A C D H A",
            outcomes: [
                (.sieve, "- - - - + + B D E + + F G +"),
                (.lru, "- - - - + + B D A C E F G +"),
            ]),
        Sequence(
            capacity: 20, requests: "A A A B B C D E F G H I J K L M N O P Q R S T U A B C V",
            outcomes: [
                (.s3fifoCold, "- + + - + - - - - - - - - - - - - - - - - - - B + C D E"),
                (.s3fifo, "- + + - + - - - - - - - - - - - - - - - - - - B + C D U"),
            ]),
        Sequence(
            capacity: 110,
            requests: "A:10 B:10 C:10 D:10 E:10 F:10 G:10 H:10 I:10 J:10 K:10 L:10 M:10 A B C A A N:10 O:10 "
                + "P:10 Q:10 A B R:10 B B S:10 T:10 U:10 A B",
            outcomes: [
                (.s3fifoCold, "- - - - - - - - - - - A B C D E + + F G H I + + J + + K L M + +"),
                (.s3fifo, "- - - - - - - - - - - A B L C D + + M C N O + + P + + Q R S + +"),
            ]),
        Sequence(
            capacity: 5, requests: "A B C D E A B C D E F G A H B I C J D K",
            outcomes: [
                (.sieve, "- - - - - + + + + + A B C D E F G A H B"),
                (.lfu, "- - - - - + + + + + A F G A + H + I + J"),
            ]),
        Sequence(
            capacity: 100, requests: "A:10 B:50 C:30 A D:40 B E:20 A F:60 A E G:100 A",
            outcomes: [
                (.lru, "- - - + B C A,D - B + + A,E,F G"),
                (.fifo, "- - - + A,B C D - B + + A,E,F G"),
                (.lfu, "- - - + B C D + B + + A,E,F G"),
                (.sieve, "- - - + B C D + B + + A,E,F G"),
                (.gdsf, "- - - + B C D + B + + A,E,F G"),
            ]),
        Sequence(
            capacity: 1000, requests: "A:60 B:60 L:150 L L A A C:90 D:100 D M:99 A N:50 B",
            outcomes: [
                (.s3fifoRefusing, "- - x x x + + - x x - + - +"),
                (.s3fifoCold, "- - - + + + + - - + - + - +"),
                (.lru, "- - - + + + + - - + - + - +"),
            ]),
        Sequence(
            capacity: 100, requests: "A:80 A A A S1:10 S2:10 S3:10 S4:10 S5:10 S6:10 S7:10 A",
            outcomes: [
                (.gdsf, "- + + + - - A - - - - S1,S2,S3,S4,S5"),
                (.lfu, "- + + + - - S1 S2 S3 S4 S5 +"),
            ]),
        Sequence(
            capacity: 100, requests: "A:30 B:30 C:30 A X:60 B Y:20 A Z:50 Y",
            outcomes: [
                (.lru, "- - - + B,C A X - B +"),
                (.fifo, "- - - + A,B C X - B +"),
                (.sieve, "- - - + B,C A X - B +"),
                (.lfu, "- - - + B,C X - + B +"),
                (.gdsf, "- - - + B,C X - + B +"),
            ]),
        Sequence(
            capacity: 1000,
            requests: "A:50 B:50 C:50 A A D:90 E:90 F:90 G:90 H:90 I:90 J:90 K:90 L:90 M:90 B A C N:90 B",
            outcomes: [
                (.s3fifoCold, "- - - + + - - - - - - - - - B C + D E +"),
                (.s3fifo, "- - - + + - - - - - - - - - B C + D M +"),
            ]),
    ]
}
