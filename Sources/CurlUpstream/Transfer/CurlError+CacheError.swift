import CCurl
import CacheCore
import Glibc

/// An error code of libcurl with its details, for the log.
struct CurlError: Error, CustomStringConvertible {
    let code: CURLcode
    /// The `errno` behind the code; 0 if there is none.
    let systemError: Int32
    /// The result of OpenSSL's certificate verification (`X509_V_ERR_…`); 0: no error.
    var verification = 0
    /// Whether the cause of a failed connection is on this machine.
    var isLocal = false

    var description: String {
        let system = systemError == 0 ? "" : ", \(String(cString: strerror(systemError)))"
        return "curl \(code.rawValue): \(String(cString: curl_easy_strerror(code)))\(system)"
    }

    /// Maps the error to a code and a message for administrators. `host` is `name:port`; `isConnected`: the connection
    /// was established.
    func cacheError(host: String, isConnected: Bool) -> CacheError {
        let (code, message) = isConnected ? answering(host) : connecting(host)
        var error = CacheError(code, message, cause: self)
        error.isLocal = isLocal
        return error
    }

    /// Errors before the connection is established.
    private func connecting(_ host: String) -> (CacheError.Code, String) {
        switch code {
        case CURLE_COULDNT_RESOLVE_HOST:
            (.upstreamUnreachable(), "The name of \(host) could not be resolved; check its spelling and the DNS.")
        case CURLE_COULDNT_CONNECT where [EMFILE, ENFILE].contains(systemError):
            (.overloaded, "No file descriptor is left for a connection to \(host); raise the limit on open files.")
        case CURLE_COULDNT_CONNECT: (.upstreamUnreachable(), unconnected(host))
        case CURLE_PEER_FAILED_VERIFICATION:
            (.upstreamUnreachable(), untrusted(host))
        case CURLE_SSL_CACERT_BADFILE:
            (
                .upstreamUnreachable(),
                "The file of certificate authorities for \(host) cannot be read; check tls.caFile."
            )
        case CURLE_SSL_CONNECT_ERROR, CURLE_SSL_CIPHER, CURLE_SSL_CERTPROBLEM, CURLE_SSL_ISSUER_ERROR:
            (
                .upstreamUnreachable(),
                "The TLS handshake with \(host) failed; check that the port speaks TLS."
            )
        case CURLE_OPERATION_TIMEDOUT:
            (.upstreamTimedOut(.connect), "The connection to \(host) timed out.")
        case CURLE_OUT_OF_MEMORY: (.internal, "No memory is left for a transfer.")
        case CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_GOT_NOTHING:
            (.upstreamUnreachable(), "\(host) closed the connection before it was established.")
        default: answering(host)
        }
    }

    /// Errors after the request was sent.
    private func answering(_ host: String) -> (CacheError.Code, String) {
        switch code {
        case CURLE_PARTIAL_FILE: (.upstreamProtocol, "\(host) ended the response before its announced length.")
        case CURLE_GOT_NOTHING: (.upstreamProtocol, "\(host) closed the connection without a response.")
        case CURLE_RECV_ERROR, CURLE_SEND_ERROR:
            (.upstreamProtocol, "The connection to \(host) failed during the transfer.")
        case CURLE_UNSUPPORTED_PROTOCOL, CURLE_WEIRD_SERVER_REPLY:
            (.upstreamProtocol, "\(host) sent a response that is neither HTTP/1.1 nor HTTP/2.")
        case CURLE_HTTP2, CURLE_HTTP2_STREAM: (.upstreamProtocol, "The HTTP/2 stream from \(host) failed.")
        // libcurl reports a line beyond its own limit with this code.
        case CURLE_OUT_OF_MEMORY: (.upstreamProtocol, "\(host) sent an overlong header line, or no memory is left.")
        case CURLE_SSL_CONNECT_ERROR, CURLE_SSL_CLIENTCERT:
            (.upstreamUnreachable(), "\(host) rejected the TLS connection; it may require a client certificate.")
        default: (.upstreamProtocol, "The transfer from \(host) failed.")
        }
    }

    private func untrusted(_ host: String) -> String {
        // OpenSSL: 9 `CERT_NOT_YET_VALID`, 10 `CERT_HAS_EXPIRED`, 18 `DEPTH_ZERO_SELF_SIGNED_CERT`.
        switch verification {
        // 0 and 1: the verification stopped before the chain because the name does not match.
        case 0, 1: "The certificate of \(host) is for another name; check the origin's baseURL and the certificate."
        case 9: "The certificate of \(host) is not yet valid; check the certificate and the clocks."
        case 10: "The certificate of \(host) has expired; renew the certificate."
        case 18: "The certificate of \(host) is self-signed; set tls.caFile (of the origin or fleet) to trust it."
        default: "The certificate of \(host) is not trusted; check it, or set tls.caFile (of the origin or fleet)."
        }
    }

    private func unconnected(_ host: String) -> String {
        switch systemError {
        case ECONNREFUSED: "\(host) refused the connection; check that the upstream runs and listens on that port."
        case EADDRNOTAVAIL: "No local port is free for a connection to \(host); widen net.ipv4.ip_local_port_range."
        case ENOBUFS: "The kernel has no buffers for a connection to \(host)."
        case EACCES, EPERM: "A local firewall or route forbids connections to \(host)."
        case EHOSTUNREACH, ENETUNREACH, ENETDOWN:
            isLocal
                ? "This machine has no network route to \(host); check its interfaces and routes."
                : "There is no network route to \(host)."
        default: "The connection to \(host) failed."
        }
    }
}

/// The step where a transfer waits for its upstream.
enum TransferStep: CaseIterable {
    case nameLookup, connect, tls, firstByte, body
    /// Another transfer makes the connection, which both may share.
    case sharedConnection
}

extension CacheError {
    /// The error of an expired timeout; its message has the step that did not end, and the limit in seconds.
    static func upstreamTimedOut(
        _ timeout: Timeout, in step: TransferStep, host: String, after limits: TransferTimeouts
    ) -> CacheError {
        let limit =
            switch timeout {
            case .connect: limits.connect
            case .firstByte: limits.firstByte
            case .idle: limits.idle
            default: limits.total
            }
        let seconds = "\((limit ?? .zero).inSeconds) s"
        let sentence =
            switch step {
            case .nameLookup: "The name lookup of \(host) did not end within \(seconds); check the DNS."
            case .connect: "The TCP connection to \(host) was not established within \(seconds)."
            case .tls: "The TLS handshake with \(host) did not end within \(seconds)."
            case .sharedConnection: "Another transfer did not establish the connection to \(host) within \(seconds)."
            case .firstByte: "\(host) sent no first byte of a response within \(seconds)."
            case .body where timeout == .idle: "\(host) sent no bytes of the response body for \(seconds)."
            case .body: "The transfer from \(host) did not end within \(seconds)."
            }
        return CacheError(.upstreamTimedOut(timeout), sentence)
    }
}
