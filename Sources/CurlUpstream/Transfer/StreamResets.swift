import CCurl

/// Tells upstreams at once of streams that were cut; used on one worker's thread only.
///
/// libcurl (7.88 to 8.14, https://github.com/curl/curl/issues/17611) leaves the reset of an HTTP/2 stream in a buffer of the
/// connection until something else happens there. Where nothing does, the upstream sends the window to its end. So: 1. The
/// handle of the cut stream is given to the multi once more. 2. It finds its connection, and is about to ask anew. 3. A
/// change of its pause has libcurl send what lies in that buffer. 4. It is stopped before it asks for anything.
struct StreamResets {
    private let multi: UnsafeMutableRawPointer
    private(set) var handles: Set<UnsafeMutableRawPointer> = []

    init(multi: UnsafeMutableRawPointer) { self.multi = multi }

    /// Takes the handle of a stream that was cut; false where it could not be taken.
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

    /// Takes a handle out of the multi that has done its part; false where it is none of these.
    mutating func ended(_ easy: UnsafeMutableRawPointer) -> Bool {
        guard handles.remove(easy) != nil else { return false }
        curl_multi_remove_handle(multi, easy)
        return true
    }

    private static let flush: curl_prereq_callback = { easy, _, _, _, _ in
        curl_easy_pause(easy, CURLPAUSE_SEND)
        return CURL_PREREQFUNC_ABORT
    }

    /// The connection is gone, and no other one is wanted.
    private static let noSocket: curl_opensocket_callback = { _, _, _ in CURL_SOCKET_BAD }

    private static let nothing: curl_write_callback = { _, _, _, _ in 0 }
}
