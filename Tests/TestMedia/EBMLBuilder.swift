/// Builder of EBML elements for malformed files.
package enum EBMLBuilder {
    /// An element; `size` replaces the length of the content.
    package static func element(_ id: UInt32, _ content: [UInt8], size: [UInt8]? = nil) -> [UInt8] {
        let count = UInt64(content.count)
        let eight = [0x01] + (0..<7).reversed().map { UInt8(truncatingIfNeeded: count >> (8 * UInt64($0))) }
        let short = content.count < 127 ? [0x80 | UInt8(content.count)] : eight
        return number(UInt64(id)) + (size ?? short) + content
    }

    /// The shortest big-endian form of a number.
    package static func number(_ value: UInt64) -> [UInt8] {
        let bytes = (0..<8).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * UInt64($0))) }
        return Array(bytes.drop { $0 == 0 }.isEmpty ? [0] : bytes.drop { $0 == 0 })
    }

    package static let header = element(0x1A45_DFA3, element(0x4282, Array("webm".utf8)))
    package static let unknownSize: [UInt8] = [0x01, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]

    /// Tracks with one video track.
    package static let tracks = element(
        0x1654_AE6B,
        element(0xAE, element(0xD7, [1]) + element(0x83, [1]) + element(0x86, Array("V_VP9".utf8))))

    /// A cluster with a timestamp in ticks of 1 ms and one block with a key frame.
    package static func cluster(_ timestamp: UInt64, bytes: Int = 100, size: [UInt8]? = nil) -> [UInt8] {
        element(
            0x1F43_B675,
            element(0xE7, number(timestamp)) + element(0xA3, [0x81, 0, 0, 0x80] + [UInt8](repeating: 7, count: bytes)),
            size: size)
    }

    /// Cues of track 1.
    package static func cues(_ entries: [(time: UInt64, cluster: UInt64)]) -> [UInt8] {
        element(
            0x1C53_BB6B,
            entries.flatMap { entry in
                element(
                    0xBB,
                    element(0xB3, number(entry.time))
                        + element(0xB7, element(0xF7, [1]) + element(0xF1, number(entry.cluster))))
            })
    }
}
