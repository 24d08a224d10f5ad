package import CacheCore

/// The order of a job item as a document, for the other nodes of a fleet: its asset, ranges, tags and the place in a
/// playlist, without its progress. It can have a signed URL, so that it is always sealed or sent to nodes only.
package enum StoredJobItem {
    private struct Document: Codable {
        var reference: StoredReference
        var ranges: [String]?
    }

    /// The document as one line, without the tags and the pin.
    static func line(of item: JobItemRecord) throws(CacheError) -> String {
        var bare = item
        (bare.tags, bare.isPinned) = ([], false)
        guard item.play == nil, item.list == nil else { return try json(of: bare).text }
        // Most items: an encoder would take ten times as long.
        let reference: JSON =
            switch item.reference {
            case .url(let url, let key): JSON(present: ["url": .string(url), "key": key.map(JSON.string)])
            case .mounted(let origin, let path, let key):
                JSON(present: ["origin": .string(origin), "path": .string(path), "key": key.map(JSON.string)])
            case .known(let id): ["asset": .string(id.description)]
            }
        let ranges = item.ranges.isEmpty ? nil : JSON.array(item.ranges.map(JSON.string))
        return JSON(present: ["reference": reference, "ranges": ranges]).text
    }

    package static func json(of item: JobItemRecord) throws(CacheError) -> JSON {
        var order = item
        order.wait = nil
        do {
            let ranges = item.ranges.isEmpty ? nil : item.ranges
            let text = try RowCoding.json(Document(reference: StoredReference(order), ranges: ranges))
            return try JSONParser.parse(text.utf8)
        } catch {
            throw CacheError(.internal, "The job item cannot be encoded.", cause: error)
        }
    }

    /// The queued item at a position of a job. Throws `storageCorrupt` if the document has another form.
    package static func item(_ json: JSON, index: Int) throws(CacheError) -> JobItemRecord {
        do {
            let document = try json.decode(Document.self, isStrict: false)
            var item = JobItemRecord(
                index: index, reference: try document.reference.reference(), ranges: document.ranges ?? [])
            try document.reference.restore(to: &item)
            return item
        } catch let error as CacheError where error.code == .storageCorrupt {
            throw error
        } catch {
            throw CacheError(.storageCorrupt, "The document of a job item cannot be decoded.", cause: error)
        }
    }
}
