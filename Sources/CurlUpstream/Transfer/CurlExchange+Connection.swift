import CCurl
import CacheCore
import Glibc

/// The connection of the current hop: the choice of its address, the check before its reuse, and the evidence about
/// addresses.
extension CurlExchange {
    /// The key of the current hop's server in the address table.
    var server: String { "\(url.host):\(url.port)" }

    /// The addresses that libcurl shall try in the next pass; nil: it resolves the host itself. Called before each pass.
    func route() -> [String]? {
        // libcurl tries an address itself, without a resolution.
        guard CurlCallbacks.addressBytes(of: url.host).isEmpty else { return nil }
        let isResolved = if case .finished = hop.resolution { true } else { false }
        guard let order = addresses.order(of: server, isResolved: isResolved) else {
            if !isResolved { hop.resolution = .collecting([]) }
            return nil
        }
        hop.resolution = .finished
        hop.choose(from: order)
        timers.attemptBegan(of: hop.passes, at: now())
        return hop.candidates
    }

    /// Has libcurl offer the next address after one was collected. It would otherwise wait for a timer: a change of the
    /// pause state makes it continue.
    func collectNext() {
        guard case .collecting(let found) = hop.resolution, !found.isEmpty else { return }
        curl_easy_pause(easy, CURLPAUSE_RECV)
        curl_easy_pause(easy, CURLPAUSE_CONT)
    }

    /// Whether the addresses of the host are being collected.
    var isCollecting: Bool { if case .collecting = hop.resolution { true } else { false } }

    /// The connect timeout for libcurl, in milliseconds; 0: its default. It is a second longer than that of `timers`,
    /// which ends the attempt while the step that did not end is still known.
    var connectMilliseconds: Int {
        guard let next = timers.next else { return 0 }
        return Int(min(max(now().duration(to: next.at).wholeMilliseconds, 0) + 1000, Int64(Int32.max)))
    }

    /// A socket was created for an address.
    ///
    /// Unacknowledged data ends a connection within about the connect timeout: the kernel counts from the first
    /// retransmission. A slow server acknowledges the request, so that its connection stays.
    func opened(_ socket: Int32, for address: String) {
        let now = now()
        hop.attempts.append(HopConnection.Attempt(address: address, at: now))
        hop.openedSocket = socket
        sockets.opened(socket, at: now)
        guard let limit = transfer.request.timeouts.connect else { return }
        var milliseconds = UInt32(clamping: max(1, limit.wholeMilliseconds * 3 / 4))
        // Best effort: without it, the timeout of the first byte ends the transfer.
        setsockopt(
            socket, Int32(IPPROTO_TCP), TCP_USER_TIMEOUT, &milliseconds, socklen_t(MemoryLayout<UInt32>.size))
    }

    /// Checks a reused connection before the request is sent. False: the request is repeated on a new connection.
    ///
    /// - A second kept connection is not used: libcurl tries it because the first one was dead.
    /// - A connection that is older than a failure of its address is not used.
    /// - Waiting bytes answer no request, and a response after them cannot be distinguished from them (RFC 9112 §9.2).
    ///   TLS connections receive records outside of responses, for example session tickets.
    func mayUse(_ address: String, localPort: Int32, remotePort: Int32) -> Bool {
        guard !hop.hasOpenedSocket, !hop.needsFresh else { return true }
        if let dead = hop.address {
            addresses.distrust(server, dead)
            hop.needsFresh = true
        } else {
            let opened = sockets.opened(localPort: localPort, remotePort: remotePort)
            hop.needsFresh =
                !addresses.mayReuse(server, address, opened: opened)
                || url.scheme == .http && sockets.haveInput(localPort: localPort, remotePort: remotePort)
        }
        return !hop.needsFresh
    }

    /// Whether the hop is repeated after a pass that sent no request: the addresses are known now, others can be tried, or
    /// `mayUse` has refused a connection.
    func repeatsHop(after code: CURLcode) -> Bool {
        if case .collecting(let found) = hop.resolution, code == CURLE_COULDNT_CONNECT, !found.isEmpty {
            clock.note(easy)
            addresses.resolved(server, to: found)
            hop.resolution = .finished
            return true
        }
        if hop.needsFresh, !hop.hasOpenedSocket, code == CURLE_ABORTED_BY_CALLBACK {
            hop.address = nil
            timers.hopBegan(at: now())
            return true
        }
        guard hop.address == nil, code == CURLE_COULDNT_CONNECT || code == CURLE_OPERATION_TIMEDOUT, hop.passes > 1
        else { return false }
        if !hop.isLocal(systemError) {
            for attempt in hop.attempts { noteFailure(of: attempt.address, unaccepted(attempt.address)) }
        }
        return hop.exhaust()
    }

    /// The `errno` of the current pass; 0: none.
    private var systemError: Int32 {
        var system = 0
        larder_easy_get_long(easy, CURLINFO_OS_ERRNO, &system)
        return Int32(truncatingIfNeeded: system)
    }

    /// The request is about to be sent on a connection to `address`.
    func noteConnection(to address: String) {
        hop.address = address
        let now = now()
        guard let attempt = hop.attempts.last(where: { $0.address == address }) else { return }
        addresses.connected(server, address, after: attempt.at.duration(to: now))
        for loser in hop.losers(against: address) { noteFailure(of: loser, unaccepted(loser)) }
    }

    /// The hop has ended. An error before the response is evidence against the addresses that were tried.
    func noteEnd(_ error: CacheError?) {
        guard let error, !error.isLocal, case .awaited = body, !clock.isAnswered else { return }
        guard error.code.isOfBrokenAddress else { return }
        // The limits of a window and of its reader end before those of an address.
        if case .upstreamTimedOut(let timeout) = error.code, ![.connect, .firstByte].contains(timeout) { return }
        if let address = hop.address {
            if (error.cause as? CurlError)?.systemError == ETIMEDOUT { addresses.distrust(server, address) }
            return noteFailure(of: address, error)
        }
        for attempt in hop.attempts { noteFailure(of: attempt.address, error) }
    }

    private func noteFailure(of address: String, _ error: CacheError) {
        let probe = UpstreamAddresses.ProbeRequest(
            url: url.redacted, tls: transfer.request.tls, timeouts: transfer.request.timeouts, permission: permission)
        addresses.failed(server, address, error, probe: probe)
    }

    private func unaccepted(_ address: String) -> CacheError {
        CacheError(.upstreamTimedOut(.connect), "\(address) did not accept a connection in time.")
    }
}

extension HopConnection {
    /// Whether the cause of a failed connection with this `errno` is on this machine.
    ///
    /// A router of the network can report some of them too. A connected datagram socket sends nothing, so that its
    /// errors are of this machine.
    func isLocal(_ error: Int32) -> Bool {
        switch error {
        case EADDRNOTAVAIL, ENOBUFS: true
        case EACCES, EPERM, ENETDOWN, ENETUNREACH, EHOSTUNREACH:
            hasOpenedSocket && attempts.allSatisfy { Self.hasNoRoute(to: $0.address) }
        default: false
        }
    }

    private static func hasNoRoute(to address: String) -> Bool {
        let bytes = CurlCallbacks.addressBytes(of: address)
        guard bytes.count == 4 || bytes.count == 16 else { return false }
        let probe = socket(
            bytes.count == 4 ? AF_INET : AF_INET6, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard probe >= 0 else { return false }
        defer { close(probe) }
        var target = sockaddr_in6()
        let length: Int
        if bytes.count == 4 {
            length = MemoryLayout<sockaddr_in>.size
            withUnsafeMutableBytes(of: &target) { target in
                var address = sockaddr_in()
                address.sin_family = sa_family_t(AF_INET)
                address.sin_port = 9
                withUnsafeMutableBytes(of: &address.sin_addr) { $0.copyBytes(from: bytes) }
                withUnsafeBytes(of: address) { target.copyMemory(from: $0) }
            }
        } else {
            length = MemoryLayout<sockaddr_in6>.size
            target.sin6_family = sa_family_t(AF_INET6)
            target.sin6_port = 9
            withUnsafeMutableBytes(of: &target.sin6_addr) { $0.copyBytes(from: bytes) }
        }
        return withUnsafePointer(to: &target) { target in
            target.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(probe, $0, socklen_t(length)) != 0 }
        }
    }
}
