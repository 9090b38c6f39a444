/*
 * tls.c - the contexts of a server: certificate, key, and what it speaks.
 */
#include "api/tls-internal.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

struct tls_context {
	struct tls_context *next;
	SSL_CTX *ctx;
};

/* ---- context ----------------------------------------------------------------------- */

static int tls_fail(struct err *e, const char *what, const char *path)
{
	unsigned long code = ERR_peek_error(); /* the first; the others say who called */
	const char *why =
	    ERR_SYSTEM_ERROR(code) ? strerror(ERR_GET_REASON(code)) : ERR_reason_error_string(code);

	return err_new(e, ERR_INVALID, "%s %s: %s", what, path, why ? why : "not usable");
}

/* Without it OpenSSL would ask on the terminal. */
static int no_password(char *buf, int size, int is_writing, void *arg)
{
	(void)buf;
	(void)size;
	(void)is_writing;
	(void)arg;
	return -1;
}

static int load(SSL_CTX *ctx, const char *cert, const char *key, struct err *e)
{
	ERR_clear_error();
	if (SSL_CTX_use_certificate_chain_file(ctx, cert) != 1)
		return tls_fail(e, "read the certificate", cert);
	if (SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) != 1)
		return tls_fail(e, "read the key", key);
	return 0;
}

static void configure(SSL_CTX *ctx)
{
	tls_defaults(ctx);
	SSL_CTX_set_default_passwd_cb(ctx, no_password);
	tls_speak_http1(ctx, false);
}

int tls_context_add(struct tls_context **list, const char *cert, const char *key, struct err *e)
{
	/* The host's openssl.cnf could load modules into this process. */
	OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());

	if (!ctx)
		return err_new(e, ERR_INTERNAL, "start TLS");
	configure(ctx);
	if (load(ctx, cert, key, e) < 0) {
		SSL_CTX_free(ctx);
		return -1;
	}
	struct tls_context *x = mem_alloc(sizeof *x);

	*x = (struct tls_context){ *list, ctx };
	*list = x;
	return 0;
}

void tls_contexts_free(struct tls_context *list)
{
	while (list) {
		struct tls_context *next = list->next;

		SSL_CTX_free(list->ctx);
		free(list);
		list = next;
	}
}

struct tls *tls_new(struct tls_context *x, int fd)
{
	struct tls *t = tls_open(x->ctx, fd);

	SSL_set_accept_state(tls_ssl(t));
	return t;
}
