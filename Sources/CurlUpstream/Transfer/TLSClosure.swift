import CacheCore
import CCurl
import Synchronization

/// Records whether the server has ended a TLS connection with a closure alert (RFC 8446 §6.1).
///
/// Only the alert proves that a body is complete that the end of the connection delimits (RFC 9112 §9.8). It is
/// available with OpenSSL only.
final class TLSClosure: Sendable {
    /// Guards the watched connections, by the address of their `SSL` object. A new connection can have the address of one
    /// that was closed, while the transfer of the closed one is still to end: its handshake removes the entry.
    private static let connections = OrderedMutex<[UInt: TLSClosure]>(.leaf, [:])
    /// Whether the TLS library reports alerts.
    static let isReported = larder_tls_reports_alerts() != 0

    /// CURLOPT_SSL_CTX_FUNCTION: has the alerts of new connections reported.
    static let observe: curl_ssl_ctx_callback = { _, context, _ in
        if let context { larder_tls_set_on_event(context, TLSClosure.received) }
        return CURLE_OK
    }

    /// The kind of a received alert: SSL_CB_READ_ALERT of OpenSSL.
    private static let readAlert: Int32 = 0x4004
    /// The kind of the first event of a connection: SSL_CB_HANDSHAKE_START.
    private static let handshakeStart: Int32 = 0x10

    private static let received: larder_tls_callback = { connection, kind, value in
        guard let connection else { return }
        let address = UInt(bitPattern: connection)
        // The low byte is the description of the alert: 0 is close_notify.
        if kind == TLSClosure.readAlert, value & 0xFF == 0 { TLSClosure.ended(address) }
        if kind == TLSClosure.handshakeStart { TLSClosure.began(address) }
    }

    private let address: UInt
    private let isEnded = Atomic(false)

    private init(of address: UInt) { self.address = address }

    /// Watches the connection of a running transfer until `end`. Nil if alerts are not reported.
    static func watch(_ easy: UnsafeMutableRawPointer) -> TLSClosure? {
        guard isReported, let connection = larder_easy_get_tls(easy) else { return nil }
        return watch(address: UInt(bitPattern: connection))
    }

    static func watch(address: UInt) -> TLSClosure {
        let closure = TLSClosure(of: address)
        connections.withLock { $0[address] = closure }
        return closure
    }

    /// A new connection is at `address`; alerts do not concern a watched one before it.
    static func began(_ address: UInt) { connections.withLock { $0[address] = nil } }

    /// The alert was received on the connection at `address`.
    static func ended(_ address: UInt) {
        connections.withLock { $0[address]?.isEnded.store(true, ordering: .relaxed) }
    }

    /// Ends `watch`. Returns whether the alert was received.
    func end() -> Bool {
        Self.connections.withLock { if $0[address] === self { $0[address] = nil } }
        return isEnded.load(ordering: .relaxed)
    }
}
