#include "engine/command.h"

#include "engine/trust.h"
#include "spec/trip.h"

static void add_text(struct str *s, const char *text)
{
	str_addn(s, text, strlen(text) + 1);
}

static bool has_key(const struct pair_list *list, const char *name)
{
	for (size_t i = 0; list && i < list->len; i++)
		if (strcmp(list->at[i].key, name) == 0)
			return true;
	return false;
}

struct environment {
	struct command *c;
	struct str *text;
	const struct pair_list *spec, *ask; /* each wins over what is before it */
	bool reads_tls;
};

static void add_env(struct environment *v, const struct text_pair *p)
{
	str_addf(v->text, "%s=", p->key);
	add_text(v->text, p->value);
	v->c->envc++;
}

static void add_ours(struct environment *v, const struct text_pair *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!has_key(v->spec, p[i].key) && !has_key(v->ask, p[i].key))
			add_env(v, &p[i]);
}

/* The caller's PATH, HOME, tokens and sockets stay outside: only this list and what was named. */
static void add_environment(struct environment *v)
{
	const struct command *c = v->c;
	const struct text_pair ours[] = {
		{ "PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" },
		{ "HOME", c->uid == 0 ? "/root" : "/home/agent" },
		{ "USER", c->uid == 0 ? "root" : "agent" },
		{ "LANG", "C.UTF-8" },
		{ "TMPDIR", "/tmp" },
		{ "CAISSON", "1" },
		{ "TERM", c->is_tty ? "xterm-256color" : "dumb" },
	};
	/* Nobody is there to answer: programs that would ask, page or edit are told so. */
	static const struct text_pair unattended[] = {
		{ "CI", "1" },
		{ "DEBIAN_FRONTEND", "noninteractive" },
		{ "PAGER", "cat" },
		{ "GIT_PAGER", "cat" },
		{ "GIT_EDITOR", "true" },
		{ "GIT_TERMINAL_PROMPT", "0" },
	};

	/* Clients that bring their own list of whom to trust. The others read the image's, which
	 * has the sandbox's CA when it needs one (engine/trust.h). */
	static const struct text_pair trusting[] = {
		{ "SSL_CERT_FILE", TRUST_BUNDLE },      /* an OpenSSL of their own; rustls */
		{ "REQUESTS_CA_BUNDLE", TRUST_BUNDLE }, /* Python's certifi: requests, pip */
		{ "NODE_EXTRA_CA_CERTS", TRUST_CERT },
		{ "DENO_CERT", TRUST_CERT },
	};

	add_ours(v, ours, COUNT(ours));
	if (!c->is_tty)
		add_ours(v, unattended, COUNT(unattended));
	if (v->reads_tls)
		add_ours(v, trusting, COUNT(trusting));
	for (size_t i = 0; i < v->spec->len; i++)
		if (!has_key(v->ask, v->spec->at[i].key))
			add_env(v, &v->spec->at[i]);
	for (size_t i = 0; v->ask && i < v->ask->len; i++)
		add_env(v, &v->ask->at[i]);
}

const char *command_cwd(const struct spec *s)
{
	for (size_t i = 0; i < s->fs.len; i++)
		if (strcmp(s->fs.at[i].at, "/work") == 0)
			return "/work";
	return s->fs.len > 0 && s->fs.at[0].kind != FS_RO ? s->fs.at[0].at : "/";
}

int command_make(struct command *c, const struct spec *s, struct command_ask ask, struct err *e)
{
	struct str text = { .max = ARGV_BYTES_MAX };
	const struct limit *output = &s->limits[LIMIT_OUTPUT];
	const char *cwd = ask.cwd ? ask.cwd : command_cwd(s);

	*c = (struct command){ .uid = ask.uid,
		               .gid = ask.gid,
		               .is_tty = ask.is_tty,
		               .has_stdin = ask.has_stdin,
		               .is_merged = ask.is_merged,
		               .is_final = ask.is_final,
		               .wants_usage = ask.wants_usage,
		               .is_shell = ask.is_shell,
		               .is_alone = ask.is_alone,
		               .is_gated = ask.is_gated,
		               .rows = ask.rows,
		               .cols = ask.cols,
		               .timeout_ms = ask.timeout_ms,
		               .log_max = ask.log_max,
		               .output_max = output->named ? output->value : 0,
		               .window = ask.window,
		               .trip_ms = ask.trip_ms };
	if (cwd[0] != '/')
		return err_new(e, ERR_INVALID, "cwd: %s is not an absolute path", cwd);
	add_text(&text, cwd);
	for (; ask.argv[c->argc]; c->argc++)
		add_text(&text, ask.argv[c->argc]);
	add_environment(&(struct environment){ c, &text, &s->env, ask.env, spec_reads_tls(s) });
	for (; ask.trip_ms > 0 && c->tripc < s->commands.len; c->tripc++)
		add_text(&text, s->commands.at[c->tripc]);
	c->text = text.data;
	c->text_len = text.len;
	if (text.overflow || c->argc + c->envc > ARGV_COUNT_MAX)
		return err_new(e, ERR_LIMIT, "command and environment exceed %u bytes",
		               ARGV_BYTES_MAX);
	if (c->argc == 0)
		return err_new(e, ERR_INVALID, "no command");
	return 0;
}

void command_done(struct command *c)
{
	freep(&c->text);
	c->text_len = 0;
}

static char *take(char *at, uint32_t count, char **out)
{
	for (uint32_t i = 0; i < count; i++) {
		out[i] = at;
		at += strlen(at) + 1;
	}
	out[count] = NULL;
	return at;
}

void command_strings(const struct command *c, char **argv, char **env)
{
	char *rest = take(c->text + strlen(c->text) + 1, c->argc, argv);

	take(rest, c->envc, env);
}

const char *command_trips(const struct command *c)
{
	const char *at = c->text;

	for (uint64_t i = 0; i < 1 + (uint64_t)c->argc + c->envc; i++)
		at += strlen(at) + 1;
	return at;
}

bool command_is_whole(const struct command *c)
{
	uint64_t count = 0;

	if (c->argc == 0 || c->argc > ARGV_COUNT_MAX || c->envc > ARGV_COUNT_MAX ||
	    c->tripc > TRIPS_MAX)
		return false;
	for (size_t at = 0; at < c->text_len; count++) {
		const char *nul = memchr(c->text + at, '\0', c->text_len - at);

		if (!nul)
			return false;
		at = (size_t)(nul - c->text) + 1;
	}
	return count == 1 + (uint64_t)c->argc + c->envc + c->tripc && c->text[0] == '/';
}
