package import CacheCore
import Glibc

extension TLSSettings {
    /// Checks the file of certificate authorities. Throws `.invalidField("tls.caFile")` unless it is readable and
    /// contains a PEM certificate (RFC 7468) in its first MiB. Blocks its thread.
    package func checkCAFile() throws(CacheError) {
        guard let caFile else { return }
        guard let file = fopen(caFile, "r") else { throw Self.invalid(caFile, String(cString: strerror(errno))) }
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: 1 << 20)
        let count = fread(&bytes, 1, bytes.count, file)
        guard ferror(file) == 0 else { throw Self.invalid(caFile, String(cString: strerror(errno))) }
        guard bytes.prefix(count).firstRange(of: Array("-----BEGIN ".utf8)) != nil else {
            throw Self.invalid(caFile, "it contains no PEM certificate")
        }
    }

    private static func invalid(_ file: String, _ reason: String) -> CacheError {
        CacheError(.invalidField("tls.caFile"), "The file \(file) cannot be used: \(reason).")
    }
}
