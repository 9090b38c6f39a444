#include "gate/ends.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "os/file.h"

/* Where distributions keep what they trust, in one file; the first one that is there. */
static const char *const bundles[] = {
	"/etc/ssl/certs/ca-certificates.crt",
	"/etc/pki/tls/certs/ca-bundle.crt",
};

static X509_STORE *more; /* of the operator */
/* All that is trusted upstream, and the file that it was read from. Parsing that takes longer than
 * the start of a sandbox: children inherit what the master has. */
static X509_STORE *all;
static struct stat seen;

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static const char *find_bundle(struct stat *st)
{
	for (size_t i = 0; i < COUNT(bundles); i++)
		if (os_fstatat(AT_FDCWD, bundles[i], st, 0) >= 0)
			return bundles[i];
	*st = (struct stat){ 0 };
	return NULL; /* then no server is trusted but the operator's */
}

static X509_STORE *load(const char *bundle)
{
	X509_STORE *store = X509_STORE_new();
	STACK_OF(X509_OBJECT) *objects = more ? X509_STORE_get0_objects(more) : NULL;

	if (store && bundle)
		(void)X509_STORE_load_file(store, bundle); /* what is no certificate is not there */
	for (int i = 0; store && objects && i < sk_X509_OBJECT_num(objects); i++) {
		X509 *cert = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(objects, i));

		if (cert)
			(void)X509_STORE_add_cert(store,
			                          cert); /* or its servers are not believed */
	}
	ERR_clear_error();
	return store;
}

void ends_refresh(void)
{
	struct stat now;
	const char *bundle = find_bundle(&now);

	if (all && is_same(&now, &seen))
		return;
	OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
	X509_STORE_free(all);
	all = load(bundle);
	seen = now;
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
	ends_refresh();
	if (all && SSL_CTX_set_alpn_protos(ctx, ours, sizeof ours - 1) == 0) {
		SSL_CTX_set1_cert_store(ctx, all);
		return ctx;
	}
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
