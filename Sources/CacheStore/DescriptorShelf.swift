import CacheCore
import Synchronization

/// Keeps the descriptors of the store's files few: each is open while it is used, and some longer, the least recently
/// used being closed first.
///
/// 1. Who borrows a descriptor counts as its borrower until it is given back, so that nothing is closed under a system
///    call, and no number that the kernel has given to another file is used.
/// 2. No lock is held while the disk is called: two who find the same file closed may both open it. The second one's
///    descriptor is closed again, and both use the first.
/// 3. A file whose name goes is kept open by then: `Store.unlink`.
/// 4. Where all are in use more than the limit are opened, since waiting for one another might never end; the surplus is
///    closed as soon as it is idle.
final class DescriptorShelf: Sendable {
    /// As many descriptors are open at most, where they are not all in use.
    let limit: Int
    /// Whether the file system tells which pages somebody refers to.
    let tellsReferences: Bool
    let spill: SpillAllowance
    private let disk: any Disk
    private let table: Mutex<DescriptorTable>

    init(limit: Int, disk: any Disk, tellsReferences: Bool, spill: SpillAllowance = SpillAllowance()) {
        self.limit = limit
        self.spill = spill
        self.tellsReferences = tellsReferences
        self.disk = disk
        table = Mutex(DescriptorTable(limit: limit))
    }

    /// How many descriptors are open, or just being opened.
    var openCount: Int { table.withLock { $0.openCount } }

    /// Opens a file that has no place here yet, to be given to `add`, or to `drop`. Where the process has no descriptor
    /// left, what is idle is closed, and then it is tried once more.
    func open(_ body: () throws(CacheError) -> Descriptor) throws(CacheError) -> Descriptor {
        change { $0.makeRoom() }
        do throws(CacheError) {
            do throws(CacheError) {
                return try body()
            } catch  where error.code == .overloaded {
                change { $0.takeIdle() }
                return try body()
            }
        } catch {
            table.withLock { $0.missed() }
            throw error
        }
    }

    /// Gives a file that `open` has opened its place. `isKept`: its descriptor stays open until `unkeep`.
    func add(_ descriptor: Descriptor, isKept: Bool) -> DescriptorTable.Place {
        table.withLock { $0.add(descriptor, keepers: isKept ? 1 : 0) }
    }

    /// Closes what `open` has opened and `add` has not seen.
    func drop(_ descriptor: Descriptor) {
        table.withLock { $0.missed() }
        disk.close(descriptor)
    }

    /// The file is used no more.
    func remove(_ place: DescriptorTable.Place) {
        change { table in [table.remove(place)].compactMap(\.self) }
    }

    /// The file's descriptor, until `giveBack`; opened by its path where it is closed. Blocks.
    func borrow(_ place: DescriptorTable.Place, path: String?) throws(CacheError) -> Descriptor {
        if let descriptor = borrowOpen(place) { return descriptor }
        guard let path else { throw CacheError(.internal, "A file without a name was closed.") }
        let opened = try open { () throws(CacheError) in try disk.open(path, .readWrite) }
        let (lent, surplus) = table.withLock { $0.borrow(place, opened: opened) }
        if let surplus { disk.close(surplus) }
        return lent
    }

    /// As `borrow`; nil where the file would have to be opened, which may mean waiting.
    func borrowOpen(_ place: DescriptorTable.Place) -> Descriptor? { table.withLock { $0.borrow(place) } }

    func giveBack(_ place: DescriptorTable.Place, wrote: Bool) {
        change { $0.giveBack(place, wrote: wrote) }
    }

    /// As `borrowOpen`, for longer than a call, until `takeBack`; nil also where too many are lent so.
    func lend(_ place: DescriptorTable.Place) -> Descriptor? { table.withLock { $0.lend(place) } }

    func takeBack(_ place: DescriptorTable.Place) { change { $0.takeBack(place) } }

    /// From now on the descriptor stays open, which is borrowed by the caller.
    func keep(_ place: DescriptorTable.Place) { table.withLock { $0.keep(place) } }

    func unkeep(_ place: DescriptorTable.Place) { change { $0.unkeep(place) } }

    /// How many writes a sync that begins now covers; nil where everything is synced.
    func unsyncedWrites(_ place: DescriptorTable.Place) -> Int? { table.withLock { $0.unsyncedWrites(place) } }

    /// A sync has covered so many writes: the descriptor need not stay open for them.
    func synced(_ place: DescriptorTable.Place, writes: Int) { change { $0.synced(place, writes: writes) } }

    /// Closes what a change leaves over.
    private func change(_ body: (inout DescriptorTable) -> [Descriptor]) {
        for descriptor in table.withLock({ body(&$0) }) { disk.close(descriptor) }
    }
}
