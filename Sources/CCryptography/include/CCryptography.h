#pragma once
#include <openssl/evp.h>

// Sequences of calls of libcrypto with shared error handling, lists of OSSL_PARAM, and ASN.1, which are longer in Swift.
// Functions return 1 on success, if nothing else is stated.

/// Whether a key is of a type or on a curve.
int larder_key_is(const EVP_PKEY *key, const char *name);

/// The first private or public key of a PEM text; NULL if there is none. Without a callback libcrypto would ask for the
/// password of an encrypted key at the terminal.
EVP_PKEY *larder_pem_key(const void *text, int length, int is_private);

/// Whether the halves of a key pair belong together.
int larder_is_pair(EVP_PKEY *key);

/// The EC public key of a point in its uncompressed form (SEC 1 §2.3.3).
EVP_PKEY *larder_ec_public_key(const char *curve, const unsigned char *point, size_t length);

/// The RSA public key of a modulus and an exponent, both big-endian. Both must be odd, and the exponent has 2 to 33 bits,
/// because a signature for the exponent 1 is trivial and one for a large exponent slow to verify.
EVP_PKEY *larder_rsa_public_key(
    const unsigned char *modulus, int modulus_length, const unsigned char *exponent, int exponent_length);

/// Writes the HMAC (RFC 2104) of two parts. `mac` is HMAC.
int larder_hmac(
    EVP_MAC *mac, const char *hash, const void *key, size_t key_length, const void *first, size_t first_length,
    const void *second, size_t second_length, unsigned char *code, size_t length);

/// AES-256-GCM: encrypts and writes the tag of 16 bytes, or decrypts and checks it.
int larder_gcm(
    const EVP_CIPHER *cipher, int is_sealing, const void *key, const unsigned char *nonce, const unsigned char *text,
    int text_length, const unsigned char *input, int length, unsigned char *output, unsigned char *tag);

/// AES-256 in counter mode, from a counter of 16 bytes; `lead`: the bytes of its first block before the input.
int larder_ctr(
    const EVP_CIPHER *cipher, const void *key, const void *counter, int lead, const void *input, int length,
    void *output);

/// Signs with the whole `*length` of the signature, which is set to its used part.
int larder_sign(
    EVP_PKEY *key, const EVP_MD *hash, int is_pss, const unsigned char *input, size_t input_length,
    unsigned char *signature, size_t *length);

int larder_verify(
    EVP_PKEY *key, const EVP_MD *hash, int is_pss, const unsigned char *input, size_t input_length,
    const unsigned char *signature, size_t length);

/// Writes an ECDSA signature from its ASN.1 form as R and S of `size` bytes each (RFC 7518 §3.4). Returns 1 on success.
int larder_ecdsa_fixed(const unsigned char *asn1, long length, unsigned char *fixed, int size);

/// The reverse: writes the ASN.1 form, at most 16 bytes longer, and returns its length; negative on failure.
int larder_ecdsa_asn1(const unsigned char *fixed, int size, unsigned char *asn1);
