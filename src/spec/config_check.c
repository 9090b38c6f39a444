/* What the texts of a config must look like; config.c has the table that names these. */
#include "spec/config-internal.h"

#include "spec/opts.h"
#include "wire/hostname.h"

#define PORT_LEAST 1024 /* those below are not the daemon's to give */

int check_preset(const struct opt *o, struct arena *a, const char *text, const char **out,
                 struct err *e)
{
	(void)o;
	if (word_find(net_presets, text, e) < 0)
		return -1;
	*out = arena_strdup(a, text);
	return 0;
}

/* unix:PATH or ADDRESS:PORT; which address it is, the server knows. */
int check_listen(const struct opt *o, struct arena *a, const char *text, const char **out,
                 struct err *e)
{
	const char *port = strrchr(text, ':');

	if (text_plain(text, PATH_TEXT_MAX - 1, e) < 0)
		return -1;
	if (strncmp(text, "unix:", 5) == 0) {
		const char *path = NULL;

		if (check_path(o, a, text + 5, &path, e) < 0)
			return -1;
	} else if (!port || port == text || !port[1] ||
	           port[1 + strspn(port + 1, "0123456789")] != '\0') {
		return err_new(e, ERR_INVALID, "\"%s\" is neither unix:PATH nor HOST:PORT",
		               quote(text).text);
	}
	*out = arena_strdup(a, text);
	return 0;
}

int check_switch(const struct opt *o, struct arena *a, const char *text, const char **out,
                 struct err *e)
{
	(void)o;
	if (strcmp(text, "on") != 0 && strcmp(text, "off") != 0)
		return err_new(e, ERR_INVALID, "\"%s\" is neither on nor off", quote(text).text);
	*out = arena_strdup(a, text);
	return 0;
}

int check_domain(const struct opt *o, struct arena *a, const char *text, const char **out,
                 struct err *e)
{
	(void)o;
	if (!hostname_is_place(text))
		return err_new(e, ERR_INVALID, "\"%s\" is not NAME[:PORT]", quote(text).text);
	*out = arena_strdup(a, text);
	return 0;
}

int config_ports(const char *text, struct config_ports *out, struct err *e)
{
	unsigned int first = 0, last = 0;
	int end = 0;

	*out = (struct config_ports){ 0, 0 };
	if (!text || strcmp(text, "none") == 0)
		return 0;
	if (sscanf(text, "%5u-%5u%n", &first, &last, &end) != 2 || text[end] ||
	    text[strspn(text, "0123456789-")] || first < PORT_LEAST || last < first ||
	    last > UINT16_MAX)
		return err_new(e, ERR_INVALID,
		               "\"%s\" is neither FIRST-LAST (%d to 65535) nor none",
		               quote(text).text, PORT_LEAST);
	*out = (struct config_ports){ (uint16_t)first, (uint16_t)last };
	return 0;
}

int check_ports(const struct opt *o, struct arena *a, const char *text, const char **out,
                struct err *e)
{
	struct config_ports unused;

	(void)o;
	if (config_ports(text, &unused, e) < 0)
		return -1;
	*out = arena_strdup(a, text);
	return 0;
}

int check_level(const struct opt *o, struct arena *a, const char *text, const char **out,
                struct err *e)
{
	static const char *const levels[] = { "debug", "info", "warn", "error" };

	(void)o;
	for (size_t i = 0; i < COUNT(levels); i++)
		if (strcmp(text, levels[i]) == 0) {
			*out = arena_strdup(a, text);
			return 0;
		}
	return err_new(e, ERR_INVALID, "\"%s\" is neither debug, info, warn nor error",
	               quote(text).text);
}

#define CACHE_LEAST (64ull << 20)

int check_key(const struct opt *o, struct arena *a, const char *text, const char **out,
              struct err *e)
{
	static const char *const places[] = { "env:", "keyring:" };

	(void)o;
	if (text_plain(text, NAME_TEXT_MAX, e) < 0)
		return -1;
	for (size_t i = 0; i < COUNT(places); i++) {
		size_t n = strlen(places[i]);

		if (strncmp(text, places[i], n) == 0 && text[n]) {
			*out = arena_strdup(a, text);
			return 0;
		}
	}
	/* Not repeated: it may be the key. */
	return err_new(e, ERR_INVALID, "wants env:NAME or keyring:NAME");
}

int check_cache(const struct opt *o, struct arena *a, const char *text, const char **out,
                struct err *e)
{
	uint64_t bytes = 0;

	(void)o;
	if (strcmp(text, "off") != 0 && (size_parse(text, &bytes, e) < 0 || bytes < CACHE_LEAST))
		return err_new(e, ERR_INVALID, "\"%s\" is neither a size from 64m on nor off",
		               quote(text).text);
	*out = arena_strdup(a, text);
	return 0;
}
