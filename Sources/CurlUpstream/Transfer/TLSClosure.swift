import CacheCore
import CCurl

/// Records whether the server has ended a TLS connection with a closure alert (RFC 8446 §6.1).
///
/// Only the alert proves that a body is complete that the end of the connection delimits (RFC 9112 §9.8). It is
/// available with OpenSSL only.
enum TLSClosure {
    /// Guards the connections that are watched, by the address of their `SSL` object, and whether the alert was received.
    private static let connections = OrderedMutex<[UInt: Bool]>(.leaf, [:])
    /// Whether the TLS library reports alerts.
    static let isReported = larder_tls_reports_alerts() != 0

    /// CURLOPT_SSL_CTX_FUNCTION: has the alerts of new connections reported.
    static let observe: curl_ssl_ctx_callback = { _, context, _ in
        if let context { larder_tls_set_on_event(context, TLSClosure.received) }
        return CURLE_OK
    }

    /// The kind of a received alert: SSL_CB_READ_ALERT of OpenSSL.
    private static let readAlert: Int32 = 0x4004

    private static let received: larder_tls_callback = { connection, kind, value in
        // The low byte is the description of the alert: 0 is close_notify.
        guard kind == TLSClosure.readAlert, value & 0xFF == 0, let connection else { return }
        let key = UInt(bitPattern: connection)
        TLSClosure.connections.withLock { if $0[key] != nil { $0[key] = true } }
    }

    /// Watches the connection of a running transfer until `end`. Nil if alerts are not reported.
    static func watch(_ easy: UnsafeMutableRawPointer) -> UInt? {
        guard isReported, let connection = larder_easy_get_tls(easy) else { return nil }
        let key = UInt(bitPattern: connection)
        connections.withLock { $0[key] = false }
        return key
    }

    /// Ends `watch`. Returns whether the alert was received.
    static func end(_ key: UInt) -> Bool { connections.withLock { $0.removeValue(forKey: key) } ?? false }
}
