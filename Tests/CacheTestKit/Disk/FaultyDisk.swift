package import CacheCore
package import CacheStore
import Synchronization

/// Disk that forwards calls to a base disk, records each call and injects scripted faults.
package final class FaultyDisk: Disk {
    package enum Call: String, Sendable, CaseIterable {
        case open, read, write, punch, truncate, sync, status, list, createDirectory, syncDirectory, rename, unlink
        case lock, freeBytes
    }

    /// A recorded call and its path.
    package struct Event: Hashable, Sendable {
        package var call: Call
        package var path: String
    }

    /// The effect of a fault on its call.
    fileprivate enum Effect {
        case failure(Int32)
        /// Reads or writes a single byte.
        case short
    }

    /// A scripted fault.
    fileprivate struct Fault {
        var call: Call?
        var effect: Effect
        /// The number of matching calls that still succeed.
        var remaining: Int
        var isLasting: Bool

        func isAbout(_ call: Call) -> Bool {
            if case .short = effect { return call == .read || call == .write }
            return self.call == nil || self.call == call
        }
    }

    fileprivate struct State {
        var events: [Event] = []
        var faults: [Fault] = []
        var paths: [Int32: String] = [:]
        var writeLimit = Int.max
        var readLimit = Int.max
        var freeBytes: Int64?
        var holes: HoleSupport?
    }

    private let base: any Disk
    private let state = Mutex(State())
    private let observer: @Sendable (Event) -> Void

    /// - Parameter observer: receives each call on the calling thread, before the call is made.
    package init(_ base: any Disk = SystemDisk(), observer: @escaping @Sendable (Event) -> Void = { _ in }) {
        self.base = base
        self.observer = observer
    }

    /// Fails the `count`-th call from now on with an errno. Without `call` every call counts. A lasting fault also
    /// fails all later calls.
    package func fail(_ call: Call? = nil, after count: Int = 1, with number: Int32, isLasting: Bool = false) {
        state.withLock {
            $0.faults.append(Fault(call: call, effect: .failure(number), remaining: count - 1, isLasting: isLasting))
        }
    }

    /// Limits the `count`-th read or write from now on to one byte.
    package func shorten(after count: Int) {
        state.withLock { $0.faults.append(Fault(effect: .short, remaining: count - 1, isLasting: false)) }
    }

    /// Limits every write to this many bytes.
    package func limitWrites(to count: Int) { state.withLock { $0.writeLimit = count } }

    /// Limits every read to this many bytes.
    package func limitReads(to count: Int) { state.withLock { $0.readLimit = count } }

    /// Overrides the number of free bytes; later punches add to it. nil restores the real value.
    package func pretendFree(_ bytes: Int64?) { state.withLock { $0.freeBytes = bytes } }

    /// Overrides the reported support for holes.
    package func pretendHoles(_ holes: HoleSupport) { state.withLock { $0.holes = holes } }

    package func heal() { state.withLock { $0.faults = [] } }

    /// All calls so far, including failed ones.
    package var events: [Event] { state.withLock { $0.events } }

    package func open(_ path: String, _ access: FileAccess) throws(CacheError) -> Descriptor {
        try note(.open, path)
        let descriptor = try base.open(path, access)
        state.withLock { $0.paths[descriptor.number] = path }
        return descriptor
    }

    package func openBelow(_ directory: String, _ path: String) throws(CacheError) -> Descriptor {
        try note(.open, directory + "/" + path)
        let descriptor = try base.openBelow(directory, path)
        state.withLock { $0.paths[descriptor.number] = directory + "/" + path }
        return descriptor
    }

    package func close(_ descriptor: Descriptor) {
        state.withLock { $0.paths[descriptor.number] = nil }
        base.close(descriptor)
    }

    package func read(
        _ descriptor: Descriptor, into bytes: UnsafeMutableRawBufferPointer, at offset: Int64
    ) throws(CacheError) -> Int {
        let isShort = try note(.read, descriptor)
        let limit = isShort ? 1 : state.withLock { $0.readLimit }
        let part = UnsafeMutableRawBufferPointer(rebasing: bytes.prefix(limit))
        return try base.read(descriptor, into: part, at: offset)
    }

    package func readFromPageCache(
        _ descriptor: Descriptor, into bytes: UnsafeMutableRawBufferPointer, at offset: Int64
    ) -> Int? {
        base.readFromPageCache(descriptor, into: bytes, at: offset)
    }

    package func tellsReferences(in directory: String) -> Bool { base.tellsReferences(in: directory) }

    package func holes(in directory: String) throws(CacheError) -> HoleSupport {
        if let pretended = state.withLock({ $0.holes }) { return pretended }
        return try base.holes(in: directory)
    }

    package func isCached(_ descriptor: Descriptor, _ range: ByteRange) -> Bool { base.isCached(descriptor, range) }

    package func drops(_ descriptor: Descriptor, _ range: ByteRange, of block: ByteRange) -> Bool {
        base.drops(descriptor, range, of: block)
    }

    package func write(
        _ descriptor: Descriptor, _ bytes: UnsafeRawBufferPointer, at offset: Int64
    ) throws(CacheError) -> Int {
        let isShort = try note(.write, descriptor)
        let limit = isShort ? 1 : state.withLock { $0.writeLimit }
        return try base.write(descriptor, UnsafeRawBufferPointer(rebasing: bytes.prefix(limit)), at: offset)
    }

    package func punch(_ descriptor: Descriptor, _ range: ByteRange) throws(CacheError) {
        try note(.punch, descriptor)
        try base.punch(descriptor, range)
        state.withLock { state in state.freeBytes = state.freeBytes.map { $0 + range.length } }
    }

    package func truncate(_ descriptor: Descriptor, to size: Int64) throws(CacheError) {
        try note(.truncate, descriptor)
        try base.truncate(descriptor, to: size)
    }

    package func sync(_ descriptor: Descriptor) throws(CacheError) {
        try note(.sync, descriptor)
        try base.sync(descriptor)
    }

    package func status(_ descriptor: Descriptor) throws(CacheError) -> FileStatus {
        try note(.status, descriptor)
        return try base.status(descriptor)
    }

    package func status(of path: String) throws(CacheError) -> FileStatus? {
        try note(.status, path)
        return try base.status(of: path)
    }

    package func list(_ directory: String) throws(CacheError) -> [String] {
        try note(.list, directory)
        return try base.list(directory)
    }

    package func directories(in directory: String, named names: Set<String>) throws(CacheError) -> Set<String> {
        try note(.list, directory)
        return try base.directories(in: directory, named: names)
    }

    package func createDirectory(_ path: String) throws(CacheError) -> Bool {
        try note(.createDirectory, path)
        return try base.createDirectory(path)
    }

    package func syncDirectory(_ path: String) throws(CacheError) {
        try note(.syncDirectory, path)
        try base.syncDirectory(path)
    }

    package func rename(_ path: String, to newPath: String) throws(CacheError) {
        try note(.rename, path)
        try base.rename(path, to: newPath)
    }

    package func unlink(_ path: String) throws(CacheError) {
        try note(.unlink, path)
        try base.unlink(path)
    }

    package func lock(_ descriptor: Descriptor, isShared: Bool) throws(CacheError) -> Bool {
        try note(.lock, descriptor)
        return try base.lock(descriptor, isShared: isShared)
    }

    package func freeBytes(at path: String) throws(CacheError) -> Int64 {
        try note(.freeBytes, path)
        if let pretended = state.withLock({ $0.freeBytes }) { return pretended }
        return try base.freeBytes(at: path)
    }

    /// Records a call. Returns whether the call must be short.
    @discardableResult
    private func note(_ call: Call, _ descriptor: Descriptor) throws(CacheError) -> Bool {
        try note(call, state.withLock { $0.paths[descriptor.number] } ?? "transient")
    }

    @discardableResult
    private func note(_ call: Call, _ path: String) throws(CacheError) -> Bool {
        let event = Event(call: call, path: path)
        let effect = state.withLock { state in
            state.events.append(event)
            return state.dueFault(of: call)
        }
        observer(event)
        switch effect {
        case .failure(let number):
            throw CacheError(errno: number, doing: "A scripted \(call.rawValue) of a file", path: path)
        case .short: return true
        case nil: return false
        }
    }
}

extension FaultyDisk.State {
    fileprivate mutating func dueFault(of call: FaultyDisk.Call) -> FaultyDisk.Effect? {
        var due: FaultyDisk.Effect?
        for index in faults.indices where faults[index].isAbout(call) {
            if faults[index].remaining == 0 {
                due = due ?? faults[index].effect
                if !faults[index].isLasting { faults[index].remaining = -1 }
            } else if faults[index].remaining > 0 {
                faults[index].remaining -= 1
            }
        }
        return due
    }
}
