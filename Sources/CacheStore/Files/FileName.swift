package import CacheCore

/// Name of the file of one generation: `<asset>-<generation>-<serial>.bytes`.
///
/// A store never uses a serial twice. A delayed operation on an old file (a late write, an unlink after a commit) can
/// therefore never reach a new file, even after a purge has reset the generations to 1.
package struct FileName: Hashable, Sendable {
    package let asset: AssetID
    /// Number of the asset's generation, from 1.
    package let generation: Int64
    /// Run number in the high part, file number in the low 32 bits; hexadecimal in the name.
    package let serial: Int64

    package init(asset: AssetID, generation: Int64, serial: Int64) {
        self.asset = asset
        self.generation = generation
        self.serial = serial
    }

    /// Parses a file name; nil unless `text` is equal to the `description` of the result.
    package init?(_ text: String) {
        guard text.hasSuffix(Self.suffix) else { return nil }
        let parts = text.dropLast(Self.suffix.count).split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 3, let asset = AssetID(parts[0]), let generation = Int64(parts[1]),
            let serial = Int64(parts[2], radix: 16)
        else { return nil }
        self.init(asset: asset, generation: generation, serial: serial)
        guard description == text else { return nil }
    }

    /// Name of its shard directory: the first two hexadecimal digits of the asset identifier.
    package var shard: String { String(asset.description.prefix(2)) }

    private static let suffix = ".bytes"
}

extension FileName: CustomStringConvertible {
    package var description: String { "\(asset)-\(generation)-\(String(serial, radix: 16))\(Self.suffix)" }
}
