import CCurl
import CacheCore

/// Tests suspect addresses with a `HEAD` request each, outside of any reader's request. Any response is a success. Not
/// thread-safe: used on one worker's thread only.
///
/// The requests have no credentials and no query. They ask for the path of the request that failed.
struct AddressProbes {
    /// One probe in flight.
    private final class Probe {
        let server: String
        let address: String
        let request: UpstreamAddresses.ProbeRequest
        /// The list of CURLOPT_CONNECT_TO; libcurl requires it until the handle is cleaned up.
        var target: UnsafeMutablePointer<curl_slist>?

        init(_ server: String, _ address: String, _ request: UpstreamAddresses.ProbeRequest) {
            (self.server, self.address, self.request) = (server, address, request)
        }

        deinit { curl_slist_free_all(target) }
    }

    private let multi: UnsafeMutableRawPointer
    private let addresses: UpstreamAddresses
    private let userAgent: String
    private var probes: [UnsafeMutableRawPointer: Probe] = [:]

    init(multi: UnsafeMutableRawPointer, addresses: UpstreamAddresses, userAgent: String) {
        self.multi = multi
        self.addresses = addresses
        self.userAgent = userAgent
    }

    /// The handles in the multi handle.
    var handles: [UnsafeMutableRawPointer] { Array(probes.keys) }

    /// Starts the probes that are due.
    mutating func start() {
        for (server, address, request) in addresses.dueProbes() { start(Probe(server, address, request)) }
    }

    private mutating func start(_ probe: Probe) {
        let bracketed = probe.address.contains(":") ? "[\(probe.address)]" : probe.address
        probe.target = curl_slist_append(nil, "::\(bracketed):")
        guard let easy = curl_easy_init() else { return addresses.probed(probe.server, probe.address, Self.unsent) }
        let isReady = CurlOptions.apply(
            probe: probe.request, to: easy, target: probe.target, userAgent: userAgent,
            context: Unmanaged.passUnretained(probe).toOpaque(), onSocket: Self.openSocket)
        guard isReady, curl_multi_add_handle(multi, easy) == CURLM_OK else {
            curl_easy_cleanup(easy)
            return addresses.probed(probe.server, probe.address, Self.unsent)
        }
        probes[easy] = probe
    }

    /// Ends a probe with libcurl's code. False if `easy` is none.
    mutating func ended(_ easy: UnsafeMutableRawPointer, _ code: CURLcode) -> Bool {
        guard let probe = probes.removeValue(forKey: easy) else { return false }
        var status = 0
        larder_easy_get_long(easy, CURLINFO_RESPONSE_CODE, &status)
        curl_multi_remove_handle(multi, easy)
        curl_easy_cleanup(easy)
        let error = status > 0 ? nil : Self.failure(of: probe.address, code)
        addresses.probed(probe.server, probe.address, error)
        return true
    }

    private static let unsent = CacheError(.internal, "The probe of an upstream address could not be started.")

    private static func failure(of address: String, _ code: CURLcode) -> CacheError {
        let error = CurlError(code: code, systemError: 0)
        let kind =
            code == CURLE_OPERATION_TIMEDOUT ? CacheError.Code.upstreamTimedOut(.connect) : .upstreamUnreachable()
        return CacheError(kind, "A probe of \(address) got no response.", cause: error)
    }

    /// CURLOPT_OPENSOCKETFUNCTION: the address guard applies to probes, too.
    private static let openSocket: curl_opensocket_callback = { context, _, target in
        guard let context, let target else { return CURL_SOCKET_BAD }
        let probe = Unmanaged<Probe>.fromOpaque(context).takeUnretainedValue()
        let bytes = CurlCallbacks.addressBytes(of: target)
        guard probe.request.permission.refusedKind(of: bytes) == nil else { return CURL_SOCKET_BAD }
        return CurlCallbacks.makeSocket(for: target)
    }
}
