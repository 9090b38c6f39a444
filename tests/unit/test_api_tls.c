#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "test_api.h"

/* ---- a certificate of our own ------------------------------------------------------ */

static char dir[] = "/tmp/caisson-tls-XXXXXX";
static char cert_path[64], key_path[64], other_key_path[64], locked_key_path[64];

static void write_key(const char *path, EVP_PKEY *key, const EVP_CIPHER *cipher)
{
	FILE *f = fopen(path, "we");

	CHECK(f && PEM_write_PrivateKey(f, key, cipher, (unsigned char *)"secret", 6, NULL, NULL));
	fclose(f);
}

static void write_certificate(EVP_PKEY *key)
{
	X509 *x = X509_new();
	FILE *f = fopen(cert_path, "we");

	ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
	X509_gmtime_adj(X509_getm_notBefore(x), -60);
	X509_gmtime_adj(X509_getm_notAfter(x), 3600);
	X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC,
	                           (const unsigned char *)"localhost", -1, -1, 0);
	X509_set_issuer_name(x, X509_get_subject_name(x));
	X509_set_pubkey(x, key);
	CHECK(X509_sign(x, key, EVP_sha256()));
	CHECK(f && PEM_write_X509(f, x));
	fclose(f);
	X509_free(x);
}

static void make_files(void)
{
	EVP_PKEY *key = EVP_EC_gen("P-256"), *other = EVP_EC_gen("P-256");

	CHECK(mkdtemp(dir));
	snprintf(cert_path, sizeof cert_path, "%s/cert", dir);
	snprintf(key_path, sizeof key_path, "%s/key", dir);
	snprintf(other_key_path, sizeof other_key_path, "%s/other", dir);
	snprintf(locked_key_path, sizeof locked_key_path, "%s/locked", dir);
	write_certificate(key);
	write_key(key_path, key, NULL);
	write_key(other_key_path, other, NULL);
	write_key(locked_key_path, key, EVP_aes_128_cbc());
	EVP_PKEY_free(key);
	EVP_PKEY_free(other);
}

static void remove_files(void)
{
	unlink(cert_path);
	unlink(key_path);
	unlink(other_key_path);
	unlink(locked_key_path);
	rmdir(dir);
}

/* ---- server and client ------------------------------------------------------------- */

static void open_tls_server(void)
{
	struct err e = { 0 };

	make_files();
	open_server();
	tcp_port = server_listen_tcp(server, "127.0.0.1:0", cert_path, key_path, &e);
	if (tcp_port < 0)
		CHECK_STR(e.msg, "");
	remove_files();
}

static void serve_tls(void (*client)(void))
{
	open_tls_server();
	serve_only(client);
	close_server();
}

static SSL_CTX *client_context;

static SSL *tls_on(int fd)
{
	if (!client_context)
		client_context = SSL_CTX_new(TLS_client_method());
	SSL *ssl = SSL_new(client_context);

	SSL_set_fd(ssl, fd);
	CHECK_INT(SSL_connect(ssl), 1);
	return ssl;
}

static SSL *dial_tls(void)
{
	return tls_on(dial_tcp());
}

static void hang_up(SSL *ssl)
{
	int fd = SSL_get_fd(ssl);

	SSL_free(ssl);
	fd_close(&fd);
}

static void put_tls(SSL *ssl, const char *text)
{
	CHECK_INT(SSL_write(ssl, text, (int)strlen(text)), strlen(text));
}

/* Reads one answer; returns its length, and the text in `buf`. */
static size_t read_tls(SSL *ssl, char *buf, size_t size)
{
	struct http_head head;
	struct http_body b;
	struct http_piece piece;
	size_t n = 0;
	int r = 0;

	while (r == 0 && n < size && SSL_read(ssl, buf + n, 1) == 1)
		r = http_response_head(buf, ++n, HTTP_ASKED_BODY, &head);
	CHECK(r > 0);
	http_body_init(&b, &head, UINT64_MAX);
	r = http_body_feed(&b, buf, 0, &piece);
	while (r == HTTP_BODY_MORE && n < size && SSL_read(ssl, buf + n, 1) == 1)
		r = http_body_feed(&b, buf + n++, 1, &piece);
	CHECK_INT(r, HTTP_BODY_DONE);
	return n;
}

static void want_tls(SSL *ssl, const char *end)
{
	static char buf[4096];
	size_t n = read_tls(ssl, buf, sizeof buf - 1);

	buf[n] = '\0';
	CHECK(n > strlen(end));
	CHECK_STR(buf + n - strlen(end), end);
}

#define GET(path) "GET " path " HTTP/1.1\r\nHost: h\r\n\r\n"

/* ---- tests ------------------------------------------------------------------------- */

static void ask(void)
{
	SSL *ssl = dial_tls();
	char buf[64];

	put_tls(ssl, GET("/hello"));
	want_tls(ssl, "hello");
	put_tls(ssl, GET("/who"));
	want_tls(ssl, "tcp tls=1 uid=-1 gid=-1 fd=1 path=/who query=");
	put_tls(ssl, GET("/ticks"));
	want_tls(ssl, "tick\n\r\n0\r\n\r\n");
	put_tls(ssl, GET("/later?20") GET("/hello") GET("/later?1"));
	want_tls(ssl, "later");
	want_tls(ssl, "hello");
	want_tls(ssl, "later");
	put_tls(ssl, "GET / HTTP/1.1\r\n\r\n");
	want_tls(ssl, "doubled or malformed\"}");
	CHECK_INT(SSL_read(ssl, buf, sizeof buf), 0); /* a proper end */
	CHECK_INT(SSL_get_error(ssl, 0), SSL_ERROR_ZERO_RETURN);
	hang_up(ssl);
}

TEST(requests_are_answered_by_tls)
{
	serve_tls(ask);
	CHECK_INT(seen->gone, 0);
}

static void choose_versions(void)
{
	static const struct {
		int max;
		bool is_taken;
	} rows[] = { { TLS1_1_VERSION, false },
		     { TLS1_2_VERSION, true },
		     { TLS1_3_VERSION, true } };

	for (size_t i = 0; i < COUNT(rows); i++) {
		SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());

		SSL_CTX_set_security_level(ctx, 0);
		SSL_CTX_set_min_proto_version(ctx, TLS1_VERSION);
		SSL_CTX_set_max_proto_version(ctx, rows[i].max);
		SSL_CTX_set_alpn_protos(ctx, (const unsigned char *)"\x02h2\x08http/1.1", 12);
		SSL *ssl = SSL_new(ctx);
		const unsigned char *protocol = NULL;
		unsigned int len = 0;

		SSL_set_fd(ssl, dial_tcp());
		CHECK_INT(SSL_connect(ssl) == 1, rows[i].is_taken);
		SSL_get0_alpn_selected(ssl, &protocol, &len);
		CHECK_INT(len, rows[i].is_taken ? 8 : 0);
		SSL_free(ssl);
		SSL_CTX_free(ctx);
	}
}

TEST(only_tls_1_2_and_later)
{
	serve_tls(choose_versions);
}

TEST(certificates_that_do_not_fit_are_refused)
{
	const char *const rows[][2] = {
		{ cert_path, other_key_path }, { cert_path, locked_key_path },
		{ cert_path, cert_path },      { key_path, key_path },
		{ "/dev/null", key_path },     { cert_path, "/nonexistent" },
	};
	struct err e = { 0 };

	make_files();
	open_server();
	for (size_t i = 0; i < COUNT(rows); i++) {
		CHECK_INT(server_listen_tcp(server, "127.0.0.1:0", rows[i][0], rows[i][1], &e), -1);
		printf("# %s\n", e.msg);
		CHECK_INT(e.kind, ERR_INVALID);
	}
	close_server();
	remove_files();
}

/* The bytes of a real handshake, to be cut anywhere. */
static size_t client_hello(char *buf, size_t size)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	SSL *ssl = SSL_new(ctx);

	SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
	SSL_connect(ssl);
	int n = BIO_read(SSL_get_wbio(ssl), buf, (int)size);

	SSL_free(ssl);
	SSL_CTX_free(ctx);
	CHECK(n > 100);
	return (size_t)n;
}

static void stall(void)
{
	char hello_bytes[2048];
	size_t n = client_hello(hello_bytes, sizeof hello_bytes);
	uint64_t from = timer_now_ms();
	int fds[300];

	for (size_t i = 0; i < COUNT(fds); i++) {
		fds[i] = dial_tcp();
		size_t k = i < 100 ? 0 : i < 200 ? n / 2 : n;
		CHECK_INT(put_bytes(fds[i], hello_bytes, k), k);
	}
	SSL *ssl = dial_tls();
	put_tls(ssl, GET("/hello"));
	want_tls(ssl, "hello");
	for (size_t i = 0; i < COUNT(fds); i++) { /* each is closed when its time is over */
		char buf[8192];
		ssize_t r;

		while ((r = recv(fds[i], buf, sizeof buf, 0)) > 0)
			continue;
		CHECK(r == 0 || errno == ECONNRESET);
	}
	CHECK(timer_now_ms() - from < 9500); /* without the limit it would be 10 s */
	put_tls(ssl, GET("/hello"));
	want_tls(ssl, "hello");
}

TEST(a_stalled_handshake_costs_nothing_and_ends)
{
	struct timespec a, b;

	limits = (struct server_limits){ .head_ms = 3000 };
	open_tls_server();
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
	serve_only(stall);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
	int64_t ms = (b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000;
	printf("# %d ms\n", (int)ms);
	CHECK(ms < 300l * test_slow()); /* a hundred real handshakes */
	close_server();
}

static void send_garbage(void)
{
	char bytes[2048], buf[4096];
	size_t n = client_hello(bytes, sizeof bytes);
	unsigned int seed = 1;

	for (int i = 0; i < 300; i++) {
		int fd = dial_tcp();

		if (i % 3 == 0)
			put(fd, GET("/hello"));
		for (int k = 0; k < 5 && i % 3 == 1; k++)
			bytes[(size_t)rand_r(&seed) % n] = (char)rand_r(&seed);
		if (i % 3)
			(void)put_bytes(fd, bytes, i % 3 == 1 ? n : (size_t)rand_r(&seed) % n);
		shutdown(fd, SHUT_WR);
		while (recv(fd, buf, sizeof buf, 0) > 0)
			continue;
		fd_close(&fd);
	}
	SSL *ssl = dial_tls();
	put_tls(ssl, GET("/hello"));
	want_tls(ssl, "hello");
	CHECK_INT(seen->requests, 1);
}

TEST(garbage_is_no_request)
{
	serve_tls(send_garbage);
}

/* Much in both directions, with a reader that pauses. */
static void carry_much(void)
{
	static char buf[4 << 20];
	SSL *ssl = dial_tls();
	size_t n;

	put_tls(ssl, GET("/stream-length?3000000"));
	usleep(50000);
	n = read_tls(ssl, buf, sizeof buf);
	CHECK(n > 3000000);
	for (size_t i = 0; i < 3000000; i++)
		CHECK(buf[n - 3000000 + i] == (char)(i % 251));
	for (size_t i = 0; i < sizeof buf; i++)
		buf[i] = (char)(i % 251);
	put_tls(ssl, "PUT /upload HTTP/1.1\r\nHost: h\r\nContent-Length: 3000000\r\n\r\n");
	CHECK_INT(SSL_write(ssl, buf, 3000000), 3000000);
	want_tls(ssl, "3000000");
	seen->bytes = 0;
	put_tls(ssl, "PUT /upload-paused?1 HTTP/1.1\r\nHost: h\r\nContent-Length: 400000\r\n\r\n");
	CHECK_INT(SSL_write(ssl, buf, 400000), 400000);
	want_tls(ssl, "400000");
}

TEST(streams_go_both_ways_by_tls)
{
	serve_tls(carry_much);
	CHECK_INT(seen->wrong, 0);
}

static void leave_tls(void)
{
	for (int i = 0; i < 4; i++) {
		SSL *ssl = dial_tls();

		put_tls(ssl, GET("/never"));
		CHECK(await_count(&seen->requests, i + 1));
		if (i % 2)
			SSL_shutdown(ssl);
		hang_up(ssl);
		CHECK(await_count(&seen->gone, i + 1));
	}
	/* Half of it is closed, properly: the answer comes. */
	SSL *ssl = dial_tls();
	put_tls(ssl, GET("/later?50"));
	SSL_shutdown(ssl);
	want_tls(ssl, "later");
}

TEST(a_client_that_leaves_tls_is_noticed)
{
	serve_tls(leave_tls);
	CHECK_INT(seen->gone, 4);
}

static void raw_tls(void)
{
	SSL *ssl = dial_tls();
	char buf[512] = "";

	put_tls(ssl, "GET /upgrade HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\n"
	             "Upgrade: echo\r\n\r\nahead");
	for (size_t n = 0; n < sizeof buf - 1 && !strstr(buf, "\r\n\r\nahead"); n++)
		CHECK_INT(SSL_read(ssl, buf + n, 1), 1);
	put_tls(ssl, "more");
	CHECK_INT(SSL_read(ssl, buf, 4), 4);
	CHECK(memcmp(buf, "more", 4) == 0);
	SSL_shutdown(ssl);
	CHECK_INT(SSL_read(ssl, buf, sizeof buf), 0);
	CHECK_INT(seen->ends, 1);
}

TEST(an_upgrade_stays_inside_tls)
{
	serve_tls(raw_tls);
}

enum { IDLE = 500 };

static void be_idle(void)
{
	SSL *all[IDLE];

	for (int i = 0; i < IDLE; i++) {
		all[i] = dial_tls();
		put_tls(all[i], GET("/hello"));
		want_tls(all[i], "hello");
	}
	put_tls(all[0], GET("/later?50"));
	want_tls(all[0], "later");
	_exit(0);
}

TEST(an_idle_tls_connection_keeps_no_buffers)
{
	struct rusage a, b;

	open_tls_server();
	getrusage(RUSAGE_SELF, &a);
	serve_only(be_idle);
	getrusage(RUSAGE_SELF, &b);
	printf("# %ld KiB each\n", (b.ru_maxrss - a.ru_maxrss) / IDLE);
	CHECK(!MEMORY_IS_OURS || (b.ru_maxrss - a.ru_maxrss) / IDLE < 40);
	close_server();
}
