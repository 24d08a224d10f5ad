import ArgumentParser
import CacheAPI
import CacheCore
import ReaderAccess

/// `larder sign`: makes a signed content URL with a key of a running service.
struct SignCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "sign", abstract: "Make a signed content URL with a key of a running service.",
        discussion: "Whoever has the URL can read the content until it expires. It needs no other token.")

    @Argument(help: "Path of the content: /o/ORIGIN/PATH, with its query if it has one.")
    var path: String

    @Option(name: .long, help: ArgumentHelp("Validity from now on, such as 12h.", valueName: "duration"))
    var expires = "1h"

    @Option(name: .long, help: "Signed content: exact (this path), or prefix (its directory and all below).")
    var scope = SignatureRequest.Scope.exact

    @Option(name: .long, help: "Form: query, path (for playlists with relative URIs), or uriSigning (RFC 9246).")
    var form = SignatureRequest.Form.query

    @Option(name: .long, help: "Key; without it the last one in the order of names.")
    var kid: String?

    @OptionGroup var service: ServiceOptions

    var needs: [String] { ["POST /v1/signatures"] }

    func validate() throws { _ = try TokenRights.duration(expires, option: "--expires") }

    func perform(_ client: ServiceClient) throws {
        let signed: APIDocument<SignedURLDocument> = try client.document(
            ServiceRequest(.post, "/v1/signatures", body: try body))
        say(service.json ? signed.text : "\(client.address.url)\(signed.value.url)")
    }

    /// The body of the request: `SignatureRequest` of the API.
    var body: JSON {
        get throws {
            let validity = try TokenRights.duration(expires, option: "--expires")
            return JSON(present: [
                "path": .string(path), "scope": .string(scope.rawValue), "form": .string(form.rawValue),
                "expiresInSeconds": .seconds(validity), "kid": kid.map(JSON.string),
            ])
        }
    }
}

extension SignatureRequest.Scope: ExpressibleByArgument {}
extension SignatureRequest.Form: ExpressibleByArgument {}
