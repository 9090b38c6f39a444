#include "cache/storefile.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <jansson.h>
#include <sys/stat.h>

#include "base/hex.h"
#include "os/extent.h"
#include "os/file.h"

#define CLAIM_LINE_MAX (DIGEST_TEXT_SIZE + 2ul * STORE_KEY_SIZE + 2)

/* ---- out ----------------------------------------------------------------------------- */

static void print_claims(const store_claims *claims, struct str *out)
{
	for (size_t i = 0; i < claims->len; i++) {
		char digest[DIGEST_TEXT_SIZE], key[2 * STORE_KEY_SIZE + 1];

		digest_print(&claims->at[i].digest, digest);
		hex_print(claims->at[i].key, STORE_KEY_SIZE, key);
		str_addf(out, "%s %s\n", digest, key);
	}
}

static json_t *print_real(const struct rules_addr *a)
{
	char ip[INET6_ADDRSTRLEN] = "", text[INET6_ADDRSTRLEN + 16];

	(void)inet_ntop(a->is_v6 ? AF_INET6 : AF_INET, a->at, ip, sizeof ip);
	snprintf(text, sizeof text, "%s %u", ip, a->port);
	return json_string(text);
}

static json_t *describe(const struct entry *n)
{
	char sha256[2 * STORE_SHA_SIZE + 1];

	hex_print(n->sha256, STORE_SHA_SIZE, sha256);
	json_t *o = json_pack("{si,ss,ss,ss,ss,sI,so}", "v", 1, "kind", pkg_name(n->kind), "url",
	                      n->url, "type", n->type ? n->type : "", "sha256", sha256, "bytes",
	                      (json_int_t)n->bytes, "real", print_real(&n->real));
	const struct {
		const char *key, *value;
	} more[] = { { "etag", n->etag }, { "modified", n->modified }, { "control", n->control } };

	for (size_t i = 0; i < COUNT(more); i++)
		if (more[i].value)
			json_object_set_new(o, more[i].key, json_string(more[i].value));
	return o;
}

size_t storefile_print(const struct entry *n, const store_claims *claims, struct str *out)
{
	size_t before = out->len;

	if (claims)
		print_claims(claims, out);
	size_t of_claims = out->len - before;
	json_t *o = describe(n);
	AUTO(freep) char *text = json_dumps(o, JSON_COMPACT);

	json_decref(o);
	str_add(out, text);
	str_addf(out, "%016llu %010zu %010zu\n", (unsigned long long)n->hits, of_claims,
	         strlen(text));
	return of_claims;
}

/* ---- in ------------------------------------------------------------------------------ */

static void claim_push(store_claims *out, const struct store_claim *c)
{
	vec_push(out, *c);
}

static bool take_claims(char *text, store_claims *out)
{
	for (char *rest = text, *line; (line = strsep(&rest, "\n")) && *line;) {
		struct store_claim c;
		char *key = strchr(line, ' ');

		if (!key)
			return false;
		*key++ = '\0';
		if (!digest_read(line, &c.digest) || !hex_read(key, c.key, sizeof c.key))
			return false;
		claim_push(out, &c);
	}
	return true;
}

static bool take_real(const char *text, struct rules_addr *out)
{
	char ip[INET6_ADDRSTRLEN + 1];
	unsigned int port;

	if (sscanf(text, "%46s %u", ip, &port) != 2 || port > UINT16_MAX)
		return false;
	out->port = (uint16_t)port;
	out->is_v6 = strchr(ip, ':');
	return inet_pton(out->is_v6 ? AF_INET6 : AF_INET, ip, out->at) == 1;
}

static char *copy(const json_t *o, const char *key)
{
	const char *text = json_string_value(json_object_get(o, key));

	return text ? mem_strdup(text) : NULL;
}

static bool take_json(const char *text, struct entry *n)
{
	json_t *o = json_loads(text, 0, NULL);
	const char *kind = "", *sha256 = "", *real = "", *url = NULL;
	json_int_t bytes = -1;
	int version = 0;
	bool is_good = json_unpack(o, "{si,ss,ss,ss,sI,ss}", "v", &version, "kind", &kind, "url",
	                           &url, "sha256", &sha256, "bytes", &bytes, "real", &real) == 0 &&
	               version == 1 && bytes >= 0 && hex_read(sha256, n->sha256, STORE_SHA_SIZE) &&
	               take_real(real, &n->real);

	n->kind = pkg_find(kind, strlen(kind));
	n->bytes = (uint64_t)bytes;
	n->url = copy(o, "url");
	n->type = copy(o, "type");
	n->etag = copy(o, "etag");
	n->modified = copy(o, "modified");
	n->control = copy(o, "control");
	json_decref(o);
	return is_good && n->kind != PKG_NONE;
}

/* A part of the file as text. */
static char *read_part(int fd, off_t at, size_t n)
{
	char *text = mem_alloc(n + 1);

	if (os_pread(fd, text, n, at) != (int)n) {
		free(text);
		return NULL;
	}
	text[n] = '\0';
	return text;
}

int storefile_read(int fd, struct entry *n, store_claims *claims, struct err *e)
{
	unsigned long long hits = 0;
	size_t of_claims = 0, of_json = 0;
	struct stat st;
	int r = os_fstatat(fd, "", &st, AT_EMPTY_PATH);

	if (r < 0)
		return err_sys(e, -r, "stat");
	AUTO(freep)
	char *footer =
	    st.st_size < FOOTER_SIZE ? NULL : read_part(fd, st.st_size - FOOTER_SIZE, FOOTER_SIZE);

	if (!footer || sscanf(footer, "%16llu %10zu %10zu\n", &hits, &of_claims, &of_json) != 3 ||
	    of_json > HEADER_MAX || of_claims > STORE_CLAIMS_OF_ONE_MAX * CLAIM_LINE_MAX ||
	    of_claims + of_json + FOOTER_SIZE > (uint64_t)st.st_size)
		return err_new(e, ERR_INVALID, "no entry");
	off_t at = st.st_size - (off_t)(FOOTER_SIZE + of_json + of_claims);
	AUTO(freep) char *lines = read_part(fd, at, of_claims);
	AUTO(freep) char *json = read_part(fd, at + (off_t)of_claims, of_json);

	if (!lines || !json || !take_json(json, n) || !take_claims(lines, claims) ||
	    (n->is_index && n->bytes != (uint64_t)at))
		return err_new(e, ERR_INVALID, "no entry");
	n->hits = hits;
	n->used_ms = st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
	n->size = (uint64_t)st.st_size;
	return 0;
}
