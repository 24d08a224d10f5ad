package import CacheCore

/// The name of one generation's file: `<asset>-<generation>-<serial>.bytes`.
///
/// The serial is never used twice in a store, so that what is still to be done to an old file (a late write, an unlink
/// after a commit) cannot meet a new one, even after a purge has set the generations back to 1.
package struct FileName: Hashable, Sendable {
    package let asset: AssetID
    package let generation: Int64
    package let serial: Int64

    package init(asset: AssetID, generation: Int64, serial: Int64) {
        self.asset = asset
        self.generation = generation
        self.serial = serial
    }

    /// Nil where `text` is not a file's name as `description` writes it.
    package init?(_ text: String) {
        guard text.hasSuffix(Self.suffix) else { return nil }
        let parts = text.dropLast(Self.suffix.count).split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 3, let asset = AssetID(parts[0]), let generation = Int64(parts[1]),
            let serial = Int64(parts[2], radix: 16)
        else { return nil }
        self.init(asset: asset, generation: generation, serial: serial)
        guard description == text else { return nil }
    }

    /// The directory it lies in: the first two digits of the asset.
    package var shard: String { String(asset.description.prefix(2)) }

    private static let suffix = ".bytes"
}

extension FileName: CustomStringConvertible {
    package var description: String { "\(asset)-\(generation)-\(String(serial, radix: 16))\(Self.suffix)" }
}
