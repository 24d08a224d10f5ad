#include "CCryptography.h"

#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <string.h>

int larder_key_is(const EVP_PKEY *key, const char *name) {
    char curve[64];
    return EVP_PKEY_is_a(key, name)
        || (EVP_PKEY_get_group_name(key, curve, sizeof curve, NULL) == 1 && strcmp(curve, name) == 0);
}

static int larder_no_password(char *password, int size, int is_writing, void *state) { return -1; }

EVP_PKEY *larder_pem_key(const void *text, int length, int is_private) {
    BIO *file = BIO_new_mem_buf(text, length);
    EVP_PKEY *key = is_private ? PEM_read_bio_PrivateKey(file, NULL, larder_no_password, NULL)
                               : PEM_read_bio_PUBKEY(file, NULL, larder_no_password, NULL);
    BIO_free(file);
    return key;
}

int larder_is_pair(EVP_PKEY *key) {
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_pkey(NULL, key, NULL);
    int is_pair = context && EVP_PKEY_pairwise_check(context) == 1;
    EVP_PKEY_CTX_free(context);
    return is_pair;
}

/// The public key of `type` with these parameters; NULL if they are no such key.
static EVP_PKEY *larder_public_key(const char *type, OSSL_PARAM *parameters) {
    EVP_PKEY *key = NULL;
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
    if (!context || EVP_PKEY_fromdata_init(context) != 1
        || EVP_PKEY_fromdata(context, &key, EVP_PKEY_PUBLIC_KEY, parameters) != 1)
        key = NULL;
    EVP_PKEY_CTX_free(context);
    return key;
}

EVP_PKEY *larder_ec_public_key(const char *curve, const unsigned char *point, size_t length) {
    OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, (char *)curve, 0),
        OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, (void *)point, length),
        OSSL_PARAM_construct_end(),
    };
    return larder_public_key("EC", parameters);
}

EVP_PKEY *larder_rsa_public_key(
    const unsigned char *modulus, int modulus_length, const unsigned char *exponent, int exponent_length) {
    EVP_PKEY *key = NULL;
    BIGNUM *n = BN_bin2bn(modulus, modulus_length, NULL), *e = BN_bin2bn(exponent, exponent_length, NULL);
    OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    OSSL_PARAM *parameters = NULL;
    if (n && e && builder && BN_is_odd(n) && BN_is_odd(e) && BN_num_bits(e) >= 2 && BN_num_bits(e) <= 33
        && OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_N, n)
        && OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_E, e)
        && (parameters = OSSL_PARAM_BLD_to_param(builder)))
        key = larder_public_key("RSA", parameters);
    OSSL_PARAM_free(parameters);
    OSSL_PARAM_BLD_free(builder);
    BN_free(n);
    BN_free(e);
    return key;
}

int larder_hmac(
    EVP_MAC *mac, const char *hash, const void *key, size_t key_length, const void *first, size_t first_length,
    const void *second, size_t second_length, unsigned char *code, size_t length) {
    OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)hash, 0), OSSL_PARAM_construct_end()};
    EVP_MAC_CTX *context = EVP_MAC_CTX_new(mac);
    // libcrypto takes a null pointer for a missing key.
    int done = context && EVP_MAC_init(context, key_length ? key : "", key_length, parameters) == 1
        && EVP_MAC_update(context, first, first_length) == 1 && EVP_MAC_update(context, second, second_length) == 1
        && EVP_MAC_final(context, code, NULL, length) == 1;
    EVP_MAC_CTX_free(context);
    return done;
}

int larder_gcm(
    const EVP_CIPHER *cipher, int is_sealing, const void *key, const unsigned char *nonce, const unsigned char *text,
    int text_length, const unsigned char *input, int length, unsigned char *output, unsigned char *tag) {
    int count = 0, rest = 0;
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    int done = context && EVP_CipherInit_ex2(context, cipher, key, nonce, is_sealing, NULL) == 1
        && (is_sealing || EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, 16, tag) == 1)
        && EVP_CipherUpdate(context, NULL, &count, text, text_length) == 1
        && EVP_CipherUpdate(context, output, &count, input, length) == 1 && count == length
        && EVP_CipherFinal_ex(context, output + length, &rest) == 1
        && (!is_sealing || EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, 16, tag) == 1);
    EVP_CIPHER_CTX_free(context);
    return done;
}

int larder_ctr(
    const EVP_CIPHER *cipher, const void *key, const void *counter, int lead, const void *input, int length,
    void *output) {
    unsigned char skipped[16] = {0};
    int count = 0;
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    int done = context && EVP_EncryptInit_ex2(context, cipher, key, counter, NULL) == 1
        && EVP_EncryptUpdate(context, skipped, &count, skipped, lead) == 1
        && EVP_EncryptUpdate(context, output, &count, input, length) == 1 && count == length;
    EVP_CIPHER_CTX_free(context);
    return done;
}

/// RSASSA-PSS with a salt as long as the hash (RFC 7518 §3.5).
static int larder_set_pss(EVP_PKEY_CTX *context) {
    return EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_PSS_PADDING) > 0
        && EVP_PKEY_CTX_set_rsa_pss_saltlen(context, RSA_PSS_SALTLEN_DIGEST) > 0;
}

int larder_sign(
    EVP_PKEY *key, const EVP_MD *hash, int is_pss, const unsigned char *input, size_t input_length,
    unsigned char *signature, size_t *length) {
    EVP_PKEY_CTX *settings = NULL;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    int done = context && EVP_DigestSignInit(context, &settings, hash, NULL, key) == 1
        && (!is_pss || larder_set_pss(settings))
        && EVP_DigestSign(context, signature, length, input, input_length) == 1;
    EVP_MD_CTX_free(context);
    ERR_clear_error();
    return done;
}

int larder_verify(
    EVP_PKEY *key, const EVP_MD *hash, int is_pss, const unsigned char *input, size_t input_length,
    const unsigned char *signature, size_t length) {
    EVP_PKEY_CTX *settings = NULL;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    int done = context && EVP_DigestVerifyInit(context, &settings, hash, NULL, key) == 1
        && (!is_pss || larder_set_pss(settings))
        && EVP_DigestVerify(context, signature, length, input, input_length) == 1;
    EVP_MD_CTX_free(context);
    // A later call of this thread would take the error for its own.
    ERR_clear_error();
    return done;
}

int larder_ecdsa_fixed(const unsigned char *asn1, long length, unsigned char *fixed, int size) {
    ECDSA_SIG *signature = d2i_ECDSA_SIG(NULL, &asn1, length);
    int done = signature && BN_bn2binpad(ECDSA_SIG_get0_r(signature), fixed, size) == size
        && BN_bn2binpad(ECDSA_SIG_get0_s(signature), fixed + size, size) == size;
    ECDSA_SIG_free(signature);
    return done;
}

int larder_ecdsa_asn1(const unsigned char *fixed, int size, unsigned char *asn1) {
    ECDSA_SIG *signature = ECDSA_SIG_new();
    BIGNUM *r = BN_bin2bn(fixed, size, NULL), *s = BN_bin2bn(fixed + size, size, NULL);
    int length = -1;
    if (signature && r && s && ECDSA_SIG_set0(signature, r, s)) {
        length = i2d_ECDSA_SIG(signature, &asn1);
    } else {
        BN_free(r);
        BN_free(s);
    }
    ECDSA_SIG_free(signature);
    return length;
}
