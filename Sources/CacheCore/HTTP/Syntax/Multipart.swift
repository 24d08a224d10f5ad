/// The delimiters of a `multipart/byteranges` body (RFC 9110 §14.6).
package enum Multipart {
    /// The boundary string of one response.
    ///
    /// `token` has 32 random hexadecimal digits for each response. The bytes of the generation were determined before
    /// it, so they contain the boundary only by chance: for an asset of 2^64 bytes with a probability below 2^-64.
    /// Asset and number distinguish the boundaries of two generations for any token.
    package static func boundary(asset: AssetID, generation: Int64, token: String) -> String {
        // 16 + 1 + at most 19 + 1 + 32 bytes: under the 70 that RFC 2046 §5.1.1 allows.
        asset.description.prefix(16) + "-" + String(generation) + "-" + token.prefix(32)
    }

    /// The delimiter and the header of the part with `run`, up to its first byte.
    static func opening(
        of run: ByteRange, length: Int64, contentType: String?, boundary: String, isFirst: Bool
    ) -> [UInt8] {
        let type = contentType.map { "Content-Type: \($0)\r\n" } ?? ""
        let range = ContentRange.run(run, of: length)
        return Array("\(isFirst ? "" : "\r\n")--\(boundary)\r\n\(type)Content-Range: \(range)\r\n\r\n".utf8)
    }

    /// The closing delimiter.
    static func closing(boundary: String) -> [UInt8] { Array("\r\n--\(boundary)--\r\n".utf8) }
}
