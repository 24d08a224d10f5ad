/// The account with which requests to an origin are authorized. Members that a kind of account does not use are nil.
package struct OriginAuth: Hashable, Sendable {
    /// The kind of authorization.
    package enum Kind: String, Hashable, Sendable, CaseIterable {
        /// AWS Signature Version 4: S3, services with its interface, Google Cloud Storage with HMAC keys.
        case s3
        /// A bearer token of an OAuth 2.0 authorization server (RFC 6749).
        case oauth2
        /// A shared access signature of Azure Storage: a query string that is added to each request.
        case sas
    }

    /// The source of the keys for signatures.
    package enum CredentialSource: String, Hashable, Sendable, CaseIterable {
        /// The keys in these settings.
        case `static`
        /// A section of an AWS shared credentials file.
        case file
        /// `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN`.
        case environment
        /// The endpoint of ECS and EKS containers.
        case container
        /// The metadata service of EC2 instances (IMDSv2).
        case instance
        /// `AssumeRoleWithWebIdentity` of STS with a token file.
        case webIdentity
        /// `AssumeRole` of STS, signed with the credentials of another source.
        case assumeRole
    }

    /// The OAuth 2.0 grant.
    package enum Grant: String, Hashable, Sendable, CaseIterable {
        /// RFC 6749 §4.4.
        case clientCredentials
        /// RFC 6749 §6.
        case refreshToken
        /// RFC 7523 §2.1; service accounts of Google.
        case jwtBearer
    }

    /// The scheme in the `Authorization` field of requests with a token.
    package enum Scheme: String, Hashable, Sendable, CaseIterable {
        case bearer = "Bearer"
        case oauth = "OAuth"
    }

    /// Nil: requests are authorized by the origin's header fields only.
    package var kind: Kind?
    package var region = "us-east-1"
    package var service = "s3"
    package var credentials = CredentialSource.environment
    package var accessKeyID: String?
    /// A secret.
    package var secretAccessKey: String?
    /// A secret.
    package var sessionToken: String?
    /// A path below the directory of credentials files. Its content depends on kind and source: AWS credentials file,
    /// web identity token, client file of OAuth 2.0, or query string.
    package var file: String?
    /// The section of the AWS credentials file.
    package var profile = "default"
    package var roleARN: String?
    package var roleSessionName = "larder"
    package var externalID: String?
    /// The source of the credentials that sign `AssumeRole`.
    package var source = CredentialSource.environment
    /// Nil: the regional endpoint of AWS.
    package var stsURL: String?
    /// Nil: according to the environment, otherwise `http://169.254.169.254`.
    package var metadataURL: String?
    package var grant = Grant.clientCredentials
    /// Nil: `token_uri` of the client file.
    package var tokenURL: String?
    package var scope: String?
    package var audience: String?
    package var scheme = Scheme.bearer

    package init() {}
}

/// An API call that returns a link to the content, which expires.
package struct LinkResolution: Hashable, Sendable {
    /// The method of the call.
    package enum Method: String, Hashable, Sendable, CaseIterable {
        case get = "GET"
        case post = "POST"
    }

    /// The URL of the call, with `{path}` for the percent-encoded path below the mount. Nil: content is read below the
    /// base URL.
    package var url: String?
    package var method = Method.get
    /// JSON text, with `{path}` for the path as the content of a JSON string.
    package var body: String?
    /// The place of the link in the JSON response (RFC 6901). Nil: the `Location` of a redirect, or the body as text.
    package var pointer: String?
    /// How long a link is used. Nil: as the link itself states, otherwise one request.
    package var lifetime: Duration?
    /// Whether the header fields and the authorization of the origin are sent with the download, too.
    package var sendsCredentials = false
    /// The hosts that links may name: `host`, `host:port`, `host:*` or `*.suffix`. Empty: the host of the call only.
    package var hosts: [String] = []
    /// The call that lists a folder.
    package var list = FolderListing()

    package init() {}
}

/// An API call that lists the files of a folder. The texts of URLs and bodies have placeholders: `{path}` for the path of the
/// folder below the mount without a slash at its end, `{/path}` for the same with a slash before it, which is empty for the
/// mount itself, `{cursor}` for the place of the next page, and `{offset}` for the number of entries before it.
package struct FolderListing: Hashable, Sendable {
    /// The URL of the call. Nil: the API cannot be asked.
    package var url: String?
    package var method = LinkResolution.Method.get
    /// JSON text; placeholders are the content of JSON strings.
    package var body: String?
    /// The place of the array of entries in the JSON response (RFC 6901). Nil: the document is the array, or has one.
    package var pointer: String?
    /// The place of the name of an entry in its folder. Nil: `/name`.
    package var name: String?
    /// The place of the path of an entry below the mount; it takes the place of ``name``.
    package var path: String?
    /// The query of the paths of files, without `?`.
    package var query: String?
    /// The place of the length of an entry. Nil: `/size`.
    package var size: String?
    /// The place of the time of the last change of an entry. Nil: `/modified`.
    package var modified: String?
    /// The place of the kind of an entry. Nil: `/type`.
    package var type: String?
    /// The kind of folders. Nil: `dir`.
    package var folder: String?
    /// The place of the cursor of the next page in the response; nil: there is none.
    package var cursor: String?
    /// The place of a boolean that tells whether there is a next page; nil: the cursor tells it.
    package var more: String?
    /// The URL of the call for the next page; `{cursor}` alone is the cursor as a URL of the same host. Nil: ``url``.
    package var nextURL: String?
    /// The body of that call. Nil: ``body``, or none with a ``nextURL``.
    package var nextBody: String?

    package init() {}
}
