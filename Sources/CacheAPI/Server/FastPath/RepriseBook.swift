import CacheCore
import NIOCore
import Synchronization

/// The reprises of one event loop, and the memory they are written into.
final class RepriseBook {
    private var reprises: [Int: Reprise] = [:]
    private var free: [ByteBuffer] = []
    private var name: RequestName
    /// As many are kept; then all are forgotten.
    private static let mostReprises = 2048
    private static let mostBuffers = 64

    init(chance: any Chance) { name = RequestName(chance) }

    /// What another request is called.
    func nextName() -> RequestName {
        name.number &+= 1
        return name
    }

    subscript(question: RepriseQuestion) -> Reprise? {
        guard let reprise = reprises[question.hash], reprise.question.isSame(as: question) else { return nil }
        return reprise
    }

    func keep(_ reprise: Reprise) {
        if reprises.count >= Self.mostReprises { reprises = [:] }
        reprises[reprise.question.hash] = reprise
    }

    func forget(_ reprise: Reprise) { reprises[reprise.question.hash] = nil }

    /// A buffer without bytes.
    func takeBuffer() -> ByteBuffer {
        guard var buffer = free.popLast() else { return ByteBufferAllocator().buffer(capacity: Reprise.bufferBytes) }
        // Not sooner: whoever gave it back still had it, and a buffer that others have is emptied by making another.
        buffer.clear()
        return buffer
    }

    /// Nobody needs its bytes any more.
    func giveBack(_ buffer: ByteBuffer) { if free.count < Self.mostBuffers { free.append(buffer) } }
}

@available(*, unavailable)
extension RepriseBook: Sendable {}

/// The book of each event loop.
final class RepriseBooks: Sendable {
    private let chance: any Chance
    private let books = Mutex<[ObjectIdentifier: NIOLoopBound<RepriseBook>]>([:])

    init(chance: any Chance) { self.chance = chance }

    /// Called on `eventLoop`.
    func book(of eventLoop: any EventLoop) -> RepriseBook {
        let bound = books.withLock { books in
            let known =
                books[ObjectIdentifier(eventLoop)] ?? NIOLoopBound(RepriseBook(chance: chance), eventLoop: eventLoop)
            books[ObjectIdentifier(eventLoop)] = known
            return known
        }
        return bound.value
    }
}

/// What a request is called: as an identifier that chance gives, for less. Half of it is chance's, the other one a number.
struct RequestName {
    private let half: [UInt8]
    var number: UInt64 = 0

    fileprivate init(_ chance: any Chance) { half = Array(chance.identifier().utf8.prefix(16)) }

    var text: String {
        String(unsafeUninitializedCapacity: 32) { write(to: UnsafeMutableRawBufferPointer($0)[...]) }
    }

    /// Writes 32 characters, and answers how many.
    func write(to space: Slice<UnsafeMutableRawBufferPointer>) -> Int {
        let space = UnsafeMutableRawBufferPointer(rebasing: space)
        space.copyBytes(from: half)
        // Odd: no two numbers have the same product.
        let mixed = number &* 0x9E37_79B9_7F4A_7C15
        for place in 0..<16 {
            let digit = UInt8(truncatingIfNeeded: mixed >> UInt64(60 - 4 * place)) & 15
            space[half.count + place] = digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") - 10 + digit
        }
        return half.count + 16
    }
}
