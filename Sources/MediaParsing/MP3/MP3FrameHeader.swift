import CacheCore

/// The header of an MPEG audio frame (ISO/IEC 11172-3 §2.4.2.3 and ISO/IEC 13818-3 §2.4.2.3; MPEG 2.5 by Fraunhofer).
struct MP3FrameHeader: Hashable, Sendable {
    /// The sampling frequencies are halved and quartered from MPEG 1 to 2 and 2.5.
    enum Version { case mpeg1, mpeg2, mpeg25 }

    let version: Version
    /// 1, 2 or 3.
    let layer: Int
    /// In bits per second.
    let bitRate: Int
    /// In Hz.
    let sampleRate: Int
    let isMono: Bool
    /// The length of the frame in bytes, with the header; at least 24.
    let length: Int64

    private static let bitRates: [[Int]] = [
        [32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448],  // MPEG 1, layer I
        [32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],  // MPEG 1, layer II
        [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],  // MPEG 1, layer III
        [32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256],  // MPEG 2 and 2.5, layer I
        [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],  // MPEG 2 and 2.5, layers II and III
    ]

    /// Nil for bytes that are no header, and for free format, whose frames have no stated length.
    init?(_ bytes: MediaBytes, at position: Int64) {
        guard bytes.byte(at: position) == 0xFF, let word = bytes.number(at: position, count: 4), word >> 21 == 0x7FF
        else { return nil }
        switch word >> 19 & 3 {
        case 3: version = .mpeg1
        case 2: version = .mpeg2
        case 0: version = .mpeg25
        default: return nil
        }
        let (layerCode, rateIndex, frequency) = (Int(word >> 17 & 3), Int(word >> 12 & 15), Int(word >> 10 & 3))
        guard layerCode > 0, (1...14).contains(rateIndex), frequency < 3, word & 3 != 2 else { return nil }
        layer = 4 - layerCode
        let row = version == .mpeg1 ? layer - 1 : layer == 1 ? 3 : 4
        bitRate = Self.bitRates[row][rateIndex - 1] * 1000
        sampleRate = [44_100, 48_000, 32_000][frequency] / (version == .mpeg1 ? 1 : version == .mpeg2 ? 2 : 4)
        isMono = word >> 6 & 3 == 3
        let padding = Int(word >> 9 & 1)
        length = Int64(
            layer == 1
                ? (12 * bitRate / sampleRate + padding) * 4
                : (layer == 3 && version != .mpeg1 ? 72 : 144) * bitRate / sampleRate + padding)
    }

    /// The number of samples of a frame per channel.
    var samples: Int { layer == 1 ? 384 : layer == 3 && version != .mpeg1 ? 576 : 1152 }

    /// The duration of a frame in seconds.
    var duration: Double { Double(samples) / Double(sampleRate) }

    /// The offset of a Xing or Info header: that of the main data behind header and side information of layer III.
    var sideInformationEnd: Int64 {
        version == .mpeg1 ? (isMono ? 21 : 36) : (isMono ? 13 : 21)
    }

    /// Whether the frame can be in the same stream as `other`; only the bit rate and the channel mode may differ.
    func continues(_ other: MP3FrameHeader) -> Bool {
        version == other.version && layer == other.layer && sampleRate == other.sampleRate
    }
}
