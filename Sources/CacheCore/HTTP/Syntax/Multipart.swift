/// The glue of a `multipart/byteranges` body (RFC 9110 §14.6).
package enum Multipart {
    /// The boundary of one response.
    ///
    /// `token` is 32 fresh hexadecimal digits for every response. The bytes of the generation named here were chosen
    /// before it, so that they hold the boundary only by chance: less than one in 2^64 for an asset of 2^64 bytes.
    /// Asset and number keep the boundaries of two generations apart whatever the token.
    package static func boundary(asset: AssetID, generation: Int64, token: String) -> String {
        // 16 + 1 + at most 19 + 1 + 32 bytes: under the 70 that RFC 2046 §5.1.1 allows.
        asset.description.prefix(16) + "-" + String(generation) + "-" + token.prefix(32)
    }

    /// The delimiter and the head of the part that holds `run`, up to the part's first byte.
    static func opening(
        of run: ByteRange, length: Int64, contentType: String?, boundary: String, isFirst: Bool
    ) -> [UInt8] {
        let type = contentType.map { "Content-Type: \($0)\r\n" } ?? ""
        let range = ContentRange.run(run, of: length)
        return Array("\(isFirst ? "" : "\r\n")--\(boundary)\r\n\(type)Content-Range: \(range)\r\n\r\n".utf8)
    }

    /// What ends the body.
    static func closing(boundary: String) -> [UInt8] { Array("\r\n--\(boundary)--\r\n".utf8) }
}
