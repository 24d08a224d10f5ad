import CCurl

/// Sends the resets of cut HTTP/2 streams without delay. Not thread-safe: used on one worker's thread only.
///
/// libcurl (7.88 to 8.14, https://github.com/curl/curl/issues/17611) leaves the reset of a stream in the connection's
/// send buffer until other activity on the connection flushes it. On an idle connection the upstream keeps sending the
/// window until then. Workaround:
/// 1. The handle of the cut stream is added to the multi handle again.
/// 2. It finds its connection and is about to send a new request.
/// 3. A change of its pause state makes libcurl flush the buffer.
/// 4. The request is aborted before it is sent.
struct StreamResets {
    private let multi: UnsafeMutableRawPointer
    /// Handles that are in the multi handle for this purpose.
    private(set) var handles: Set<UnsafeMutableRawPointer> = []

    init(multi: UnsafeMutableRawPointer) { self.multi = multi }

    /// Reuses the handle of a cut stream to flush its reset. False if that is not possible; the caller then frees the
    /// handle.
    mutating func send(with easy: UnsafeMutableRawPointer) -> Bool {
        guard larder_easy_set_on_header(easy, Self.nothing, nil) == CURLE_OK,
            larder_easy_set_on_body(easy, Self.nothing, nil) == CURLE_OK,
            larder_easy_set_on_socket(easy, Self.noSocket, nil) == CURLE_OK,
            larder_easy_set_on_request(easy, Self.flush, easy) == CURLE_OK,
            curl_multi_add_handle(multi, easy) == CURLM_OK
        else { return false }
        handles.insert(easy)
        return true
    }

    /// Removes a handle from the multi handle after its reset was sent. False if it is not one of `handles`.
    mutating func ended(_ easy: UnsafeMutableRawPointer) -> Bool {
        guard handles.remove(easy) != nil else { return false }
        curl_multi_remove_handle(multi, easy)
        return true
    }

    /// CURLOPT_PREREQFUNCTION: steps 3 and 4.
    private static let flush: curl_prereq_callback = { easy, _, _, _, _ in
        curl_easy_pause(easy, CURLPAUSE_SEND)
        return CURL_PREREQFUNC_ABORT
    }

    /// The connection is closed already; no new one is opened.
    private static let noSocket: curl_opensocket_callback = { _, _, _ in CURL_SOCKET_BAD }

    /// Accepts no bytes.
    private static let nothing: curl_write_callback = { _, _, _, _ in 0 }
}
