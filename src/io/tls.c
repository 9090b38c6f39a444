/*
 * tls.c - one connection of OpenSSL's.
 *
 * The error queue belongs to the thread, not to the connection: it is emptied before every call,
 * or one connection would read the failure of another. Bytes go through a BIO of our own because
 * OpenSSL's would write without MSG_NOSIGNAL.
 */
#include "io/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "os/net.h"

struct tls {
	SSL *ssl;
	int fd;
	bool is_over; /* no call after a fatal error (SSL_get_error(3)) */
	bool does_read_want_write;
	bool is_stubborn, is_deaf;
};

/* ---- bytes ------------------------------------------------------------------------- */

static struct tls *tls_of(BIO *b)
{
	return BIO_get_data(b);
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
	return settle(b, os_recv_some(tls_of(b)->fd, buf, (size_t)size), retry_read);
}

/* To OpenSSL a failed write is the end of the connection, with all that could still be read. */
static int bio_write(BIO *b, const char *bytes, int n)
{
	struct tls *t = tls_of(b);
	struct iovec iov = { (void *)(uintptr_t)bytes, (size_t)n };
	int r = t->is_deaf ? n : os_sendv(t->fd, &iov, 1);

	if (r < 0 && r != -EAGAIN && t->is_stubborn) {
		t->is_deaf = true;
		r = n;
	}
	return settle(b, r, retry_write);
}

/* Nothing is buffered, so that flushing succeeds; all else is unknown. */
static long bio_ctrl(BIO *b, int cmd, long number, void *p)
{
	(void)b;
	(void)number;
	(void)p;
	return cmd == BIO_CTRL_FLUSH ? 1 : 0;
}

/* Made once; it lives as long as the process. */
static BIO_METHOD *bio_method(void)
{
	static BIO_METHOD *m;

	if (m)
		return m;
	m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");

	if (!m)
		abort(); /* out of memory */
	BIO_meth_set_read(m, bio_read);
	BIO_meth_set_write(m, bio_write);
	BIO_meth_set_ctrl(m, bio_ctrl);
	return m;
}

/* ---- one connection ---------------------------------------------------------------- */

struct tls *tls_open(SSL_CTX *ctx, int fd)
{
	struct tls *t = mem_alloc(sizeof *t);
	BIO *bio = BIO_new(bio_method());

	*t = (struct tls){ .ssl = SSL_new(ctx), .fd = fd };
	if (!t->ssl || !bio)
		abort(); /* out of memory */
	BIO_set_data(bio, t);
	BIO_set_init(bio, 1);
	SSL_set_bio(t->ssl, bio, bio); /* takes it, once */
	return t;
}

void tls_be_stubborn(struct tls *t)
{
	t->is_stubborn = true;
}

SSL *tls_ssl(const struct tls *t)
{
	return t->ssl;
}

static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                           const unsigned char *in, unsigned int in_len, void *is_strict)
{
	static const unsigned char ours[] = "\x08http/1.1";
	unsigned char *chosen;

	(void)ssl;
	if (SSL_select_next_proto(&chosen, out_len, ours, sizeof ours - 1, in, in_len) !=
	    OPENSSL_NPN_NEGOTIATED)
		return is_strict ? SSL_TLSEXT_ERR_ALERT_FATAL : SSL_TLSEXT_ERR_NOACK;
	*out = chosen;
	return SSL_TLSEXT_ERR_OK;
}

void tls_speak_http1(SSL_CTX *ctx, bool is_strict)
{
	static char yes;

	SSL_CTX_set_alpn_select_cb(ctx, choose_protocol, is_strict ? &yes : NULL);
}

void tls_defaults(SSL_CTX *ctx)
{
	SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
	SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
	                             SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_CLEANSE_PLAINTEXT);
	/* The queue moves and grows between two tries of one write; an idle one keeps no buffer. */
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
	                          SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF); /* tickets need no memory */
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

int tls_shake(struct tls *t)
{
	if (t->is_over)
		return -EPROTO;
	ERR_clear_error();
	int r = outcome(t, SSL_do_handshake(t->ssl));

	t->does_read_want_write = r == -EAGAIN && SSL_want_write(t->ssl);
	return r == 0 ? -EPROTO : r;
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
