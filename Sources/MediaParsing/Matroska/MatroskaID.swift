import CacheCore

/// The element IDs of EBML (RFC 8794 §11) and Matroska (RFC 9559 §5.1).
enum MatroskaID {
    static let ebml: UInt32 = 0x1A45_DFA3
    static let ebmlReadVersion: UInt32 = 0x42F7
    static let ebmlMaxIDLength: UInt32 = 0x42F2
    static let ebmlMaxSizeLength: UInt32 = 0x42F3
    static let docType: UInt32 = 0x4282
    static let segment: UInt32 = 0x1853_8067
    static let seekHead: UInt32 = 0x114D_9B74
    static let seek: UInt32 = 0x4DBB
    static let seekID: UInt32 = 0x53AB
    static let seekPosition: UInt32 = 0x53AC
    static let info: UInt32 = 0x1549_A966
    static let timestampScale: UInt32 = 0x2A_D7B1
    static let duration: UInt32 = 0x4489
    static let tracks: UInt32 = 0x1654_AE6B
    static let trackEntry: UInt32 = 0xAE
    static let trackNumber: UInt32 = 0xD7
    static let trackType: UInt32 = 0x83
    static let codecID: UInt32 = 0x86
    static let codecDelay: UInt32 = 0x56AA
    static let language: UInt32 = 0x22_B59C
    static let languageTag: UInt32 = 0x22_B59D
    static let video: UInt32 = 0xE0
    static let pixelWidth: UInt32 = 0xB0
    static let pixelHeight: UInt32 = 0xBA
    static let editionEntry: UInt32 = 0x45B9
    static let chapterAtom: UInt32 = 0xB6
    static let chapterTimeStart: UInt32 = 0x91
    static let chapterDisplay: UInt32 = 0x80
    static let chapString: UInt32 = 0x85
    static let cues: UInt32 = 0x1C53_BB6B
    static let cuePoint: UInt32 = 0xBB
    static let cueTime: UInt32 = 0xB3
    static let cueTrackPositions: UInt32 = 0xB7
    static let cueTrack: UInt32 = 0xF7
    static let cueClusterPosition: UInt32 = 0xF1
    static let cueRelativePosition: UInt32 = 0xF0
    static let cluster: UInt32 = 0x1F43_B675
    static let timestamp: UInt32 = 0xE7
    static let simpleBlock: UInt32 = 0xA3
    static let blockGroup: UInt32 = 0xA0
    static let block: UInt32 = 0xA1
    static let chapters: UInt32 = 0x1043_A770
    static let tags: UInt32 = 0x1254_C367
    static let attachments: UInt32 = 0x1941_A469

    /// The children of a segment other than clusters; they end a cluster of unknown size.
    static let topLevel: Set<UInt32> = [seekHead, info, tracks, cues, chapters, tags, attachments]

    /// The name of an element for error messages; the ID in hexadecimal for other elements.
    static func name(_ id: UInt32) -> String {
        switch id {
        case ebml: "EBML"
        case segment: "Segment"
        case seekHead: "SeekHead"
        case info: "Info"
        case tracks: "Tracks"
        case cues: "Cues"
        case cluster: "Cluster"
        case chapters: "Chapters"
        case tags: "Tags"
        case attachments: "Attachments"
        default: "0x" + String(id, radix: 16, uppercase: true)
        }
    }
}
