/*
 * tls.c - OpenSSL, and all that is known about it here.
 *
 * The error queue belongs to the thread, not to the connection: it is emptied before every call,
 * or one connection would read the failure of another. Bytes go through a BIO of our own because
 * OpenSSL's would write without MSG_NOSIGNAL.
 */
#include "api/tls-internal.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "os/net.h"

struct tls_context {
	struct tls_context *next;
	SSL_CTX *ctx;
	BIO_METHOD *bio;
};

struct tls {
	SSL *ssl;
	bool is_over; /* no call after a fatal error (SSL_get_error(3)) */
	bool does_read_want_write;
};

/* ---- bytes ------------------------------------------------------------------------- */

static int fd_of(BIO *b)
{
	return (int)(intptr_t)BIO_get_data(b);
}

static int settle(BIO *b, int r, void (*retry)(BIO *b))
{
	BIO_clear_retry_flags(b);
	if (r == -EAGAIN)
		retry(b);
	return r < 0 ? -1 : r;
}

static void retry_read(BIO *b)
{
	BIO_set_retry_read(b);
}

static void retry_write(BIO *b)
{
	BIO_set_retry_write(b);
}

static int bio_read(BIO *b, char *buf, int size)
{
	return settle(b, os_recv_some(fd_of(b), buf, (size_t)size), retry_read);
}

static int bio_write(BIO *b, const char *bytes, int n)
{
	struct iovec iov = { (void *)(uintptr_t)bytes, (size_t)n };

	return settle(b, os_sendv(fd_of(b), &iov, 1), retry_write);
}

/* Nothing is buffered, so that flushing succeeds; all else is unknown. */
static long bio_ctrl(BIO *b, int cmd, long number, void *p)
{
	(void)b;
	(void)number;
	(void)p;
	return cmd == BIO_CTRL_FLUSH ? 1 : 0;
}

/* ---- context ----------------------------------------------------------------------- */

static int tls_fail(struct err *e, const char *what, const char *path)
{
	unsigned long code = ERR_peek_error(); /* the first; the others say who called */
	const char *why =
	    ERR_SYSTEM_ERROR(code) ? strerror(ERR_GET_REASON(code)) : ERR_reason_error_string(code);

	return err_new(e, ERR_INVALID, "%s %s: %s", what, path, why ? why : "not usable");
}

static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                           const unsigned char *in, unsigned int in_len, void *arg)
{
	static const unsigned char ours[] = "\x08http/1.1";
	unsigned char *chosen;

	(void)ssl;
	(void)arg;
	if (SSL_select_next_proto(&chosen, out_len, ours, sizeof ours - 1, in, in_len) !=
	    OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_NOACK;
	*out = chosen;
	return SSL_TLSEXT_ERR_OK;
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
	SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
	SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
	                             SSL_OP_CIPHER_SERVER_PREFERENCE);
	/* The queue moves and grows between two tries of one write; an idle one keeps no buffer. */
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
	                          SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF); /* tickets need no memory */
	SSL_CTX_set_default_passwd_cb(ctx, no_password);
	SSL_CTX_set_alpn_select_cb(ctx, choose_protocol, NULL);
}

static BIO_METHOD *bio_method(void)
{
	BIO_METHOD *m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");

	if (!m)
		abort(); /* out of memory */
	BIO_meth_set_read(m, bio_read);
	BIO_meth_set_write(m, bio_write);
	BIO_meth_set_ctrl(m, bio_ctrl);
	return m;
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

	*x = (struct tls_context){ *list, ctx, bio_method() };
	*list = x;
	return 0;
}

void tls_contexts_free(struct tls_context *list)
{
	while (list) {
		struct tls_context *next = list->next;

		SSL_CTX_free(list->ctx);
		BIO_meth_free(list->bio);
		free(list);
		list = next;
	}
}

/* ---- one connection ---------------------------------------------------------------- */

struct tls *tls_new(struct tls_context *x, int fd)
{
	struct tls *t = mem_alloc(sizeof *t);
	BIO *bio = BIO_new(x->bio);

	t->ssl = SSL_new(x->ctx);
	if (!t->ssl || !bio)
		abort(); /* out of memory */
	BIO_set_data(bio, (void *)(intptr_t)fd);
	BIO_set_init(bio, 1);
	SSL_set_bio(t->ssl, bio, bio); /* takes it, once */
	SSL_set_accept_state(t->ssl);
	return t;
}

void tls_free(struct tls *t)
{
	if (!t)
		return;
	SSL_free(t->ssl);
	free(t);
}

static int outcome(struct tls *t, int r)
{
	if (r > 0)
		return r;
	switch (SSL_get_error(t->ssl, r)) {
	case SSL_ERROR_WANT_READ:
	case SSL_ERROR_WANT_WRITE:
		return -EAGAIN;
	case SSL_ERROR_ZERO_RETURN:
		return 0;
	default: /* an int of OpenSSL's: all others are fatal */
		t->is_over = true;
		return -EPROTO;
	}
}

int tls_read(struct tls *t, void *buf, size_t size)
{
	if (t->is_over)
		return -EPROTO;
	ERR_clear_error();
	int r = outcome(t, SSL_read(t->ssl, buf, size < INT32_MAX ? (int)size : INT32_MAX));

	t->does_read_want_write = r == -EAGAIN && SSL_want_write(t->ssl);
	return r;
}

int tls_write(struct tls *t, const void *bytes, size_t n)
{
	if (t->is_over)
		return -EPROTO;
	ERR_clear_error();
	int r = outcome(t, SSL_write(t->ssl, bytes, n < INT32_MAX ? (int)n : INT32_MAX));

	/* Without renegotiation no write waits for input; to poll for room would then spin. */
	if (r == 0 || (r == -EAGAIN && !SSL_want_write(t->ssl)))
		return -EPIPE;
	return r;
}

bool tls_read_wants_write(const struct tls *t)
{
	return t->does_read_want_write;
}

bool tls_has_input(const struct tls *t)
{
	return SSL_pending(t->ssl) > 0;
}

void tls_say_end(struct tls *t)
{
	if (t->is_over || !SSL_is_init_finished(t->ssl))
		return;
	ERR_clear_error();
	(void)SSL_shutdown(t->ssl); /* the peer may be gone; it is not waited for */
}
