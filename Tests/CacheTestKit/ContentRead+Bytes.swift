package import CacheCore
package import CacheEngine
import NIOCore

extension ContentRead {
    /// The next bytes of the body as an array; nil at its end.
    package func nextBytes() async throws(CacheError) -> [UInt8]? {
        try await next().map { Array($0.readableBytesView) }
    }
}
