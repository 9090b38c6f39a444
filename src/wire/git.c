#include "wire/git.h"

#include "wire/hostname.h"
#include "wire/utf8.h"

#define HTTPS "https://"
#define FILES "file://"

static bool is_text(const char *text)
{
	return utf8_is(text, strlen(text));
}

/* ---- where --------------------------------------------------------------------------- */

/* What may stand in a path: of a URL without query and fragment, of a folder nearly anything. */
static bool path_is(const char *path, bool is_url)
{
	for (const char *c = path; *c; c++) {
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			return false;
		if (is_url && ((unsigned char)*c >= 0x80 || strchr(" \"#<>?\\^`{|}", *c)))
			return false;
	}
	for (const char *at = path; (at = strstr(at, "/..")); at += 3)
		if (at[3] == '/' || at[3] == '\0')
			return false;
	return path[0] == '/';
}

static int read_folder(const char *path, struct git_url *out, struct err *e)
{
	size_t n = strlen(path);

	if (!path_is(path, false))
		return err_new(
		    e, ERR_INVALID,
		    "url: a folder is an absolute path without .. and control characters");
	while (n > 1 && path[n - 1] == '/')
		n--;
	out->is_folder = true;
	snprintf(out->text, sizeof out->text, "%.*s", (int)n, path);
	return 0;
}

static int read_port(const char *text, size_t n, uint16_t *out)
{
	unsigned long port = 0;

	for (size_t i = 0; i < n; i++) {
		if (text[i] < '0' || text[i] > '9' || port > UINT16_MAX)
			return -1;
		port = port * 10 + (unsigned long)(text[i] - '0');
	}
	if (n == 0 || port == 0 || port > UINT16_MAX)
		return -1;
	*out = (uint16_t)port;
	return 0;
}

static int read_https(const char *rest, struct git_url *out, struct err *e)
{
	size_t authority = strcspn(rest, "/"), host;
	const char *path = rest + authority;
	size_t n = strlen(path);

	if (memchr(rest, '@', authority))
		return err_new(e, ERR_INVALID,
		               "url: no user and no password in it; name a credential with cred");
	host = strcspn(rest, ":/");
	out->port = 443;
	if (host < authority && read_port(rest + host + 1, authority - host - 1, &out->port) < 0)
		return err_new(e, ERR_INVALID, "url: no such port");
	if (!hostname_read(rest, host, out->host))
		return err_new(e, ERR_INVALID, "url: the host is not a name");
	if (!path_is(path, true) || strspn(path, "/") == n)
		return err_new(e, ERR_INVALID,
		               "url: https://HOST[:PORT]/PATH is expected, without "
		               "query, fragment and ..");
	while (path[n - 1] == '/')
		n--;
	char port[8] = "";
	if (out->port != 443)
		snprintf(port, sizeof port, ":%u", out->port);
	snprintf(out->text, sizeof out->text, HTTPS "%s%s%.*s", out->host, port, (int)n, path);
	return 0;
}

int git_url_read(const char *text, struct git_url *out, struct err *e)
{
	*out = (struct git_url){ 0 };
	if (strlen(text) >= GIT_URL_SIZE - sizeof HTTPS)
		return err_new(e, ERR_INVALID, "url: longer than %d bytes", GIT_URL_SIZE);
	if (!is_text(text))
		return err_new(e, ERR_INVALID, "url: not UTF-8");
	if (strncmp(text, HTTPS, strlen(HTTPS)) == 0)
		return read_https(text + strlen(HTTPS), out, e);
	if (strncmp(text, FILES, strlen(FILES)) == 0)
		return read_folder(text + strlen(FILES), out, e);
	if (text[0] == '/')
		return read_folder(text, out, e);
	return err_new(e, ERR_INVALID,
	               "url: https://HOST/PATH, file:///PATH or an absolute path is expected");
}

void git_url_key(const struct git_url *u, char *out, size_t size)
{
	const char *end = u->text + strlen(u->text), *from = end;
	unsigned int slashes = 0;
	size_t n = 0;

	if (end - u->text > 4 && strcmp(end - 4, ".git") == 0)
		end -= 4;
	while (from > u->text && slashes < 2)
		slashes += *--from == '/';
	for (from += *from == '/'; from < end && n + 1 < size; from++) {
		bool is_word = (*from >= 'a' && *from <= 'z') || (*from >= 'A' && *from <= 'Z') ||
		               (*from >= '0' && *from <= '9') || (n > 0 && *from == '.');
		out[n++] = (char)(is_word ? *from : '-');
	}
	out[n] = '\0';
	if (n == 0 || out[0] == '-' || out[0] == '.')
		snprintf(out, size, "repo");
}

/* ---- names --------------------------------------------------------------------------- */

static bool part_is(const char *part, size_t n)
{
	return n > 0 && part[0] != '.' && part[n - 1] != '.' &&
	       !(n >= 5 && memcmp(part + n - 5, ".lock", 5) == 0);
}

bool git_ref_is(const char *name)
{
	size_t len = strlen(name);

	if (len == 0 || len > GIT_REF_MAX || name[0] == '-' || strcmp(name, "@") == 0 ||
	    strstr(name, "..") || strstr(name, "@{") || !is_text(name))
		return false;
	for (const char *c = name; *c; c++)
		if ((unsigned char)*c <= 0x20 || *c == 0x7f || strchr("~^:?*[\\", *c))
			return false;
	for (const char *part = name;; part++) {
		size_t n = strcspn(part, "/");

		if (!part_is(part, n))
			return false;
		part += n;
		if (!*part)
			return true;
	}
}

bool git_pattern_is(const char *pattern)
{
	const char *star = strchr(pattern, '*');
	char plain[GIT_REF_MAX + 1];
	size_t n = strlen(pattern);

	if (strncmp(pattern, "refs/", 5) != 0 || n > GIT_REF_MAX)
		return false;
	if (!star)
		return git_ref_is(pattern);
	if (strchr(star + 1, '*') || star[-1] != '/' || (star[1] && star[1] != '/'))
		return false;
	memcpy(plain, pattern, n + 1);
	plain[star - pattern] = 'x';
	return git_ref_is(plain);
}

bool git_sha_is(const char *text, size_t n)
{
	if (n != 40 && n != 64)
		return false;
	for (size_t i = 0; i < n; i++)
		if (!(text[i] >= '0' && text[i] <= '9') && !(text[i] >= 'a' && text[i] <= 'f'))
			return false;
	return true;
}

bool git_person_is(const char *text)
{
	size_t n = strlen(text);

	if (n == 0 || n > GIT_REF_MAX || !is_text(text))
		return false;
	for (const char *c = text; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f || *c == '<' || *c == '>')
			return false;
	return text[strspn(text, " .,:;\"\\'")] != '\0';
}
