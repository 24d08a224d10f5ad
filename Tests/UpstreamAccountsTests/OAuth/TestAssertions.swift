/// A private key that exists for these tests only, and assertions that OpenSSL signed with it.
enum TestAssertions {
    static let privateKey = """
        -----BEGIN PRIVATE KEY-----
        MIIEvgIBADANBgkqhkiG9w0BAQEFAASCBKgwggSkAgEAAoIBAQDJBo6MGyX7gfY8
        /xJ3Ehkeo/k05snVzGagzM6pOVTQvPKvtVGWRNHWmhbMc3Fv87oSa5rKjk1P1Zya
        WXCpYegicDFVlPU2EsdKKtpYdpgnUwN6+mFYx9be/BZ+FBzr1jpOeD/QaaXaCiys
        rOTYqPxOkkLzvLkLuTBBkjkTGwZEgWBIKpIEEskPf3wMIrrK56f3yir5+51iSJmJ
        eRV+Awl7lu1Uv7LV2Ku/RCrl2zZa/LKVfNStpK8ECrScPfxoK7rfiVSa1XjnMvKE
        +AM+5HFFiWcIvxCgJdtFSne/vDEeT9ZU7bR7zth3b8fjvhL6dMSUEKP8UCq4v3oH
        gwiqL2vpAgMBAAECggEADTKlATB3Geq6Y97LM44N9XkGeiFSIaXocajV7ejvAeql
        yZYPOTJjecIRZR2J1l5wr5eTngt2//AiS+/l+aONPgA8/PAT+UIvsKrc6ESWULPz
        3TW7ARJ9r5Nqq/ReFw2wM56pceFocMbiOqP556Tl4QgGj+yqqXO1u1hXmZgt8n6o
        2GOg1uDy0tG6qPPzoFePEN/vPXeDCB7gK4e9M5QXw3SbzFwMYQxw+nGhc71/i3lo
        9HEcXP097CIQwg86wtOksIWrpy6dKYIDypij589+imlRtH7eNNlhgI/gC4H9z6ta
        PEyISuIkLDGwbLWhPufOn2bBe9hG8sS1iNlmxz0D0QKBgQDkwitYgj5MthOaI9cK
        8ss9t/jh3pUZMvCtZaJVTiwwEFF/Ia/EMOBYnQXdMVWRFrTwAKZfyT+84WWMo2Jj
        m23FBndr9AP1eOmuBnd4nbuAAYcVwaH3HWOXfUr2exdDuBIzdZni/eBfn1HXF94F
        iAK+xnlPITno1iXdRUbPnYZp5wKBgQDg9u+F/cv5tJ5oSugr+qsWNlt5BMlA2ubH
        lYZssTrYVdRtvsXLHkwOf++xa+rp/RBcnFSfr2KhdB5SAolw2ntZ9A+EuT81C307
        LRVL2iexIee8G4bstK6wWT/288O1X1leMVlqZZdDtl63iR1/LOOc0P/qejLjYTtt
        yBb1qN/hrwKBgQDJ6MwDeins4YSZt2qWAkj7d8dX7XMiY8Dk+2D19GKyJaUZFi2i
        eBV8gVPssR+6SRV5BMnUn7f/Sd6s7ITqMAUKMzPy99UKtCdlb9XBg088o5yMynTf
        vXPrAS7KMUkOf4ipHPKv1K9XFzNQK4PO1AbARkRKYKRRa7rN+9iNZZd/HwKBgA+j
        mwsplaCKWejOLE3CY1pr9Pf4yTTlAt4lGu87cufPL7FhbcatGIR5iGRBKFeT7CtE
        Au4G90haFjGFU6Cwz5p1SQ7lAeviHJacj7pyNAgwXzfIghy6gtpnmfbFA3n8Yu4V
        aC3pWhau+u6vbYmFyV0BeokGbbs46zS6kD4Lu2SpAoGBAK+X/viWervVXG+bYKdz
        d4rNGMkBJIxB0tmHZ/Q7AiAXQrfXWLsSUFW6iiUiq8nL1L4ofX+p9qa0UyS9Dl/B
        tnxTtwIpTLPCwHVcTTT7b8FGBvwCExPUUeUrWvq1DDY3mD9iHBlJY7Xsf99Ig+Vr
        zouO4lJgLsx5tA0dqzsbU8nb
        -----END PRIVATE KEY-----
        """

    /// Header, claims and signature of the assertion of a service account.
    static let serviceAccount =
        "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCIsImtpZCI6ImtleS0xIn0.eyJpc3MiOiJsYXJkZXJAcHJvamVjdC5pYW0uZ3NlcnZp"
        + "Y2VhY2NvdW50LmNvbSIsImF1ZCI6Imh0dHBzOi8vb2F1dGgyLmV4YW1wbGUvdG9rZW4iLCJpYXQiOjE0NDA5MzgxNjAsImV4cCI6"
        + "MTQ0MDk0MTc2MCwianRpIjoiMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDEiLCJzY29wZSI6Imh0dHBzOi8vd3d3Lmdv"
        + "b2dsZWFwaXMuY29tL2F1dGgvZGV2c3RvcmFnZS5yZWFkX29ubHkifQ.xuEf9ecJOHuLbPYx9c8BKwRQm5jdnNaLlR4VKJ2EFjUeh"
        + "tcp9IgV1fBhhTQQX4TyRzpVb_eLAdwQFvUx898I9u31y3Ku9iQBDtJzVoBKl9hdukjN_BYNjUQlqx02KPFxeS8E1etMgxww2gZ1u"
        + "19Qa-tShcFoQyevUlJ5nVQIx87hO_B6kQePTvwOpJKkR1XqW9Jm73f-cooyDaYbkYzaPE6DaKXkpVEZju58U1KK0SiZv_dQg90KT"
        + "89sDF2GHV1PAWRkVqRSCv3a36Bb-Z06FZAKPPvRhzpsWGuM6Vt2EdGzSeSeBXGL5nR9jHMntu74qVKWmvsmhV2Jj6eNv8rTJA"

    /// The same for another issuer with a subject and an audience.
    static let subject =
        "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJjbGllbnQtMSIsImF1ZCI6Imh0dHBzOi8vYXBpLmV4YW1wbGUiLCJ"
        + "pYXQiOjE0NDA5MzgxNjAsImV4cCI6MTQ0MDkzODQ2MCwianRpIjoiMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDEiLCJ"
        + "zdWIiOiJtZWRpYSJ9.vzSWra-9w30_PmJn8AnvEpGsPd2L3b5N86YWL9lYPFLltgAVD3Vdaub2sMuhdEaYf7oQ4GxMVqSBgROznC"
        + "YwqDTW7ntqsBWhRinxnm2E_9MWL1gJVopl1bnWDSu3EoN0v7c2UqncpgJ5XlJZkq7YgCUrN3k3ICSe1pWRkspRKsrtYJM5QCJeO8"
        + "1f35OTTXU635G0MjREruj3lIi5BOxoJ9V07Gj7f7fljTRFpju2h6vNP_EPUaKAQB3xxrod7x844VwkTPYD6oX1tQVKQqA4CRzIpk"
        + "9cwyGWBwBwI75kF7qdHLMJz9vTLzRAlMWAE1hgQmHdurGmDa1m_OdCquooLQ"
}
