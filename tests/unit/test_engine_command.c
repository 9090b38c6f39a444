#include "engine/command.h"

#include "test.h"

/* ---- a command from flags ---------------------------------------------------------- */

static char *const nothing[] = { (char *)(uintptr_t) "true", NULL };

struct made {
	struct spec spec;
	struct command command;
	struct err e;
	int r;
};

static void made_done(struct made *m)
{
	command_done(&m->command);
	spec_done(&m->spec);
}

/* `flags` are pairs of flag and value, ended by NULL. */
static void make_with(struct made *m, struct command_ask ask, const char *const *flags)
{
	*m = (struct made){ 0 };
	spec_init(&m->spec);
	for (; *flags; flags += 2)
		if (spec_flag(&m->spec, flags[0], flags[1], &m->e) < 0)
			CHECK_STR(m->e.msg, "");
	if (spec_check(&m->spec, &m->e) < 0)
		CHECK_STR(m->e.msg, "");
	spec_resolve(&m->spec);
	m->r = command_make(&m->command, &m->spec, ask, &m->e);
}

static void make(struct made *m, const char *const *flags)
{
	make_with(m, (struct command_ask){ .argv = nothing, .uid = 1000, .gid = 1000 }, flags);
}
#define FLAGS(...) ((const char *const[]){ __VA_ARGS__ __VA_OPT__(, ) NULL })

static void check_made(const struct made *m)
{
	if (m->r < 0)
		CHECK_STR(m->e.msg, "");
	CHECK(command_is_whole(&m->command));
}

static void check_refused(const struct made *m, enum err_kind kind, const char *part)
{
	printf("# %s\n", m->e.msg);
	CHECK_INT(m->r, -1);
	CHECK_STR(err_kind_name(m->e.kind), err_kind_name(kind));
	if (!strstr(m->e.msg, part))
		CHECK_STR(m->e.msg, part);
}

/* The value of a variable, and how often it is there. */
static const char *env_of(const struct command *c, const char *name, int *count)
{
	AUTO(freep) char **argv = mem_alloc((c->argc + 1) * sizeof *argv);
	AUTO(freep) char **env = mem_alloc((c->envc + 1) * sizeof *env);
	const char *value = NULL;
	size_t n = strlen(name);

	*count = 0;
	command_strings(c, argv, env);
	for (char **at = env; *at; at++) {
		if (strncmp(*at, name, n) == 0 && (*at)[n] == '=') {
			value = *at + n + 1;
			++*count;
		}
	}
	return value;
}

static void env_is(const struct command *c, const char *name, const char *want)
{
	int count;

	printf("# %s\n", name);
	CHECK_STR(env_of(c, name, &count), want);
	CHECK_INT(count, want != NULL);
}

/* ---- text -------------------------------------------------------------------------- */

TEST(argv_env_and_cwd_come_out_as_they_went_in)
{
	static const char *const args[] = { "sh", "-c", "", "a b\n\"c\"\t=", "\xff\x80", "" };
	char *argv[COUNT(args) + 1] = { NULL }, *got[COUNT(args) + 1];
	AUTO(made_done) struct made p;

	for (size_t i = 0; i < COUNT(args); i++)
		argv[i] = (char *)(uintptr_t)args[i];
	make_with(&p, (struct command_ask){ .argv = argv, .cwd = "/some/where" },
	          FLAGS("env", "EMPTY=", "env", "ODD=a=b\n", "fs", "ephemeral:/x"));
	check_made(&p);
	AUTO(freep) char **env = mem_alloc((p.command.envc + 1) * sizeof *env);
	CHECK_INT(p.command.argc, COUNT(args));
	command_strings(&p.command, got, env);
	for (size_t i = 0; i < COUNT(args); i++)
		CHECK_STR(got[i], args[i]);
	CHECK(!got[COUNT(args)]);
	CHECK_STR(p.command.text, "/some/where");
	env_is(&p.command, "EMPTY", "");
	env_is(&p.command, "ODD", "a=b\n");
}

TEST(what_is_to_be_held_goes_along_behind_the_environment)
{
	static const char text[] = "{\"gate\":{\"commands\":[\"git push\",\"rm *\"]}}";
	char *argv[] = { (char *)(uintptr_t) "true", NULL };
	struct err e = { 0 };

	for (uint64_t ms = 0; ms < 2; ms++) {
		AUTO(spec_done) struct spec s;
		AUTO(command_done) struct command c = { 0 };

		spec_init(&s);
		CHECK_INT(spec_json(&s, text, sizeof text - 1, &e), 0);
		spec_resolve(&s);
		CHECK_INT(
		    command_make(&c, &s, (struct command_ask){ .argv = argv, .trip_ms = ms }, &e),
		    0);
		CHECK(command_is_whole(&c));
		CHECK_INT(c.tripc, ms ? 2 : 0); /* nobody would answer */
		const char *first = command_trips(&c);

		if (ms == 0)
			CHECK(first == c.text + c.text_len);
		else
			CHECK_STR(first, "git push");
		if (ms > 0)
			CHECK_STR(first + strlen(first) + 1, "rm *");
		c.tripc ^= 1;
		CHECK(!command_is_whole(&c));
	}
}

TEST(what_belongs_to_one_command_is_passed_on)
{
	AUTO(made_done) struct made p;

	make_with(&p,
	          (struct command_ask){ .argv = nothing,
	                                .uid = 3,
	                                .gid = 4,
	                                .is_tty = true,
	                                .has_stdin = true,
	                                .is_merged = true,
	                                .is_final = true,
	                                .wants_usage = true,
	                                .is_alone = true,
	                                .is_gated = true,
	                                .timeout_ms = 1500,
	                                .log_max = 5,
	                                .window = 6,
	                                .rows = 50,
	                                .cols = 132 },
	          FLAGS("output", "1m"));
	check_made(&p);
	const struct command *c = &p.command;

	CHECK(c->is_tty && c->has_stdin && c->is_merged && c->is_final && c->wants_usage);
	CHECK(c->is_alone && c->is_gated);
	CHECK_INT(c->uid, 3);
	CHECK_INT(c->gid, 4);
	CHECK_INT(c->timeout_ms, 1500);
	CHECK_INT(c->log_max, 5);
	CHECK_INT(c->window, 6);
	CHECK_INT(c->output_max, 1 << 20);
	CHECK_INT(c->rows, 50);
	CHECK_INT(c->cols, 132);
}

/* The default bounds what is stored; what is passed on is cut only if asked for. */
TEST(output_is_cut_only_when_that_was_named)
{
	AUTO(made_done) struct made p;

	make(&p, FLAGS());
	CHECK(p.spec.limits[LIMIT_OUTPUT].value > 0);
	CHECK_INT(p.command.output_max, 0);
}

static void check_size(size_t arg_bytes, bool fits)
{
	AUTO(freep) char *arg = mem_alloc(arg_bytes + 1);
	char *argv[] = { arg, NULL };
	AUTO(made_done) struct made p;

	memset(arg, 'a', arg_bytes);
	make_with(&p, (struct command_ask){ .argv = argv, .uid = 1000 }, FLAGS());
	if (fits)
		check_made(&p);
	else
		check_refused(&p, ERR_LIMIT, "1572864 bytes");
}

TEST(an_overlong_command_is_refused_to_the_byte)
{
	AUTO(made_done) struct made p;

	make_with(&p,
	          (struct command_ask){ .argv = (char *[]){ (char[]){ "" }, NULL }, .uid = 1000 },
	          FLAGS());
	check_made(&p);
	size_t room = ARGV_BYTES_MAX - p.command.text_len;

	check_size(room, true);
	check_size(room + 1, false);
	check_size((size_t)4 * ARGV_BYTES_MAX, false);
}

static void check_count(size_t n, bool fits)
{
	AUTO(freep) char **argv = mem_alloc((n + 1) * sizeof *argv);
	AUTO(made_done) struct made p;

	for (size_t i = 0; i < n; i++)
		argv[i] = (char *)(uintptr_t) "";
	make_with(&p, (struct command_ask){ .argv = argv, .uid = 1000 }, FLAGS());
	if (fits)
		check_made(&p);
	else
		check_refused(&p, ERR_LIMIT, "exceed");
}

TEST(too_many_arguments_are_refused)
{
	AUTO(made_done) struct made p;

	make(&p, FLAGS());
	check_count(ARGV_COUNT_MAX - p.command.envc, true);
	check_count(ARGV_COUNT_MAX - p.command.envc + 1, false);
}

/* ---- environment ------------------------------------------------------------------- */

/* Told to programs that would ask, page or edit, where nobody is there to answer. */
static const char *const unattended[] = { "CI",        "DEBIAN_FRONTEND", "PAGER",
	                                  "GIT_PAGER", "GIT_EDITOR",      "GIT_TERMINAL_PROMPT" };

TEST(the_callers_environment_stays_outside)
{
	AUTO(made_done) struct made p;

	setenv("AWS_SECRET_ACCESS_KEY", "hunter2", 1);
	setenv("SSH_AUTH_SOCK", "/run/agent", 1);
	setenv("PATH", "/evil", 1);
	setenv("HOME", "/home/caller", 1);
	setenv("LD_PRELOAD", "/evil.so", 1);
	make(&p, FLAGS());
	check_made(&p);
	env_is(&p.command, "AWS_SECRET_ACCESS_KEY", NULL);
	env_is(&p.command, "SSH_AUTH_SOCK", NULL);
	env_is(&p.command, "LD_PRELOAD", NULL);
	env_is(&p.command, "PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
	env_is(&p.command, "HOME", "/home/agent");
	env_is(&p.command, "USER", "agent");
	env_is(&p.command, "LANG", "C.UTF-8");
	env_is(&p.command, "TMPDIR", "/tmp");
	env_is(&p.command, "CAISSON", "1");
	env_is(&p.command, "TERM", "dumb");
	CHECK_INT(p.command.envc, 7 + COUNT(unattended));
}

TEST(a_named_variable_replaces_the_default_and_is_there_once)
{
	static const char *const names[] = { "PATH",    "HOME", "USER", "LANG",  "TMPDIR",
		                             "CAISSON", "TERM", "CI",   "PAGER", "OTHER" };
	AUTO(made_done) struct made before;

	make(&before, FLAGS());
	for (size_t i = 0; i < COUNT(names); i++) {
		AUTO(made_done) struct made p;
		char pair[32];

		snprintf(pair, sizeof pair, "%s=mine", names[i]);
		make(&p, FLAGS("env", pair));
		check_made(&p);
		env_is(&p.command, names[i], "mine");
		CHECK_INT(p.command.envc, before.command.envc + (i + 1 == COUNT(names)));
	}
}

TEST(where_tls_ends_at_the_gate_variables_say_whom_to_trust)
{
	static const struct {
		const char *net;
		bool is_told;
	} rows[] = {
		{ "\"deny\"", false },
		{ "\"allow\"", false },
		{ "{\"allow\": [\"a.test\"]}", false },
		{ "{\"allow\": [\"a.test\"], \"tls_any\": [\"a.test\"]}", false },
		{ "{\"allow\": [\"a.test\"], \"inspect\": [\"a.test\"]}", true },
		{ "{\"http\": [{\"host\": \"a.test\", \"paths\": [\"/\"]}]}", true },
		{ "{\"mock\": {\"a.test\": \"m\"}, \"mocks\": {\"m\": \"answers: []\"}}", true },
	};
	static const char bundle[] = "/etc/ssl/certs/ca-certificates.crt",
			  cert[] = "/etc/ssl/certs/caisson.pem";

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct made p = { 0 };
		char text[256];

		snprintf(text, sizeof text, "{\"net\": %s, \"env\": {\"DENO_CERT\": \"mine\"}}",
		         rows[i].net);
		printf("# %s\n", text);
		spec_init(&p.spec);
		if (spec_json(&p.spec, text, strlen(text), &p.e) < 0)
			CHECK_STR(p.e.msg, "");
		spec_resolve(&p.spec);
		p.r = command_make(&p.command, &p.spec, (struct command_ask){ .argv = nothing },
		                   &p.e);
		check_made(&p);
		env_is(&p.command, "SSL_CERT_FILE", rows[i].is_told ? bundle : NULL);
		env_is(&p.command, "REQUESTS_CA_BUNDLE", rows[i].is_told ? bundle : NULL);
		env_is(&p.command, "NODE_EXTRA_CA_CERTS", rows[i].is_told ? cert : NULL);
		env_is(&p.command, "DENO_CERT", "mine");
		made_done(&p);
	}
}

TEST(defaults_follow_user_and_terminal)
{
	AUTO(made_done) struct made p;

	make_with(&p, (struct command_ask){ .argv = nothing, .is_tty = true }, FLAGS());
	check_made(&p);
	env_is(&p.command, "HOME", "/root");
	env_is(&p.command, "USER", "root");
	env_is(&p.command, "TERM", "xterm-256color");
	for (size_t i = 0; i < COUNT(unattended); i++)
		env_is(&p.command, unattended[i], NULL); /* somebody sits there */
}

/* ---- working directory ------------------------------------------------------------- */

TEST(where_a_command_starts)
{
	static const struct {
		const char *cwd, *fs[2], *want; /* want NULL: refused */
	} cases[] = {
		{ NULL, { "ephemeral:/work", NULL }, "/work" },
		{ NULL, { "ro:/usr:/work", NULL }, "/work" },
		{ NULL, { "ephemeral:/a", "ephemeral:/work" }, "/work" },
		{ NULL, { "ro:/usr:/a", NULL }, "/" },
		{ "/", { "ephemeral:/work", NULL }, "/" },
		{ "/usr/lib", { NULL, NULL }, "/usr/lib" },
		{ "/not/there", { NULL, NULL }, "/not/there" }, /* known only inside */
		{ "work", { NULL, NULL }, NULL },
		{ "", { NULL, NULL }, NULL },
		{ "./x", { NULL, NULL }, NULL },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		const char *const *fs = cases[i].fs;
		const char *flags[5] = { "fs", fs[0], "fs", fs[1], NULL };
		AUTO(made_done) struct made p;

		flags[fs[1] ? 4 : fs[0] ? 2 : 0] = NULL;
		make_with(&p,
		          (struct command_ask){ .argv = nothing, .uid = 1000, .cwd = cases[i].cwd },
		          flags);
		if (!cases[i].want) {
			check_refused(&p, ERR_INVALID, "cwd: ");
			continue;
		}
		check_made(&p);
		CHECK_STR(p.command.text, cases[i].want);
	}
}

/* ---- what a request adds, what comes from outside ---------------------------------- */

TEST(a_request_wins_over_the_spec_and_over_the_defaults)
{
	struct text_pair pairs[] = { { "PATH", "/mine" }, { "A", "of the request" }, { "C", "" } };
	const struct pair_list env = { .at = pairs, .len = COUNT(pairs) };
	AUTO(made_done) struct made p;

	make_with(&p, (struct command_ask){ .argv = nothing, .uid = 1000, .env = &env },
	          FLAGS("env", "A=of the spec", "env", "B=of the spec"));
	check_made(&p);
	env_is(&p.command, "PATH", "/mine");
	env_is(&p.command, "A", "of the request");
	env_is(&p.command, "B", "of the spec");
	env_is(&p.command, "C", "");
	env_is(&p.command, "HOME", "/home/agent");
}

TEST(a_command_without_arguments_is_none)
{
	char *const none[] = { NULL };
	AUTO(made_done) struct made p;

	make_with(&p, (struct command_ask){ .argv = none }, FLAGS());
	check_refused(&p, ERR_INVALID, "no command");
}

TEST(only_whole_text_is_taken)
{
	static const struct {
		const char *text;
		size_t n;
		uint32_t argc, envc;
		bool is_whole;
	} cases[] = {
		{ "/\0true", 7, 1, 0, true },
		{ "/\0true\0A=", 10, 1, 1, true },
		{ "/\0\0\0", 4, 2, 0, true },
		{ "/\0\0\0", 4, 1, 0, false }, /* one too many */
		{ "/\0\0", 3, 1, 0, true },    /* the program is "": it is not found */
		{ "/\0true", 6, 1, 0, false }, /* no NUL at the end */
		{ "/\0true", 7, 2, 0, false },
		{ "/\0true", 7, 1, 1, false },
		{ "/\0true", 7, 0, 1, false },
		{ "/\0true", 7, UINT32_MAX, 1, false },
		{ "/\0true", 7, 1, UINT32_MAX, false },
		{ "/\0true", 7, UINT32_MAX, 2, false },
		{ "x\0true", 7, 1, 0, false }, /* where is that? */
		{ "\0true", 6, 1, 0, false },
		{ "", 0, 1, 0, false },
		{ "", 0, 0, 0, false },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		AUTO(freep) char *text = mem_alloc(cases[i].n + 1);
		struct command c = { .text = text,
			             .text_len = cases[i].n,
			             .argc = cases[i].argc,
			             .envc = cases[i].envc };

		printf("# case %zu\n", i);
		memcpy(text, cases[i].text, cases[i].n);
		CHECK_INT(command_is_whole(&c), cases[i].is_whole);
	}
}
