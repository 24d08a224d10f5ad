import CacheCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Standard error output for messages and log lines.
enum StandardError {
    /// Writes all of `line`. Errors are ignored: there is no other output for them, and a full disk below the log must
    /// not end the service.
    static func write(_ line: String) {
        var rest = Array(line.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { systemWrite(STDERR_FILENO, $0.baseAddress, $0.count) }
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }
}

private func systemWrite(_ descriptor: Int32, _ bytes: UnsafeRawPointer?, _ count: Int) -> Int {
    write(descriptor, bytes, count)
}

extension CacheError {
    /// The message with its cause.
    var sentence: String { message + (cause.map { " (\($0))" } ?? "") }
}
