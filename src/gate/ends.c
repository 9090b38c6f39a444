#include "gate/ends.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

/* Where distributions keep what they trust, in one file; the first one that is there. */
static const char *const bundles[] = {
	"/etc/ssl/certs/ca-certificates.crt",
	"/etc/pki/tls/certs/ca-bundle.crt",
};

static X509_STORE *more; /* of the operator; inherited by children */

static bool trust(SSL_CTX *ctx)
{
	for (size_t i = 0; i < COUNT(bundles); i++)
		if (SSL_CTX_load_verify_file(ctx, bundles[i]) == 1)
			break; /* none: then no server is trusted */
	ERR_clear_error();
	STACK_OF(X509_OBJECT) *objects = more ? X509_STORE_get0_objects(more) : NULL;

	for (int i = 0; objects && i < sk_X509_OBJECT_num(objects); i++) {
		X509 *cert = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(objects, i));

		if (cert && X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), cert) != 1)
			return false;
	}
	return true;
}

static SSL_CTX *make_inside(void)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());

	if (!ctx)
		return NULL;
	tls_defaults(ctx);
	tls_speak_http1(ctx, true);
	return ctx;
}

static SSL_CTX *make_outside(void)
{
	static const unsigned char ours[] = "\x08http/1.1";
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());

	if (!ctx)
		return NULL;
	tls_defaults(ctx);
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	if (trust(ctx) && SSL_CTX_set_alpn_protos(ctx, ours, sizeof ours - 1) == 0)
		return ctx;
	SSL_CTX_free(ctx);
	return NULL;
}

int ends_init(struct ends *x, const uint8_t seed[GATE_SEED_SIZE], const char *id, struct err *e)
{
	/* The host's openssl.cnf could load modules into this process. */
	OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
	*x = (struct ends){ .ca = ca_new(seed, id, e) };
	if (!x->ca)
		return -1;
	x->inside = make_inside();
	x->outside = make_outside();
	if (x->inside && x->outside)
		return 0;
	ends_done(x);
	return err_new(e, ERR_INTERNAL, "start TLS");
}

int ends_init_outside(struct ends *x, struct err *e)
{
	OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
	*x = (struct ends){ .outside = make_outside() };
	return x->outside ? 0 : err_new(e, ERR_INTERNAL, "start TLS");
}

void ends_done(struct ends *x)
{
	ca_free(x->ca);
	SSL_CTX_free(x->inside);
	SSL_CTX_free(x->outside);
	*x = (struct ends){ 0 };
}

struct tls *ends_accept(struct ends *x, int fd, const char *name)
{
	struct tls *t = tls_open(x->inside, fd);

	SSL_set_accept_state(tls_ssl(t));
	if (ca_show(x->ca, name, tls_ssl(t)))
		return t;
	tls_free(t);
	return NULL;
}

struct tls *ends_connect(struct ends *x, int fd, const char *name)
{
	struct tls *t = tls_open(x->outside, fd);
	SSL *ssl = tls_ssl(t);

	tls_be_stubborn(t); /* it may answer before it has read all */
	SSL_set_connect_state(ssl);
	SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	if (SSL_set_tlsext_host_name(ssl, name) == 1 && SSL_set1_host(ssl, name) == 1)
		return t;
	tls_free(t);
	return NULL;
}

int ends_trust(const char *path, struct err *e)
{
	OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
	if (!more)
		more = X509_STORE_new();
	if (!more || X509_STORE_load_file(more, path) != 1) {
		ERR_clear_error();
		return err_new(e, ERR_INVALID, "read the certificates in %s", path);
	}
	return 0;
}
