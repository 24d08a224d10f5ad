import CacheCore
import Synchronization

/// Keeps the descriptors of the store's files few: each is open while it is used, and some longer. Which of those goes first
/// a hand decides that goes round them, and spares what was used since it last came by (the CLOCK of Corbató, 1968): who
/// uses a file that is open changes nothing but that file's place.
///
/// 1. Who borrows a descriptor counts as its borrower until it is given back, so that nothing is closed under a system
///    call, and no number that the kernel has given to another file is used.
/// 2. No lock is held while the disk is called: two who find the same file closed may both open it. The second one's
///    descriptor is closed again, and both use the first.
/// 3. A file whose name goes is kept open by then: `Store.unlink`.
/// 4. Where all are in use more than the limit are opened, since waiting for one another might never end; what is given
///    back then is closed.
final class DescriptorShelf: Sendable {
    /// One file's.
    final class Place: Sendable {
        fileprivate let slot: Mutex<DescriptorSlot>

        fileprivate init(_ slot: DescriptorSlot) { self.slot = Mutex(slot) }
    }

    /// The places that have a descriptor, in a circle. Its lock may be taken under a place's, never the other way round.
    struct Circle {
        fileprivate var places: [Place] = []
        private var numbers: [ObjectIdentifier: Int] = [:]
        private var hand = 0
    }

    /// As many descriptors are open at most, where they are not all in use.
    let limit: Int
    /// Whether the file system tells which pages somebody refers to.
    let tellsReferences: Bool
    let spill: SpillAllowance
    private let disk: any Disk
    let circle = Mutex(Circle())
    /// Descriptors that are open, or just being opened.
    private let open = Atomic(0)
    /// Files whose descriptors are lent for longer than a call.
    private let lent = Atomic(0)

    init(limit: Int, disk: any Disk, tellsReferences: Bool, spill: SpillAllowance = SpillAllowance()) {
        self.limit = limit
        self.spill = spill
        self.tellsReferences = tellsReferences
        self.disk = disk
    }

    /// How many descriptors are open, or just being opened.
    var openCount: Int { open.load(ordering: .relaxed) }

    /// Opens a file that has no place here yet, to be given to `add`, or to `drop`. Where the process has no descriptor
    /// left, what is idle is closed, and then it is tried once more.
    func open(_ body: () throws(CacheError) -> Descriptor) throws(CacheError) -> Descriptor {
        makeRoom()
        open.add(1, ordering: .relaxed)
        do throws(CacheError) {
            do throws(CacheError) {
                return try body()
            } catch  where error.code == .overloaded {
                closeIdle()
                return try body()
            }
        } catch {
            open.subtract(1, ordering: .relaxed)
            throw error
        }
    }

    /// Gives a file that `open` has opened its place. `isKept`: its descriptor stays open until `unkeep`.
    func add(_ descriptor: Descriptor, isKept: Bool) -> Place {
        let place = Place(DescriptorSlot(descriptor, keepers: isKept ? 1 : 0))
        circle.withLock { $0.add(place) }
        return place
    }

    /// Closes what `open` has opened and `add` has not seen.
    func drop(_ descriptor: Descriptor) { close(descriptor) }

    /// The file is used no more.
    func remove(_ place: Place) {
        closeDescriptor(of: place) { $0.take() }
    }

    /// The file's descriptor, until `giveBack`; opened by its path where it is closed. Blocks.
    func borrow(_ place: Place, path: String?) throws(CacheError) -> Descriptor {
        if let descriptor = borrowOpen(place) { return descriptor }
        guard let path else { throw CacheError(.internal, "A file without a name was closed.") }
        let opened = try open { () throws(CacheError) in try disk.open(path, .readWrite) }
        let (lent, surplus) = place.slot.withLock { slot in
            let (lent, surplus) = slot.borrow(opened: opened)
            if surplus == nil { circle.withLock { $0.add(place) } }
            return (lent, surplus)
        }
        close(surplus)
        return lent
    }

    /// As `borrow`; nil where the file would have to be opened, which may mean waiting.
    func borrowOpen(_ place: Place) -> Descriptor? { place.slot.withLock { $0.borrow() } }

    func giveBack(_ place: Place, wrote: Bool) { change(place) { $0.giveBack(wrote: wrote) } }

    /// As `borrowOpen`, for longer than a call, until `takeBack`; nil also where half of the limit is lent so: the others are
    /// for those who need one for a moment.
    func lend(_ place: Place) -> Descriptor? {
        place.slot.withLock { slot in
            if slot.loans == 0, lent.add(1, ordering: .relaxed).newValue > max(1, limit / 2) || slot.descriptor == nil {
                lent.subtract(1, ordering: .relaxed)
                return nil
            }
            return slot.lend()
        }
    }

    func takeBack(_ place: Place) {
        change(place) { slot in
            slot.takeBack()
            if slot.loans == 0 { lent.subtract(1, ordering: .relaxed) }
        }
    }

    /// From now on the descriptor stays open, which is borrowed by the caller.
    func keep(_ place: Place) { place.slot.withLock { $0.keep() } }

    func unkeep(_ place: Place) { change(place) { $0.unkeep() } }

    /// How many writes a sync that begins now covers; nil where everything is synced.
    func unsyncedWrites(_ place: Place) -> Int? { place.slot.withLock { $0.unsyncedWrites } }

    /// A sync has covered so many writes: the descriptor need not stay open for them.
    func synced(_ place: Place, writes: Int) { change(place) { $0.synced(writes: writes) } }

    /// Closes the descriptor where the change leaves it idle and there are too many.
    private func change(_ place: Place, _ body: (inout DescriptorSlot) -> Void) {
        closeDescriptor(of: place) { slot in
            body(&slot)
            return openCount > limit ? slot.takeIfIdle() : nil
        }
    }

    /// Closes what `body` takes.
    private func closeDescriptor(of place: Place, _ body: (inout DescriptorSlot) -> Descriptor?) {
        let taken = place.slot.withLock { slot in
            let taken = body(&slot)
            if taken != nil { circle.withLock { $0.remove(place) } }
            return taken
        }
        close(taken)
    }

    private func close(_ descriptor: Descriptor?) {
        guard let descriptor else { return }
        open.subtract(1, ordering: .relaxed)
        disk.close(descriptor)
    }

    /// Closes what the hand finds until there is room for one more, going round twice at most, and not for long: where many
    /// are in use, the next one goes on from there.
    private func makeRoom() {
        guard openCount >= limit else { return }
        var steps = min(2 * circle.withLock { $0.places.count }, Self.mostSteps)
        while openCount >= limit, steps > 0, let place = circle.withLock({ $0.next() }) {
            closeDescriptor(of: place) { $0.pass() }
            steps -= 1
        }
    }

    private static let mostSteps = 256

    private func closeIdle() {
        for place in circle.withLock({ $0.places }) { closeDescriptor(of: place) { $0.takeIfIdle() } }
    }
}

extension DescriptorShelf.Circle {
    fileprivate mutating func add(_ place: DescriptorShelf.Place) {
        numbers[ObjectIdentifier(place)] = places.count
        places.append(place)
    }

    fileprivate mutating func remove(_ place: DescriptorShelf.Place) {
        guard let number = numbers.removeValue(forKey: ObjectIdentifier(place)), let last = places.popLast(),
            last !== place
        else { return }
        places[number] = last
        numbers[ObjectIdentifier(last)] = number
    }

    fileprivate mutating func next() -> DescriptorShelf.Place? {
        guard !places.isEmpty else { return nil }
        hand = (hand + 1) % places.count
        return places[hand]
    }
}
