import CCurl
import CacheCore
import Glibc

/// What libcurl said, for the log.
struct CurlError: Error, CustomStringConvertible {
    let code: CURLcode
    /// The system's error underneath; 0 where there was none.
    let systemError: Int32
    /// What was found of the certificate, as a number of OpenSSL's.
    var verification = 0

    var description: String {
        let system = systemError == 0 ? "" : ", \(String(cString: strerror(systemError)))"
        return "curl \(code.rawValue): \(String(cString: curl_easy_strerror(code)))\(system)"
    }

    /// The error as Larder names it, in words an administrator can act on; `host` is `name:port`.
    func cacheError(host: String, isConnected: Bool) -> CacheError {
        let (code, message) = isConnected ? answering(host) : connecting(host)
        return CacheError(code, message, cause: self)
    }

    /// Before there was a connection.
    private func connecting(_ host: String) -> (CacheError.Code, String) {
        switch code {
        case CURLE_COULDNT_RESOLVE_HOST:
            (.upstreamUnreachable(), "The name of \(host) could not be resolved; check its spelling and the DNS.")
        case CURLE_COULDNT_CONNECT where [EMFILE, ENFILE].contains(systemError):
            (.overloaded, "There is no descriptor left for a connection with \(host); raise the limit of open files.")
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
                "No TLS connection with \(host) came about; check that it speaks TLS on that port."
            )
        case CURLE_OPERATION_TIMEDOUT:
            (.upstreamTimedOut(.connect), "No connection with \(host) came about in time.")
        case CURLE_OUT_OF_MEMORY: (.internal, "There is no memory left for a transfer.")
        case CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_GOT_NOTHING:
            (.upstreamUnreachable(), "\(host) ended the connection before it was established.")
        default: answering(host)
        }
    }

    /// After the request was sent.
    private func answering(_ host: String) -> (CacheError.Code, String) {
        switch code {
        case CURLE_PARTIAL_FILE: (.upstreamProtocol, "\(host) ended the response before its promised length.")
        case CURLE_GOT_NOTHING: (.upstreamProtocol, "\(host) closed the connection without an answer.")
        case CURLE_RECV_ERROR, CURLE_SEND_ERROR: (.upstreamProtocol, "\(host) broke the connection.")
        case CURLE_UNSUPPORTED_PROTOCOL, CURLE_WEIRD_SERVER_REPLY:
            (.upstreamProtocol, "\(host) did not answer in HTTP/1.1 or HTTP/2.")
        case CURLE_HTTP2, CURLE_HTTP2_STREAM: (.upstreamProtocol, "\(host) broke the HTTP/2 stream.")
        // libcurl has no other word for a line that is longer than it takes.
        case CURLE_OUT_OF_MEMORY: (.upstreamProtocol, "\(host) sent a line that is too long, or no memory is left.")
        case CURLE_SSL_CONNECT_ERROR, CURLE_SSL_CLIENTCERT:
            (.upstreamUnreachable(), "\(host) refused the TLS connection; it may ask for a client's certificate.")
        default: (.upstreamProtocol, "The transfer from \(host) failed.")
        }
    }

    private func untrusted(_ host: String) -> String {
        switch verification {
        // 1: the chain was not looked at, since the name was wrong already.
        case 0, 1: "The certificate of \(host) is for another name; check the origin's baseURL and the certificate."
        case 9: "The certificate of \(host) is not yet valid; check it, and the clocks."
        case 10: "The certificate of \(host) has expired; it must be renewed."
        case 18: "The certificate of \(host) is self-signed; set the origin's tls.caFile to it to trust it."
        default: "The certificate of \(host) is not trusted; check it, or set the origin's tls.caFile."
        }
    }

    private func unconnected(_ host: String) -> String {
        switch systemError {
        case ECONNREFUSED: "\(host) refused the connection; check that the upstream runs and listens on that port."
        case EHOSTUNREACH, ENETUNREACH: "There is no network route to \(host)."
        default: "No connection with \(host) could be made."
        }
    }
}

extension CacheError {
    /// What a time-out of an upstream transfer says.
    static func upstreamTimedOut(_ timeout: Timeout, host: String, after limits: TransferTimeouts) -> CacheError {
        func seconds(_ limit: Duration?) -> String { "\((limit ?? .zero).inSeconds) s" }
        let sentence =
            switch timeout {
            case .connect: "No connection with \(host) came about within \(seconds(limits.connect))."
            case .firstByte: "\(host) sent no response within \(seconds(limits.firstByte))."
            case .idle: "\(host) sent nothing for \(seconds(limits.idle)) in the middle of the response."
            default: "The transfer from \(host) was not done within \(seconds(limits.total))."
            }
        return CacheError(.upstreamTimedOut(timeout), sentence)
    }
}
