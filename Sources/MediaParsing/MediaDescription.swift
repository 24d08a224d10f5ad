import CacheCore

extension MediaIndex {
    /// The properties of a track that containers state; nil: not stated.
    package struct Description: Hashable, Sendable {
        /// The language as the container states it: ISO 639-2 in MP4, that or RFC 5646 in Matroska.
        package var language: String?
        /// The size of the picture in pixels.
        package var width: Int64?
        package var height: Int64?

        package init(language: String? = nil, width: Int64? = nil, height: Int64? = nil) {
            self.language = language
            self.width = width
            self.height = height
        }
    }

    /// A chapter.
    package struct Chapter: Hashable, Sendable {
        /// In seconds.
        package var start: Double
        package var title: String

        package init(start: Double, title: String) {
            self.start = start
            self.title = title
        }

        /// The largest number of chapters; further ones are ignored.
        static let limit = 1000
        /// The largest number of bytes of a title; further ones are ignored.
        static let titleBytes = 256

        /// The chapters in order, up to the limit.
        static func ordered(_ chapters: [Chapter]) -> [Chapter] {
            Array(chapters.filter { $0.start.isFinite && $0.start >= 0 }.sorted { $0.start < $1.start }.prefix(limit))
        }
    }
}

extension MediaIndex.Track {
    /// The number of key frames or cues that the index names; nil: decoding can begin at each piece.
    package var keyFrameCount: Int? { syncTimes.isEmpty ? nil : syncTimes.count }

    /// The longest time between two of them in seconds; nil without two.
    package var keyFrameInterval: Double? {
        zip(syncTimes, syncTimes.dropFirst()).lazy.map { $1 - $0 }.max()
    }
}

extension MP4Box {
    /// The language of an `mdhd` box: three letters of five bits (ISO/IEC 14496-12 §8.4.2.3). Nil: undetermined, or a
    /// code of QuickTime.
    var mediaLanguage: String? {
        // A missing or malformed language is not stated.
        guard let version = try? version(), let packed = try? uint16(at: version == 1 ? 32 : 20) else { return nil }
        let letters = [packed >> 10, packed >> 5, packed].map { UInt8($0 & 0x1F) }
        guard letters.allSatisfy({ (1...26).contains($0) }) else { return nil }
        let text = String(decoding: letters.map { $0 + 0x60 }, as: UTF8.self)
        return text == "und" ? nil : text
    }

    /// The size of a `tkhd` box in whole pixels; nil for a track without a picture.
    var pictureSize: (width: Int64, height: Int64)? {
        // A box that is too short states no size.
        guard let version = try? version(), let width = try? uint32(at: version == 1 ? 88 : 76),
            let height = try? uint32(at: version == 1 ? 92 : 80), width > 0, height > 0
        else { return nil }
        return (Int64(width >> 16), Int64(height >> 16))
    }

    /// The chapters of the `chpl` box in a `udta` box (Nero); empty without one, or if it is malformed.
    var chapters: [MediaIndex.Chapter] { (try? chapterList()) ?? [] }

    private func chapterList() throws(MediaError) -> [MediaIndex.Chapter] {
        var boxes = children
        while let box = try boxes.next() {
            guard box.type == "chpl" else { continue }
            var index = try box.version() == 0 ? 4 : 8
            let count = try box.uint(at: index, width: 1)
            index += 1
            var chapters: [MediaIndex.Chapter] = []
            for _ in 0..<count {
                // The unit is 100 ns.
                let start = Double(try box.uint(at: index, width: 8)) / 1e7
                let length = Int(try box.uint(at: index + 8, width: 1))
                let end = index + 9 + length
                guard end <= box.payload.count else { throw box.malformed }
                let first = box.payload.lowerBound + index + 9
                chapters.append(
                    .init(start: start, title: String(decoding: box.bytes[first..<first + length], as: UTF8.self)))
                index = end
            }
            return MediaIndex.Chapter.ordered(chapters)
        }
        return []
    }
}

extension MediaBytes {
    /// The chapters of a Matroska Chapters element (RFC 9559 §5.1.7): the atoms of all editions, without nested ones. Empty
    /// if it is malformed.
    var matroskaChapters: [MediaIndex.Chapter] { (try? chapterAtoms()) ?? [] }

    private func chapterAtoms() throws(MediaError) -> [MediaIndex.Chapter] {
        var chapters: [MediaIndex.Chapter] = []
        var editions = EBMLChildren(self, of: "Chapters")
        while let edition = try editions.next() {
            guard edition.id == MatroskaID.editionEntry else { continue }
            var atoms = EBMLChildren(edition.content, of: "EditionEntry")
            while let atom = try atoms.next(), chapters.count < MediaIndex.Chapter.limit {
                if atom.id == MatroskaID.chapterAtom { chapters.append(try atom.content.chapter()) }
            }
        }
        return MediaIndex.Chapter.ordered(chapters)
    }

    private func chapter() throws(MediaError) -> MediaIndex.Chapter {
        var chapter = MediaIndex.Chapter(start: 0, title: "")
        var fields = EBMLChildren(self, of: "ChapterAtom")
        while let field = try fields.next() {
            switch field.id {
            case MatroskaID.chapterTimeStart: chapter.start = Double(field.content.unsignedInteger ?? 0) / 1e9
            case MatroskaID.chapterDisplay where chapter.title.isEmpty:
                var texts = EBMLChildren(field.content, of: "ChapterDisplay")
                while let text = try texts.next() {
                    guard text.id == MatroskaID.chapString else { continue }
                    let bytes = text.content.bytes.prefix(MediaIndex.Chapter.titleBytes).prefix { $0 != 0 }
                    chapter.title = String(decoding: bytes, as: UTF8.self)
                }
            default: break
            }
        }
        return chapter
    }

    /// The size of the Video element of a Matroska track (RFC 9559 §5.1.4.1.28).
    var matroskaPictureSize: (width: Int64?, height: Int64?) {
        var size: (width: Int64?, height: Int64?) = (nil, nil)
        var fields = EBMLChildren(self, of: "Video")
        // A malformed rest states no size.
        while let field = try? fields.next() {
            let value = field.content.unsignedInteger.flatMap { Int64(exactly: $0) }
            if field.id == MatroskaID.pixelWidth { size.width = value }
            if field.id == MatroskaID.pixelHeight { size.height = value }
        }
        return size
    }
}
