import CacheCore
import Testing

/// Calls for folders of APIs, and their responses.
@Suite struct FolderListingTests {
    /// The settings for Dropbox.
    private static var dropbox: FolderListing {
        var list = FolderListing()
        list.url = "https://api.test/list_folder"
        (list.pointer, list.type, list.folder, list.modified) = ("/entries", "/.tag", "folder", "/server_modified")
        (list.cursor, list.more) = ("/cursor", "/has_more")
        return list
    }

    private func page(_ text: String, _ list: FolderListing, at place: String? = nil) throws -> FolderListing.Page {
        try list.page(Array(text.utf8), at: place)
    }

    @Test("Each placeholder of a template is replaced once")
    func placeholders() {
        let template = "p={path}&q={/path}&c={cursor}&o={offset}&{other}&{"
        let first = FolderListing.Values(path: "a/{cursor}/", place: nil)
        #expect(first.filled(template) { $0 } == "p=a/{cursor}&q=/a/{cursor}&c=&o=0&{other}&{")
        let next = FolderListing.Values(path: "", place: "7")
        #expect(next.filled(template) { "<\($0)>" } == "p=<>&q=<>&c=<7>&o=<7>&{other}&{")
    }

    @Test("Entries have name, length, time and kind, and the cursor counts if there is more")
    func entries() throws {
        let text = #"""
            {"entries": [{".tag": "file", "name": "a b:1.mp4", "size": 7, "server_modified": "2026-01-02T03:04:05Z"},
             {".tag": "folder", "name": "more"}, {".tag": "file"}], "cursor": "c1", "has_more": true}
            """#
        let found = try page(text, Self.dropbox)
        let time = try #require(RFC3339.parse("2026-01-02T03:04:05Z"))
        #expect(
            found.entries == [
                ListingEntry(reference: "./a%20b:1.mp4", bytes: 7, modifiedAt: time),
                ListingEntry(reference: "./more/", isFolder: true),
            ])
        #expect(found.next == "c1")
        #expect(try page(text.replacing("true}", with: "false}"), Self.dropbox).next == nil)
    }

    @Test("Offsets count entries until an empty part; lengths can be texts, and paths are relative to the mount")
    func offsets() throws {
        var list = FolderListing()
        (list.url, list.path) = ("https://api.test/list?offset={offset}", "/id")
        let found = try page(#"[{"id": "/x", "size": "12"}, {"id": "y"}]"#, list, at: "3")
        #expect(found.entries.map(\.reference) == ["./x", "./y"] && found.entries[0].bytes == 12 && found.next == "5")
        #expect(try page("[]", list, at: "5").next == nil)
    }

    @Test(
        "A response that does not match the settings names the setting",
        arguments: [
            ("<html>", "JSON"), ("{}", "resolve.list.pointer"), (#"{"entries": [{"x": 1}]}"#, "resolve.list.name"),
        ])
    func faults(text: String, word: String) {
        #expect { _ = try page(text, Self.dropbox) } throws: { error in
            (error as? CacheError).map { $0.code == .upstreamUnusable() && $0.message.contains(word) } ?? false
        }
    }
}
