extension FillLedger {
    /// Gives up what is on disk of `range` and is not leased. Those runs count as leaving until `left` is called.
    package mutating func surrender(_ range: ByteRange) -> [ByteRange] {
        var spared = ByteRangeSet()
        for reader in readers.values { if let lease = lease(of: reader) { spared.insert(lease) } }
        // What one transfer brought to readers who are past it need not stay until the transfer ends.
        for fill in fills { spared.insert(acceptsRanges == false ? fill.remaining : fill.window) }
        let runs = extents.runs(in: range).flatMap { spared.gaps(in: $0) }
        for run in runs {
            extents.remove(run)
            leaving.insert(run)
        }
        return runs
    }

    /// The disk has lost these bytes, leases or not.
    package mutating func lose(_ run: ByteRange) { extents.remove(run) }

    /// The surrendered runs are off the disk and out of the catalog.
    package mutating func left(_ runs: [ByteRange]) -> [Action] {
        for run in runs { leaving.remove(run) }
        return planForAll()
    }

    /// The bytes a reader is sending or will send next.
    private func lease(of reader: Reader) -> ByteRange? {
        reader.wanted.map { wanted in
            ByteRange(offset: wanted.lowerBound, length: min(wanted.length, reader.readAhead.windowBytes))
        }
    }
}
