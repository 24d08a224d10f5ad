/// Settings of accounts, links and forwarded fields.
extension Setting<OriginSettings> {
    static var accounts: [Setting] {
        signatures + tokens + resolution + folderListing + [
            Setting(
                "forward", list: \.forwarded, upTo: OriginSettings.maxForwardedFields, .fieldName,
                "request header fields that the upstream gets from the reader, such as `Authorization`; each value has "
                    + "assets of its own"),
            Setting(
                "forwardShared", \.sharesForwarded, .flag,
                "share the assets of all values of these fields: each reader's right is proved by a request for one "
                    + "byte with the reader's fields, at most once a minute for each file"),
        ]
    }

    /// AWS Signature Version 4.
    private static var signatures: [Setting] {
        [
            Setting(
                "auth.type", optional: \.auth.kind, .choice,
                "authorization of requests: `s3` (AWS Signature Version 4), `oauth2` (bearer tokens), or `sas` (shared "
                    + "access signature of Azure)"
            ).checked { $0.auth.fault(of: "type") },
            Setting("auth.region", \.auth.region, .word("us-east-1"), "region in the signature")
                .checked { $0.auth.fault(of: "region") },
            Setting("auth.service", \.auth.service, .word("s3"), "service in the signature")
                .checked { $0.auth.fault(of: "service") },
            Setting(
                "auth.credentials", \.auth.credentials, .choice,
                "source of the keys: these settings (`static`), an AWS credentials `file`, the `environment`, the "
                    + "`container` or `instance` metadata, a `webIdentity` token, or `assumeRole`"
            ).checked { $0.auth.fault(of: "credentials") },
            Setting("auth.accessKeyId", optional: \.auth.accessKeyID, .word("AKIAIOSFODNN7EXAMPLE"), "for `static`")
                .checked { $0.auth.fault(of: "accessKeyId") },
            secret("auth.secretAccessKey", \.auth.secretAccessKey, "for `static`")
                .checked { $0.auth.fault(of: "secretAccessKey") },
            secret("auth.sessionToken", \.auth.sessionToken, "for `static`, with temporary keys")
                .checked { $0.auth.fault(of: "sessionToken") },
            Setting(
                "auth.file", optional: \.auth.file, .insidePath,
                "file below `credentialsDirectory`: AWS credentials, web identity token, OAuth 2.0 client, or SAS"
            ).checked { $0.auth.fault(of: "file") },
            Setting("auth.profile", \.auth.profile, .word("default"), "section of the AWS credentials file")
                .checked { $0.auth.fault(of: "profile") },
            Setting(
                "auth.roleArn", optional: \.auth.roleARN, .word("arn:aws:iam::123456789012:role/media"),
                "role for `assumeRole` and `webIdentity`"
            ).checked { $0.auth.fault(of: "roleArn") },
            Setting("auth.roleSessionName", \.auth.roleSessionName, .word("larder"), "name of the role's session")
                .checked { $0.auth.fault(of: "roleSessionName") },
            Setting("auth.externalId", optional: \.auth.externalID, .word("media"), "external ID for `assumeRole`")
                .checked { $0.auth.fault(of: "externalId") },
            Setting("auth.source", \.auth.source, .choice, "source of the keys that sign `assumeRole`")
                .checked { $0.auth.fault(of: "source") },
            Setting(
                "auth.stsURL", optional: \.auth.stsURL, .callURL,
                "endpoint of STS; the default is that of the region at AWS"
            ).checked { $0.auth.fault(of: "stsURL") },
            Setting(
                "auth.metadataURL", optional: \.auth.metadataURL, .callURL,
                "metadata service for `container` and `instance`; the default is that of the environment or "
                    + "`http://169.254.169.254`"
            ).checked { $0.auth.fault(of: "metadataURL") },
        ]
    }

    /// OAuth 2.0.
    private static var tokens: [Setting] {
        [
            Setting(
                "auth.grant", \.auth.grant, .choice,
                "OAuth 2.0 grant: `clientCredentials`, `refreshToken` or `jwtBearer` (service accounts)"
            ).checked { $0.auth.fault(of: "grant") },
            Setting(
                "auth.tokenURL", optional: \.auth.tokenURL, .callURL,
                "token endpoint; the default is `token_uri` of the client file"
            ).checked { $0.auth.fault(of: "tokenURL") },
            Setting("auth.scope", optional: \.auth.scope, .text("a scope", example: "read"), "scope of the tokens")
                .checked { $0.auth.fault(of: "scope") },
            Setting(
                "auth.audience", optional: \.auth.audience, .text("an audience", example: "https://api.example"),
                "audience of the tokens"
            ).checked { $0.auth.fault(of: "audience") },
            Setting("auth.scheme", \.auth.scheme, .choice, "scheme in `Authorization`: `Bearer` or `OAuth`")
                .checked { $0.auth.fault(of: "scheme") },
        ]
    }

    /// Links that expire.
    private static var resolution: [Setting] {
        [
            Setting(
                "resolve.url", optional: \.resolution.url, .callURL,
                "API call that returns a link to the content, with `{path}` for the path below the mount"),
            Setting("resolve.method", \.resolution.method, .choice, "method of the call"),
            Setting(
                "resolve.body", optional: \.resolution.body, .text("JSON text", example: #"{"path":"/{path}"}"#),
                "JSON body of the call, with `{path}` inside a string"),
            Setting(
                "resolve.pointer", optional: \.resolution.pointer, .pointer,
                "JSON pointer (RFC 6901) to the link in the response; without it the link is the `Location` of a "
                    + "redirect or the body as text"),
            Setting(
                "resolve.lifetime", optional: \.resolution.lifetime, .duration(example: "4m"),
                "how long a link is used; the default is what the link states, otherwise one request"),
            Setting(
                "resolve.sendCredentials", \.resolution.sendsCredentials, .flag,
                "send the header fields and the authorization of the origin with the download, too"),
            Setting(
                "resolve.hosts", list: \.resolution.hosts, upTo: LinkResolution.maxHosts, .hostPattern,
                "hosts that links may name: `host`, `host:port`, `host:*` or `*.suffix`; without it the host of the "
                    + "call only"),
        ]
    }

    /// Folders of link APIs.
    private static var folderListing: [Setting] {
        typealias List = SettingPath<OriginSettings, String?>
        func pointer(_ key: String, _ property: List, _ meaning: String) -> Setting {
            Setting("resolve.list." + key, optional: property, .pointer, "JSON pointer to " + meaning)
        }
        return [
            Setting(
                "resolve.list.url", optional: \.resolution.list.url, .callURL,
                "API call that lists a folder, with `{path}` or `{/path}` for its path, `{cursor}` and `{offset}`"),
            Setting("resolve.list.method", \.resolution.list.method, .choice, "method of the call"),
            Setting(
                "resolve.list.body", optional: \.resolution.list.body,
                .text("JSON text", example: #"{"path":"{/path}"}"#),
                "JSON body of the call, with the same placeholders inside strings"),
            pointer("pointer", \.resolution.list.pointer, "the array of entries; without it the only array"),
            pointer("name", \.resolution.list.name, "the name of an entry in its folder (`/name`)"),
            pointer(
                "path", \.resolution.list.path,
                "the path of an entry below the mount, if its name is not its path in the folder"),
            Setting(
                "resolve.list.query", optional: \.resolution.list.query, .word("alt=media"),
                "query of the paths of listed files"),
            pointer("size", \.resolution.list.size, "the length of an entry (`/size`)"),
            pointer("modified", \.resolution.list.modified, "the time of the last change of an entry (`/modified`)"),
            pointer("type", \.resolution.list.type, "the kind of an entry (`/type`)"),
            Setting(
                "resolve.list.folder", optional: \.resolution.list.folder, .word("folder"), "kind of folders (`dir`)"),
            pointer("cursor", \.resolution.list.cursor, "the cursor of the next page"),
            pointer(
                "more", \.resolution.list.more,
                "a boolean that tells whether there is a next page; without it the cursor tells it"),
            Setting(
                "resolve.list.nextURL", optional: \.resolution.list.nextURL, .nextURL,
                "call for the next page, or `{cursor}` if the cursor is its URL; the default is that for the first page"
            ),
            Setting(
                "resolve.list.nextBody", optional: \.resolution.list.nextBody,
                .text("JSON text", example: #"{"cursor":"{cursor}"}"#),
                "JSON body of the call for the next page"),
        ]
    }

    /// A secret text: read unchanged, written masked in configurations. The store seals it, and the API masks it.
    private static func secret(
        _ key: String, _ property: SettingPath<OriginSettings, String?>, _ meaning: String
    ) -> Setting {
        Setting(
            key, meaning, isSecret: true,
            parse: { text, settings throws(SettingFault) in
                guard !text.scalar.isEmpty else { throw SettingFault("is empty") }
                settings[keyPath: property] = text.scalar
            },
            write: { settings in settings[keyPath: property].map { _ in .scalar(OriginSettings.mask) } },
            member: SettingMember(key, property, SettingCodec<String>.text("a text", example: "").orNone))
    }
}

extension OriginAuth {
    /// The fault of the member `key`, if that is the first invalid one.
    fileprivate func fault(of key: String) -> SettingFault? {
        fault.flatMap { $0.key == key ? SettingFault($0.message) : nil }
    }
}

extension LinkResolution {
    /// The largest number of patterns in `hosts`.
    static let maxHosts = 32
}

extension SettingCodec<String> {
    /// A text without blanks and control characters.
    fileprivate static func word(_ example: String) -> SettingCodec {
        text("a text without blanks", example: example).limited(
            "a text of at most 2048 bytes without blanks", schema: ["maxLength": 2048]
        ) { $0.utf8.count <= 2048 && $0.utf8.allSatisfy { $0 > 32 && $0 < 127 } }
    }

    /// An absolute http or https URL without user and fragment; it may have a query.
    fileprivate static var callURL: SettingCodec {
        text("an http or https URL", example: "https://api.example/token").limited(
            "an http or https URL without user and fragment", schema: ["maxLength": 2048], where: isCallURL)
    }

    /// The same, or `{cursor}`.
    fileprivate static var nextURL: SettingCodec {
        text("an http or https URL", example: "{cursor}").limited(
            "an http or https URL without user and fragment, or {cursor}", schema: ["maxLength": 2048]
        ) { $0 == "{cursor}" || isCallURL($0) }
    }

    private static func isCallURL(_ url: String) -> Bool {
        let scheme = url.prefix { $0 != ":" }.lowercased()
        let rest = url.dropFirst(scheme.count)
        let authority = rest.dropFirst(3).prefix { $0 != "/" && $0 != "?" }
        return ["http", "https"].contains(scheme) && rest.hasPrefix("://") && !authority.isEmpty
            && !authority.contains("@") && url.utf8.count <= 2048
            && url.utf8.allSatisfy { $0 > 32 && $0 < 127 && $0 != UInt8(ascii: "#") }
    }

    /// A JSON pointer (RFC 6901).
    fileprivate static var pointer: SettingCodec {
        text("a JSON pointer", example: "/href").limited("a JSON pointer such as /href") { $0.hasPrefix("/") }
    }

    /// A pattern of host names.
    static var hostPattern: SettingCodec {
        text("a host", example: "*.example").limited("a host, host:port, host:* or *.suffix") { pattern in
            pattern.utf8.count <= 260 && !pattern.contains("/") && !pattern.contains("@")
                && pattern.utf8.allSatisfy { $0 > 32 && $0 < 127 }
        }
    }
}
