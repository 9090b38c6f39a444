#include "gate/hello.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

/* ---- extensions ---------------------------------------------------------------------- */

struct bytes {
	const uint8_t *at;
	size_t n;
};

/* A part with its length in `size` bytes before it. */
static bool take(struct bytes *from, size_t size, struct bytes *out)
{
	size_t n = 0;

	if (from->n < size)
		return false;
	for (size_t i = 0; i < size; i++)
		n = n << 8 | from->at[i];
	if (from->n - size < n)
		return false;
	*out = (struct bytes){ from->at + size, n };
	from->at += size + n;
	from->n -= size + n;
	return true;
}

/* RFC 6066, 3: a list, of which one entry is a host name. More than that one is a trick. */
static struct said read_sni(struct bytes ext)
{
	static const struct said bad = { .kind = SAID_BAD };
	struct bytes list, name;

	if (!take(&ext, 2, &list) || ext.n > 0 || list.n < 1 ||
	    list.at[0] != TLSEXT_NAMETYPE_host_name)
		return bad;
	list.at++;
	list.n--;
	if (!take(&list, 2, &name) || list.n > 0 || name.n == 0)
		return bad;
	return said_sni(name.at, name.n);
}

static bool is_plain(struct bytes text)
{
	for (size_t i = 0; i < text.n; i++)
		if (text.at[i] <= ' ' || text.at[i] > '~' || text.at[i] == ',')
			return false;
	return text.n > 0;
}

static bool read_alpn(struct bytes ext, struct hello *out)
{
	struct bytes list, name;
	size_t len = 0;

	if (!take(&ext, 2, &list) || ext.n > 0)
		return false;
	out->has_http1 = false;
	while (list.n > 0) {
		if (!take(&list, 1, &name) || name.n == 0)
			return false;
		out->has_http1 |= name.n == 8 && memcmp(name.at, "http/1.1", 8) == 0;
		if (!is_plain(name) || len + name.n + 2 > sizeof out->alpn) /* GREASE is not */
			continue;
		if (len > 0)
			out->alpn[len++] = ',';
		memcpy(out->alpn + len, name.at, name.n);
		len += name.n;
		out->alpn[len] = '\0';
	}
	return true;
}

/* ---- OpenSSL ------------------------------------------------------------------------- */

struct reading {
	struct hello *out;
	enum hello_result result;
};

static int on_hello(SSL *ssl, int *alert, void *arg)
{
	struct reading *r = SSL_get_app_data(ssl);
	struct bytes ext;

	(void)arg;
	*alert = SSL_AD_INTERNAL_ERROR;
	r->result = HELLO_OK;
	if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_server_name, &ext.at, &ext.n))
		r->out->sni = read_sni(ext);
	if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_application_layer_protocol_negotiation,
	                              &ext.at, &ext.n) &&
	    !read_alpn(ext, r->out))
		r->result = HELLO_BAD;
	return SSL_CLIENT_HELLO_ERROR; /* all that was wanted is known */
}

static SSL_CTX *context(void)
{
	static SSL_CTX *ctx;

	if (ctx)
		return ctx;
	/* The host's openssl.cnf could load modules into this process. */
	OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
	ctx = SSL_CTX_new(TLS_server_method());
	if (!ctx)
		abort();                       /* out of memory */
	SSL_CTX_set_min_proto_version(ctx, 0); /* which version is the server's business */
	SSL_CTX_set_client_hello_cb(ctx, on_hello, NULL);
	return ctx;
}

enum hello_result hello_read(const uint8_t *bytes, size_t n, struct hello *out)
{
	*out = (struct hello){ .has_http1 = true };
	struct reading r = { out, HELLO_BAD };
	/* Before the record is whole there is nothing to find. */
	if (n < 5 || (n < HELLO_BYTES_MAX && n - 5 < ((size_t)bytes[3] << 8 | bytes[4])))
		return n >= 3 && bytes[0] != 0x16 ? HELLO_BAD : HELLO_MORE;
	SSL *ssl = SSL_new(context());
	BIO *in = BIO_new_mem_buf(bytes, (int)n), *none = BIO_new(BIO_s_null());

	if (!ssl || !in || !none)
		abort(); /* out of memory */
	BIO_set_mem_eof_return(in, -1);
	SSL_set_bio(ssl, in, none);
	SSL_set_app_data(ssl, &r);
	SSL_set_accept_state(ssl);
	ERR_clear_error();
	int done = SSL_do_handshake(ssl);

	if (r.result == HELLO_BAD && SSL_get_error(ssl, done) == SSL_ERROR_WANT_READ &&
	    n < HELLO_BYTES_MAX)
		r.result = HELLO_MORE;
	SSL_free(ssl);
	ERR_clear_error();
	return r.result;
}
