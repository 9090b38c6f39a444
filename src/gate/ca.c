#include "gate/ca.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <time.h>

#define CURVE "prime256v1"
#define SCALAR_BYTES 48 /* half as long again as the order, so that the remainder is even */
#define POINT_BYTES 65  /* uncompressed */
#define DAY_S (24L * 3600)
#define LEAF_DAYS 30
#define LEAVES_MAX 256

struct leaf {
	struct leaf *next;
	X509 *cert;
	time_t made;
	char name[GATE_NAME_SIZE];
};

struct ca {
	EVP_PKEY *key, *leaf_key;
	X509 *cert;
	struct leaf *leaves;
	size_t n_leaves;
	char pem[GATE_PEM_SIZE];
};

/* ---- the key ------------------------------------------------------------------------- */

static bool derive(const uint8_t seed[GATE_SEED_SIZE], const char *id, uint8_t out[SCALAR_BYTES])
{
	EVP_KDF *kdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
	EVP_KDF_CTX *ctx = kdf ? EVP_KDF_CTX_new(kdf) : NULL;
	char digest[] = "SHA256", info[GATE_ID_SIZE + 16];

	snprintf(info, sizeof info, "caisson ca %s", id);
	OSSL_PARAM params[] = {
		OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, (void *)(uintptr_t)seed,
		                                  GATE_SEED_SIZE),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, info, strlen(info)),
		OSSL_PARAM_construct_end(),
	};
	bool is_done = ctx && EVP_KDF_derive(ctx, out, SCALAR_BYTES, params) > 0;

	EVP_KDF_CTX_free(ctx);
	EVP_KDF_free(kdf);
	return is_done;
}

/* A number from 1 to the order of the curve less one (FIPS 186-5, A.2.1), and its point. */
static bool find_point(const uint8_t bytes[SCALAR_BYTES], BIGNUM *scalar,
                       uint8_t point[POINT_BYTES])
{
	EC_GROUP *group = EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1);
	EC_POINT *p = group ? EC_POINT_new(group) : NULL;
	BN_CTX *ctx = BN_CTX_new();
	BIGNUM *order = group ? BN_dup(EC_GROUP_get0_order(group)) : NULL;
	bool is_done = p && ctx && order && BN_bin2bn(bytes, SCALAR_BYTES, scalar) &&
	               BN_sub_word(order, 1) && BN_mod(scalar, scalar, order, ctx) &&
	               BN_add_word(scalar, 1) && EC_POINT_mul(group, p, scalar, NULL, NULL, ctx) &&
	               EC_POINT_point2oct(group, p, POINT_CONVERSION_UNCOMPRESSED, point,
	                                  POINT_BYTES, ctx) == POINT_BYTES;

	BN_free(order);
	BN_CTX_free(ctx);
	EC_POINT_free(p);
	EC_GROUP_free(group);
	return is_done;
}

static EVP_PKEY *key_of(const BIGNUM *scalar, const uint8_t point[POINT_BYTES])
{
	OSSL_PARAM_BLD *bld = OSSL_PARAM_BLD_new();
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, "EC", NULL);
	OSSL_PARAM *params = NULL;
	EVP_PKEY *key = NULL;

	if (bld && ctx &&
	    OSSL_PARAM_BLD_push_utf8_string(bld, OSSL_PKEY_PARAM_GROUP_NAME, CURVE, 0) &&
	    OSSL_PARAM_BLD_push_octet_string(bld, OSSL_PKEY_PARAM_PUB_KEY, point, POINT_BYTES) &&
	    OSSL_PARAM_BLD_push_BN(bld, OSSL_PKEY_PARAM_PRIV_KEY, scalar))
		params = OSSL_PARAM_BLD_to_param(bld);
	if (params && EVP_PKEY_fromdata_init(ctx) > 0)
		(void)EVP_PKEY_fromdata(ctx, &key, EVP_PKEY_KEYPAIR, params); /* NULL then */
	OSSL_PARAM_free(params);
	OSSL_PARAM_BLD_free(bld);
	EVP_PKEY_CTX_free(ctx);
	return key;
}

static EVP_PKEY *derive_key(const uint8_t seed[GATE_SEED_SIZE], const char *id)
{
	uint8_t bytes[SCALAR_BYTES], point[POINT_BYTES];
	BIGNUM *scalar = BN_secure_new();
	EVP_PKEY *key = NULL;

	if (scalar && derive(seed, id, bytes) && find_point(bytes, scalar, point))
		key = key_of(scalar, point);
	OPENSSL_cleanse(bytes, sizeof bytes);
	BN_clear_free(scalar);
	return key;
}

/* ---- certificates -------------------------------------------------------------------- */

struct shape {
	X509 *issuer; /* NULL: itself */
	EVP_PKEY *key, *signer;
	const char *common;
	int days;                           /* 0: for ever */
	const char *const (*extensions)[2]; /* name, value; ends with NULL */
	const char *alternative;            /* NULL: none */
};

static bool add_extension(X509 *cert, X509V3_CTX *ctx, const char *name, const char *value)
{
	X509_EXTENSION *x = X509V3_EXT_nconf(NULL, ctx, name, value);
	bool is_done = x && X509_add_ext(cert, x, -1);

	X509_EXTENSION_free(x);
	return is_done;
}

static bool extend(X509 *cert, const struct shape *s)
{
	X509V3_CTX ctx;
	bool is_done = true;

	X509V3_set_ctx(&ctx, s->issuer ? s->issuer : cert, cert, NULL, NULL, 0);
	for (size_t i = 0; is_done && s->extensions[i][0]; i++)
		is_done = add_extension(cert, &ctx, s->extensions[i][0], s->extensions[i][1]);
	if (is_done && s->alternative)
		is_done = add_extension(cert, &ctx, "subjectAltName", s->alternative);
	return is_done;
}

static bool name_it(X509 *cert, const struct shape *s)
{
	X509_NAME *name = X509_get_subject_name(cert);

	return X509_NAME_add_entry_by_txt(name, "O", MBSTRING_ASC, (const unsigned char *)"Caisson",
	                                  -1, -1, 0) &&
	       X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
	                                  (const unsigned char *)s->common, -1, -1, 0) &&
	       X509_set_issuer_name(cert, s->issuer ? X509_get_subject_name(s->issuer) : name);
}

static bool number_it(X509 *cert)
{
	BIGNUM *n = BN_new();
	bool is_done = n && BN_rand(n, 120, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) &&
	               BN_to_ASN1_INTEGER(n, X509_get_serialNumber(cert));

	BN_free(n);
	return is_done;
}

/* A clock that is a little wrong does not matter. Nor does one that is set to another year, for
 * what is placed inside once and outlives that; it is good as long as two digits can say. */
static bool date_it(X509 *cert, int days)
{
	if (days == 0)
		return ASN1_TIME_set_string_X509(X509_getm_notBefore(cert), "19700101000000Z") &&
		       ASN1_TIME_set_string_X509(X509_getm_notAfter(cert), "20491231235959Z");
	return X509_gmtime_adj(X509_getm_notBefore(cert), -2 * DAY_S) &&
	       X509_gmtime_adj(X509_getm_notAfter(cert), days * DAY_S);
}

static X509 *make(const struct shape *s)
{
	X509 *cert = X509_new();

	if (cert && X509_set_version(cert, X509_VERSION_3) && number_it(cert) &&
	    date_it(cert, s->days) && name_it(cert, s) && X509_set_pubkey(cert, s->key) &&
	    extend(cert, s) && X509_sign(cert, s->signer, EVP_sha256()))
		return cert;
	X509_free(cert);
	return NULL;
}

static X509 *make_ca(EVP_PKEY *key, const char *id)
{
	static const char *const extensions[][2] = {
		{ "basicConstraints", "critical,CA:TRUE,pathlen:0" },
		{ "keyUsage", "critical,keyCertSign,cRLSign" },
		{ "subjectKeyIdentifier", "hash" },
		{ NULL, NULL },
	};
	char common[64];

	snprintf(common, sizeof common, "Caisson %s", id);
	return make(&(struct shape){
	    .key = key, .signer = key, .common = common, .extensions = extensions });
}

static X509 *make_leaf(const struct ca *ca, const char *name)
{
	static const char *const extensions[][2] = {
		{ "basicConstraints", "critical,CA:FALSE" },
		{ "keyUsage", "critical,digitalSignature" },
		{ "extendedKeyUsage", "serverAuth" },
		{ "subjectKeyIdentifier", "hash" },
		{ "authorityKeyIdentifier", "keyid:always" },
		{ NULL, NULL },
	};
	char alternative[GATE_NAME_SIZE + sizeof "DNS:"];

	snprintf(alternative, sizeof alternative, "DNS:%s", name);
	return make(&(struct shape){ .issuer = ca->cert,
	                             .key = ca->leaf_key,
	                             .signer = ca->key,
	                             .common = strlen(name) <= 64 ? name : "host",
	                             .days = LEAF_DAYS,
	                             .extensions = extensions,
	                             .alternative = alternative });
}

/* ---- leaves -------------------------------------------------------------------------- */

static void leaf_free(struct ca *ca, struct leaf **at)
{
	struct leaf *l = *at;

	*at = l->next;
	ca->n_leaves--;
	X509_free(l->cert);
	free(l);
}

static struct leaf **find_leaf(struct ca *ca, const char *name)
{
	struct leaf **at = &ca->leaves;

	while (*at && strcmp((*at)->name, name) != 0)
		at = &(*at)->next;
	return at;
}

static void drop_last(struct ca *ca)
{
	struct leaf **at = &ca->leaves;

	while (*at && (*at)->next)
		at = &(*at)->next;
	if (*at)
		leaf_free(ca, at);
}

static struct leaf *get_leaf(struct ca *ca, const char *name)
{
	struct leaf **at = find_leaf(ca, name);
	time_t now = time(NULL);

	if (*at && now - (*at)->made >= 0 && now - (*at)->made < DAY_S)
		return *at;
	if (*at)
		leaf_free(ca, at);
	X509 *cert = make_leaf(ca, name);

	if (!cert)
		return NULL;
	if (ca->n_leaves >= LEAVES_MAX)
		drop_last(ca);
	struct leaf *l = mem_alloc(sizeof *l);

	*l = (struct leaf){ .next = ca->leaves, .cert = cert, .made = now };
	snprintf(l->name, sizeof l->name, "%s", name);
	ca->leaves = l;
	ca->n_leaves++;
	return l;
}

bool ca_show(struct ca *ca, const char *name, SSL *ssl)
{
	struct leaf *l = get_leaf(ca, name);

	ERR_clear_error();
	return l && SSL_use_cert_and_key(ssl, l->cert, ca->leaf_key, NULL, 1) == 1;
}

/* ---- life ---------------------------------------------------------------------------- */

static bool print_pem(struct ca *ca)
{
	BIO *out = BIO_new(BIO_s_mem());
	int n = out && PEM_write_bio_X509(out, ca->cert)
	            ? BIO_read(out, ca->pem, (int)sizeof ca->pem - 1)
	            : 0;
	bool is_whole = n > 0 && BIO_pending(out) == 0;

	BIO_free(out);
	return is_whole;
}

void ca_free(struct ca *ca)
{
	if (!ca)
		return;
	while (ca->leaves)
		leaf_free(ca, &ca->leaves);
	X509_free(ca->cert);
	EVP_PKEY_free(ca->key);
	EVP_PKEY_free(ca->leaf_key);
	free(ca);
}

const char *ca_pem(const struct ca *ca)
{
	return ca->pem;
}

uint32_t ca_hash(const struct ca *ca)
{
	return (uint32_t)X509_subject_name_hash(ca->cert);
}

struct ca *ca_new(const uint8_t seed[GATE_SEED_SIZE], const char *id, struct err *e)
{
	struct ca *ca = mem_alloc(sizeof *ca);

	*ca = (struct ca){ 0 };
	OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
	ca->key = derive_key(seed, id);
	ca->leaf_key = EVP_EC_gen("P-256");
	if (ca->key && ca->leaf_key)
		ca->cert = make_ca(ca->key, id);
	if (ca->cert && print_pem(ca))
		return ca;
	ca_free(ca);
	(void)err_new(e, ERR_INTERNAL, "make the sandbox's CA");
	return NULL;
}
