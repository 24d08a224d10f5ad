/// The examples of RFC 7515 appendix A and RFC 8037 appendix A.
enum TokenVectors {
    static let payload =
        "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"

    /// RFC 7515 A.1.
    static let hs256 = "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.\(payload).dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
    static let secretKey =
        #"{"kty":"oct","k":"AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow"}"#

    /// RFC 7515 A.2.
    static let rs256 =
        "eyJhbGciOiJSUzI1NiJ9.\(payload).cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7"
        + "AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK"
        + "5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqv"
        + "hJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw"
    static let rsaModulus =
        "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4Ql"
        + "L-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUs"
        + "LA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoud"
        + "F8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ"
    static let rsaKey = #"{"kty":"RSA","n":"\#(rsaModulus)","e":"AQAB"}"#

    /// RFC 7515 A.3.
    static let es256 =
        "eyJhbGciOiJFUzI1NiJ9.\(payload).DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSA"
        + "pmWQxfKTUJqPP3-Kg6NU1Q"
    static let p256Key =
        #"{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_"#
        + #"tue659LNpXW6pCyStikYjKIWI5a0"}"#

    /// RFC 7515 A.4; its payload is the text `Payload`.
    static let es512 =
        "eyJhbGciOiJFUzUxMiJ9.UGF5bG9hZA.AdwMgeerwtHoh-l192l60hp9wAHZFVJbLfD_UxMi70cwnZOYaRI1bKPWROc-mZZq"
        + "wqT2SI-KGDKB34XO0aw_7XdtAG8GaSwFKdCAPZgoXD2YBJZCPEX3xKpRwcdOO8KpEHwJjyqOgzDO7iKvU8vcnwNrmxYbSW9E"
        + "RBXukOXolLzeO_Jn"
    static let p521Key =
        #"{"kty":"EC","crv":"P-521","x":"AekpBQ8ST8a8VcfVOTNl353vSrDCLLJXmPk06wTjxrrjcBpXp5EOnYG_NjFZ6OvLF"#
        + #"V1jSfS9tsz4qUxcWceqwQGk","y":"ADSmRA43Z1DSNx_RvcLI87cdL07l6jQyyBXMoxVg_l2Th-x3S1WDhjDly79ajL4Kkd"#
        + #"0AZMaZmh9ubmf63e3kyMj2"}"#

    /// RFC 7515 A.5.
    static let unsecured = "eyJhbGciOiJub25lIn0.\(payload)."

    /// RFC 8037 A.4; its payload is the text `Example of Ed25519 signing`.
    static let edDSA =
        "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AI"
        + "bQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg"
    static let ed25519Key = #"{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#

    /// PS256 with a salt of 32 bytes, made with the Python package cryptography.
    static let ps256 =
        "eyJhbGciOiJQUzI1NiJ9.eyJzdWIiOiJhIn0.MOOgT9HJApRMN1zpfx3uqPACOMn90hPJ--pnvtO4fzwktJI-aiH5W2SCHZz"
        + "PWnFRP1y0xfFfoaHpVx_WVyJpr62708i5_EQlLDkYQAzvNprXwmxwHY793V2fcQ5P07-HWyNylu3AbpAeGjPHRq98XcVR_qE"
        + "oKFcyCjTa_-7BkdRfXThbAhmhToZr11iwU6mo8V6WKA16nl20KcfpuqvY9uOeLP7cONn6g5ibGdrQgNwkDkMkLVz952qJBjm"
        + "Pm7mOFgW6UHHw6c2HhMX20kG1cIIAGW36SJXZw6tk83vNeVeakFN7KfAMyXXpVMoWG6-YtaEBoeCG0WpKT2nmu2GI5g"
    static let ps256Key =
        #"{"kty":"RSA","n":"s0Up7v6Xvu2O1t7uwSATsQ97y_BNAzAtZXuVhUWgmgtUkigaNmj-JIQVtGlPyZDmT3-Gb1bU4RvTv4"#
        + #"oL638BkvlmlwYxPqjTp26jf9TqDGe32Y9ltX-6ddnMhak35nVtD2xqWTZ0mHvKRmjBh3LIk-WdTmDQfExSZfM2ExLElOZqTY"#
        + #"_Dw10MqCBppqrwkqlT7mxMDB47fkFOT7RtlyZYAv-hc0aLnCi9ykIofdS9TBv8u9cRM4c3ACKnRDR2eT1YfDEQVYcPsPS43c"#
        + #"NWnzL8wpbdoGL02vq4uU3uw7StkxR171m7ffzYC-NRtTj1liCCauO2jfqf7qH9dBKIm25hcw","e":"AQAB"}"#

    static let all = [
        (hs256, secretKey, "HS256"), (rs256, rsaKey, "RS256"), (es256, p256Key, "ES256"), (es512, p521Key, "ES512"),
        (edDSA, ed25519Key, "EdDSA"), (ps256, ps256Key, "PS256"),
    ]
}
