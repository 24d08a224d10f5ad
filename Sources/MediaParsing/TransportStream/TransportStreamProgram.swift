import CacheCore

/// The first program of an MPEG transport stream: assembles the sections of PAT and PMT (ISO/IEC 13818-1 §2.4.4).
struct TransportStreamProgram {
    /// An elementary stream of the program.
    struct Stream {
        var pid: Int
        var kind: TrackKind
        var codec: String
    }

    /// The largest number of programs and of streams.
    private static let entryLimit = 256
    /// The largest section (§2.4.4.1).
    private static let sectionLimit = 4096

    /// The streams of the first program whose PMT was found; empty before.
    private(set) var streams: [Stream] = []
    /// The PID of the packets with the program clock reference; nil before the PMT was found.
    private(set) var clockPID: Int?
    private(set) var isComplete = false
    /// The PIDs of PMTs.
    private var mapPIDs: [Int] = []
    /// Incomplete sections by PID.
    private var sections: [Int: [UInt8]] = [:]

    /// Sets the kind of a stream of unknown type by the stream ID of its PES packets (ISO/IEC 13818-1 §2.4.3.7).
    mutating func setKind(of pid: Int, streamID: UInt8) {
        guard let index = streams.firstIndex(where: { $0.pid == pid && $0.kind == .other }) else { return }
        switch streamID {
        case 0xC0...0xDF: streams[index].kind = .audio
        case 0xE0...0xEF: streams[index].kind = .video
        default: break
        }
    }

    /// Adds the payload of a packet if it has a section of PAT or PMT.
    mutating func add(_ packet: TransportStreamPacket) {
        guard !isComplete, packet.pid == 0 || mapPIDs.contains(packet.pid) else { return }
        var payload = packet.payload.bytes
        var section = sections[packet.pid] ?? []
        if packet.startsUnit {
            guard let pointer = payload.first, Int(pointer) + 1 <= payload.count else { return }
            let rest = payload.dropFirst().prefix(Int(pointer))
            if !section.isEmpty { finish(section + rest, packet.pid) }
            payload = payload.dropFirst(Int(pointer) + 1)
            section = []
        } else if section.isEmpty {
            return
        }
        section += payload
        sections[packet.pid] = finish(section, packet.pid) || section.count > Self.sectionLimit ? nil : section
    }

    /// Parses a section if it is complete. Returns whether it is.
    @discardableResult
    private mutating func finish(_ section: [UInt8], _ pid: Int) -> Bool {
        let bytes = MediaBytes(offset: 0, bytes: section[...])
        guard let head = bytes.number(at: 0, count: 3) else { return false }
        let end = 3 + Int64(head & 0xFFF)
        guard end <= bytes.end else { return false }
        guard end >= 12 else { return true }
        let content = bytes.part(0..<end - 4)  // without CRC-32
        switch head >> 16 {
        case 0 where pid == 0: addPrograms(content)
        case 2 where pid != 0: addStreams(content)
        default: break
        }
        return true
    }

    /// The programs of a PAT (§2.4.4.3); number 0 is that of the network information table.
    private mutating func addPrograms(_ section: MediaBytes) {
        var position: Int64 = 8
        while let entry = section.number(at: position, count: 4) {
            let pid = Int(entry & 0x1FFF)
            if entry >> 16 != 0, pid > 0, mapPIDs.count < Self.entryLimit, !mapPIDs.contains(pid) {
                mapPIDs.append(pid)
            }
            position += 4
        }
    }

    /// The streams of a PMT (§2.4.4.8).
    private mutating func addStreams(_ section: MediaBytes) {
        guard let clock = section.number(at: 8, count: 2), let informationLength = section.number(at: 10, count: 2)
        else { return }
        clockPID = Int(clock & 0x1FFF)
        var position = 12 + Int64(informationLength & 0xFFF)
        while let entry = section.number(at: position, count: 5), streams.count < Self.entryLimit {
            let length = Int64(entry & 0xFFF)
            let pid = Int(entry >> 16 & 0x1FFF)
            let descriptors = section.part(position + 5..<position + 5 + length)
            if !streams.contains(where: { $0.pid == pid }) {
                let (kind, codec) = Self.codec(UInt8(entry >> 32), descriptors)
                streams.append(Stream(pid: pid, kind: kind, codec: codec))
            }
            position += 5 + length
        }
        isComplete = !streams.isEmpty
    }

    /// The kind and codec of a stream by its type (§2.4.4.9 and the registrations of ATSC, DVB and BDAV).
    private static func codec(_ type: UInt8, _ descriptors: MediaBytes) -> (TrackKind, String) {
        switch type {
        case 0x01: (.video, "mpeg1video")
        case 0x02: (.video, "mpeg2video")
        case 0x03, 0x04: (.audio, "mpegaudio")
        case 0x0F: (.audio, "aac")
        case 0x10: (.video, "mpeg4")
        case 0x11: (.audio, "aac_latm")
        case 0x1B: (.video, "h264")
        case 0x21: (.video, "jpeg2000")
        case 0x24: (.video, "hevc")
        case 0x33: (.video, "vvc")
        case 0x42: (.video, "cavs")
        case 0x81: (.audio, "ac3")
        case 0x83: (.audio, "truehd")
        case 0x84, 0x87: (.audio, "eac3")
        case 0x82, 0x85, 0x8A: (.audio, "dts")
        case 0x90: (.subtitles, "pgs")
        case 0xD1: (.video, "dirac")
        case 0xD2: (.video, "avs2")
        case 0xD4: (.video, "avs3")
        case 0xEA: (.video, "vc1")
        case 0x05, 0x06, 0x80: privateCodec(descriptors) ?? (.other, "0x" + String(type, radix: 16))
        default: (.other, "0x" + String(type, radix: 16))
        }
    }

    /// The codec of a stream of private data by its descriptors (§2.6, ETSI EN 300 468 §6.2).
    private static func privateCodec(_ descriptors: MediaBytes) -> (TrackKind, String)? {
        var position = descriptors.offset
        while let head = descriptors.number(at: position, count: 2) {
            switch head >> 8 {
            case 0x05:
                switch descriptors.part(position + 2..<position + 6).shortText {
                case "Opus": return (.audio, "opus")
                case "AC-3": return (.audio, "ac3")
                case "EAC3": return (.audio, "eac3")
                case "AC-4": return (.audio, "ac4")
                case "HEVC": return (.video, "hevc")
                case "AV01": return (.video, "av1")
                case "VC-1": return (.video, "vc1")
                case "BSSD": return (.audio, "s302m")
                case "HDMV": return (.audio, "pcm_bluray")
                case "DTS1", "DTS2", "DTS3": return (.audio, "dts")
                default: break
                }
            case 0x45, 0x46, 0x56: return (.subtitles, "teletext")
            case 0x59: return (.subtitles, "dvbsub")
            case 0x6A: return (.audio, "ac3")
            case 0x7A: return (.audio, "eac3")
            case 0x7B: return (.audio, "dts")
            case 0x7C: return (.audio, "aac")
            default: break
            }
            position += 2 + Int64(head & 0xFF)
        }
        return nil
    }
}
