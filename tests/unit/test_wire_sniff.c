#include "wire/sniff.h"

#include "test.h"

/* clang-format off */
static const struct row {
	const char *bytes;
	size_t n;
	enum sniff want;
	size_t decided; /* with so many bytes and not before */
} rows[] = {
#define ROW(text, want, decided) { text, sizeof(text) - 1, want, decided }
	ROW("\x16\x03\x01\x02\x00\x01", SNIFF_TLS, 2),
	ROW("\x16\x03\x03\x00\x00", SNIFF_TLS, 2),
	ROW("\x15\x03\x01\x00\x02\x01\x00\x16\x03\x01", SNIFF_TLS, 2), /* an alert before the hello */
	ROW("\x14\x03\x03\x00\x01\x01", SNIFF_TLS, 2),
	ROW("\x17\x03\x03\x00\x01\x01", SNIFF_TLS, 2),
	ROW("\x80\x2e\x01\x03\x01\x00\x15", SNIFF_TLS, 4),             /* SSLv2 hello that offers TLS */
	ROW("\x80\x2e\x01\x00\x02\x00\x15", SNIFF_TLS, 4),
	ROW("\x16\x04\x01", SNIFF_OTHER, 2),
	ROW("\x80\x00\x02\x00", SNIFF_OTHER, 3),
	ROW("\x80\x00\x01\x04", SNIFF_OTHER, 4),
	ROW("GET / HTTP/1.1\r\n", SNIFF_HTTP, 4),
	ROW("HEAD / HTTP/1.1\r\n", SNIFF_HTTP, 5),
	ROW("POST /x HTTP/1.1\r\n", SNIFF_HTTP, 5),
	ROW("PUT /x HTTP/1.1\r\n", SNIFF_HTTP, 4),
	ROW("PATCH /x HTTP/1.1\r\n", SNIFF_HTTP, 6),
	ROW("DELETE /x HTTP/1.1\r\n", SNIFF_HTTP, 7),
	ROW("OPTIONS * HTTP/1.1\r\n", SNIFF_HTTP, 8),
	ROW("TRACE / HTTP/1.1\r\n", SNIFF_HTTP, 6),
	ROW("CONNECT example.org:443 HTTP/1.1\r\n", SNIFF_HTTP, 8),
	ROW("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", SNIFF_HTTP, 4),
	ROW("GET http://example.org/ HTTP/1.1\r\n", SNIFF_HTTP, 4),
	ROW("PROPFIND /dav HTTP/1.1\r\n", SNIFF_HTTP, 10),
	ROW("get / HTTP/1.1\r\n", SNIFF_HTTP, 5),
	ROW("M-SEARCH * HTTP/1.1\r\n", SNIFF_HTTP, 10),
	ROW("foo HTTP://example.org/ HTTP/1.1\r\n", SNIFF_HTTP, 9),
	ROW("foo https://example.org/ HTTP/1.1\r\n", SNIFF_HTTP, 10),
	ROW("foo \t  / HTTP/1.1\r\n", SNIFF_HTTP, 8),
	ROW("foo\v/ HTTP/1.1\r\n", SNIFF_HTTP, 5),
	ROW("\r\nGET / HTTP/1.1\r\n", SNIFF_HTTP, 1),
	ROW("\nGET / HTTP/1.1\r\n", SNIFF_HTTP, 1),
	ROW(" GET / HTTP/1.1\r\n", SNIFF_HTTP, 1),
	ROW("GET\t/ HTTP/1.1\r\n", SNIFF_HTTP, 4),
	ROW("SSH-2.0-OpenSSH_9.2\r\n", SNIFF_SSH, 4),
	ROW("SSH_2.0", SNIFF_MORE, 0),
	ROW("SSH 2.0", SNIFF_OTHER, 5),
	ROW("EHLO mail.example.org\r\n", SNIFF_OTHER, 6),
	ROW("EHLO host.example.org\r\n", SNIFF_OTHER, 7),
	ROW("USER anonymous\r\n", SNIFF_OTHER, 6),
	ROW("PING\r\n", SNIFF_OTHER, 5),
	ROW("*1\r\n$4\r\nPING\r\n", SNIFF_OTHER, 3),
	ROW("GETX\r\n", SNIFF_OTHER, 5),
	ROW("\x00\x00\x00\x08\x04\xd2\x16\x2f", SNIFF_OTHER, 1), /* PostgreSQL: SSLRequest */
	ROW("\x10\x1a\x00\x04MQTT", SNIFF_OTHER, 1),
	ROW("\x03\x00\x00\x13", SNIFF_OTHER, 1),
	ROW("(", SNIFF_OTHER, 1),
	ROW("", SNIFF_MORE, 0),
	ROW("G", SNIFF_MORE, 0),
	ROW("foo htt", SNIFF_MORE, 0),
};
/* clang-format on */

TEST(first_bytes_one_by_one)
{
	for (size_t i = 0; i < COUNT(rows); i++) {
		const struct row *row = &rows[i];

		for (size_t n = 0; n <= row->n; n++) {
			bool is_open = n < row->decided || row->want == SNIFF_MORE;

			printf("# row %zu with %zu bytes\n", i, n);
			CHECK_INT(sniff((const uint8_t *)row->bytes, n),
			          is_open ? SNIFF_MORE : row->want);
		}
	}
}

/* Nobody waits for a byte that decides for ever; and what may still be HTTP is not waved through.
 */
TEST(there_is_an_answer_at_the_limit)
{
	uint8_t text[SNIFF_MAX + 8];

	for (int c = 0; c < 256; c++) {
		memset(text, c, sizeof text);
		CHECK(sniff(text, SNIFF_MAX) != SNIFF_MORE);
	}
	memset(text, ' ', sizeof text);
	text[0] = text[1] = 'x';
	CHECK_INT(sniff(text, SNIFF_MAX - 1), SNIFF_MORE);
	CHECK_INT(sniff(text, SNIFF_MAX), SNIFF_HTTP);
	text[SNIFF_MAX] = 'x'; /* what came behind the limit changes nothing */
	CHECK_INT(sniff(text, sizeof text), SNIFF_HTTP);
	memset(text, 'a', sizeof text);
	CHECK_INT(sniff(text, SNIFF_MAX), SNIFF_OTHER);
}
