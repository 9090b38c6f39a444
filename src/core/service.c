#include "core/service.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"
#include "core/output.h"
#include "core/process.h"
#include "os/extent.h"

#define ERR_KEPT 4096
#define INPUT_PIECE (32u << 10)
#define ARGS_MAX 64

struct service {
	struct core *core;
	struct sbx *sandbox; /* NULL: not yet, or no more */
	struct px *p;
	struct px_watch watch;
	struct timer finish; /* nothing is told from within a callback of others */
	bool is_cancelled, is_over, is_made;
	struct fail fail;

	struct px_ask ask; /* what it points to is below */
	struct pair_list env;
	const char *argv[ARGS_MAX + 5];
	struct arena arena;

	int input_fd;
	unsigned char *input;
	size_t input_len, input_at;
	bool is_input_ended;

	struct scan scan;
	struct str out, err; /* err: the last ERR_KEPT bytes or so */
	char line[SERVICE_LINE_MAX];
	size_t line_len;
	uint64_t n_out, out_max;

	void (*on_out)(void *arg, const void *bytes, size_t n);
	void (*on_progress)(void *arg, const char *line);
	void (*on_done)(void *arg, const struct service_end *end);
	void *arg;
};

/* ---- what it writes ------------------------------------------------------------------ */

static bool is_plain(char c)
{
	return (unsigned char)c >= 0x20 && c != 0x7f;
}

static void end_line(struct service *s)
{
	while (s->line_len > 0 && s->line[s->line_len - 1] == ' ')
		s->line_len--;
	s->line[s->line_len] = '\0';
	if (s->line_len > 0) {
		str_addf(&s->err, "%s%s", s->err.len ? "\n" : "", s->line);
		if (s->on_progress && !s->is_cancelled)
			s->on_progress(s->arg, s->line);
	}
	s->line_len = 0;
	if (s->err.len > ERR_KEPT) { /* whole lines, the last ones */
		const char *from =
		    memchr(s->err.data + s->err.len - ERR_KEPT / 2, '\n', ERR_KEPT / 2);
		size_t n = from ? s->err.len - (size_t)(from + 1 - s->err.data) : 0;

		memmove(s->err.data, from ? from + 1 : s->err.data, n);
		s->err.len = n;
		s->err.data[n] = '\0';
	}
}

static void take_err(struct service *s, const unsigned char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char c = (char)bytes[i];

		if (c == '\n' || c == '\r')
			end_line(s);
		else if (s->line_len < sizeof s->line - 1)
			s->line[s->line_len++] = (char)(is_plain(c) ? c : '?');
	}
}

static void take_out(struct service *s, const unsigned char *bytes, size_t n)
{
	struct fail ignored;

	s->n_out += n;
	if (s->n_out > s->out_max) {
		if (s->fail.code == FAIL_NONE)
			fail_set(&s->fail, FAIL_TOO_LARGE, "more than %llu bytes",
			         (unsigned long long)s->out_max);
		if (s->p)
			(void)px_kill(s->p, &ignored); /* or it has ended */
		return;
	}
	if (s->on_out && !s->is_cancelled)
		s->on_out(s->arg, bytes, n);
	else if (!s->on_out)
		str_addn(&s->out, bytes, n);
}

/* Some of it; false: there is more. */
static bool read_some(struct service *s)
{
	uint64_t from = s->scan.at;
	struct scan_piece piece;

	while (s->scan.at - from < SCAN_TURN) {
		if (scan_next(&s->scan, &piece) <= 0)
			return true;
		if (piece.stream == LOG_ERR)
			take_err(s, piece.bytes, piece.len);
		else
			take_out(s, piece.bytes, piece.len);
	}
	return false;
}

/* ---- what it reads ------------------------------------------------------------------- */

static size_t next_input(struct service *s, unsigned char *buf, size_t max)
{
	size_t n = s->input_len - s->input_at;

	n = n < max ? n : max;
	if (s->input_fd < 0) {
		if (n > 0)
			memcpy(buf, s->input + s->input_at, n);
		return n;
	}
	int got = os_pread(s->input_fd, buf, n, (off_t)s->input_at);
	return got > 0 ? (size_t)got : 0;
}

static void feed(struct service *s)
{
	unsigned char buf[INPUT_PIECE];
	struct fail f = { 0 };

	while (!s->is_input_ended && s->p && !s->p->has_end) {
		size_t room = px_input_room(s->p);

		if (room == 0 && s->input_at < s->input_len)
			return; /* `changed` tells */
		size_t n = next_input(s, buf, room < sizeof buf ? room : sizeof buf);
		s->input_at += n;
		s->is_input_ended = n == 0 || s->input_at >= s->input_len;
		if (px_input(s->p, buf, n, s->is_input_ended, &f) < 0)
			s->is_input_ended = true; /* it has ended: its exit says why */
	}
}

/* ---- life ---------------------------------------------------------------------------- */

static void service_free(struct service *s)
{
	timer_stop(&s->core->timers, &s->finish);
	if (s->p) {
		px_watch_remove(s->p, &s->watch);
		px_unref(s->p);
	}
	scan_done(&s->scan);
	str_done(&s->out);
	str_done(&s->err);
	fd_close(&s->input_fd);
	free(s->input);
	vec_done(&s->env);
	arena_done(&s->arena);
	free(s);
}

static void explain(struct service *s, struct service_end *end)
{
	const struct px *p = s->p;

	end->fail = s->fail;
	if (end->fail.code != FAIL_NONE)
		return;
	if (p->state == PROCESS_TIMEOUT || p->state == PROCESS_EXPIRED)
		fail_set(&end->fail, FAIL_BACKEND_ERROR, "it took longer than %llu s",
		         (unsigned long long)(s->ask.timeout_ms / 1000));
	else if (p->state == PROCESS_OOM)
		fail_set(&end->fail, FAIL_TOO_LARGE, "it needs more memory than it may have");
	else if (p->state == PROCESS_EXITED)
		end->exit_code = p->end.exit_code;
	else if (p->state == PROCESS_SIGNALED)
		end->exit_code = 128 + p->end.signal;
	else
		fail_set(&end->fail, FAIL_SANDBOX_UNAVAILABLE, "%s", px_reason(p));
}

static void finish_fired(struct timer *t)
{
	struct service *s =
	    (struct service *)(void *)((char *)t - offsetof(struct service, finish));
	struct service_end end = { 0 };

	if (s->p && s->p->log_fd >= 0 && !read_some(s)) {
		timer_set(&s->core->timers, &s->finish, 0);
		return;
	}
	end_line(s);
	if (!s->is_cancelled) {
		explain(s, &end);
		end.out = str_text(&s->out);
		end.out_len = s->out.len;
		end.complaint = str_text(&s->err);
		s->on_done(s->arg, &end);
	}
	service_free(s);
}

static void finish(struct service *s)
{
	if (s->is_over)
		return;
	s->is_over = true;
	timer_set(&s->core->timers, &s->finish, 0);
}

static struct service *of_watch(struct px_watch *w)
{
	return (struct service *)(void *)((char *)w - offsetof(struct service, watch));
}

static void grew(struct px_watch *w)
{
	struct service *s = of_watch(w);

	if (s->is_over)
		return;
	(void)read_some(s);
	px_ack(s->p, s->scan.at); /* it rings again when there is more */
}

static void changed(struct px_watch *w)
{
	struct service *s = of_watch(w);

	if (s->p->is_over)
		finish(s);
	else
		feed(s);
}

static void begin(struct service *s)
{
	s->p = px_make(s->sandbox, &s->ask, &s->fail);
}

/* The walls are under way; the command goes with them. */
static void made(void *arg, struct sbx *sandbox, const struct fail *fail)
{
	struct service *s = arg;
	struct fail f;

	s->is_made = true;
	s->sandbox = fail ? NULL : sandbox;
	if (!fail && !s->p && s->fail.code == FAIL_NONE)
		begin(s);
	if (s->p && (fail || px_record(s->p, &s->fail) < 0)) {
		px_forget(s->p);
		s->p = NULL;
	}
	if (fail)
		s->fail = *fail;
	if (s->sandbox && (!s->p || s->is_cancelled))
		(void)sbx_delete(s->sandbox, NULL, NULL, &f);
	if (!s->p) {
		finish(s);
		return;
	}
	scan_init(&s->scan, s->p->log_fd, 0);
	s->watch = (struct px_watch){ .grew = grew, .changed = changed };
	px_watch_add(s->p, &s->watch);
	feed(s);
}

/* Only who is told by nobody else is ended here; its process is found dead in time. */
void service_cancel(struct service *s)
{
	struct fail f;

	if (!s || s->is_cancelled)
		return;
	s->is_cancelled = true;
	if (s->is_made && s->p && s->p->sandbox)
		(void)sbx_delete(s->p->sandbox, NULL, NULL, &f);
}

/* ---- what is asked ------------------------------------------------------------------- */

/* Nothing of the daemon's environment gets in; what git takes from elsewhere is switched off. */
static const struct text_pair fixed_env[] = {
	{ "HOME", "/nonexistent" },
	{ "LC_ALL", "C" },
	{ "GIT_ALLOW_PROTOCOL", "https:file" },
	{ "GIT_ASKPASS", "/bin/false" },
	{ "GIT_ATTR_NOSYSTEM", "1" },
	{ "GIT_CONFIG_GLOBAL", "/dev/null" },
	{ "GIT_CONFIG_NOSYSTEM", "1" },
	{ "GIT_EDITOR", "/bin/false" },
	{ "GIT_NO_REPLACE_OBJECTS", "1" },
	{ "GIT_OPTIONAL_LOCKS", "0" },
	{ "GIT_PAGER", "cat" },
	{ "GIT_PROTOCOL_FROM_USER", "0" },
	{ "GIT_SSH_COMMAND", "/bin/false" },
	{ "GIT_TERMINAL_PROMPT", "0" },
};

static void fill_command(struct service *s, const struct service_ask *ask)
{
	size_t n = 0;

	s->argv[n++] = "/bin/sh";
	s->argv[n++] = "-euc";
	s->argv[n++] = arena_strdup(&s->arena, ask->script);
	s->argv[n++] = "caisson";
	for (size_t i = 0; ask->args && ask->args[i] && i < ARGS_MAX; i++)
		s->argv[n++] = arena_strdup(&s->arena, ask->args[i]);
	for (size_t i = 0; i < COUNT(fixed_env); i++)
		vec_push(&s->env, fixed_env[i]);
	s->ask = (struct px_ask){ .argv = s->argv,
		                  .cwd = "/",
		                  .env = &s->env,
		                  .has_stdin = true,
		                  .is_final = true,
		                  .is_alone = true,
		                  .timeout_ms = ask->timeout_ms };
}

static void add_fs(struct spec *spec, struct fs_entry entry)
{
	vec_push(&spec->fs, entry);
}

static void add_host(struct spec *spec, const char *net)
{
	spec->net.mode = NET_LIST;
	vec_push(&spec->net.allow, arena_strdup(&spec->arena, net));
}

static void fill_spec(struct spec *spec, const struct service_ask *ask)
{
	spec_init(spec);
	if (ask->folder)
		add_fs(spec, (struct fs_entry){ .kind = FS_RO,
		                                .src = arena_strdup(&spec->arena, ask->folder),
		                                .at = SERVICE_FOLDER });
	if (ask->workspace) {
		spec->workspace = arena_strdup(&spec->arena, ask->workspace);
		add_fs(spec, (struct fs_entry){ .kind = FS_WORKSPACE, .at = "/work" });
	}
	if (ask->net)
		add_host(spec, ask->net);
	if (ask->net && ask->cred)
		vec_push(&spec->creds,
		         ((struct text_pair){ arena_strdup(&spec->arena, ask->cred), "" }));
	spec_resolve(spec);
}

struct service *service_start(struct core *c, const struct service_ask *ask, struct fail *f)
{
	AUTO(spec_done) struct spec spec;
	struct service *s = mem_alloc(sizeof *s);

	*s = (struct service){ .core = c,
		               .finish.fired = finish_fired,
		               .input_fd = ask->input_fd > 0 ? ask->input_fd : -1,
		               .input_len = ask->input_len,
		               .out = { .max = ask->out ? 1 : ask->out_max + 1 },
		               .err = { .max = 2ul * ERR_KEPT },
		               .out_max = ask->out_max,
		               .on_out = ask->out,
		               .on_progress = ask->progress,
		               .on_done = ask->done,
		               .arg = ask->arg };
	if (ask->input_len > 0 && s->input_fd < 0) {
		s->input = mem_alloc(ask->input_len);
		memcpy(s->input, ask->input, ask->input_len);
	}
	fill_command(s, ask);
	fill_spec(&spec, ask);
	const struct sbx_ask box = { .tenant = ask->tenant,
		                     .spec = &spec,
		                     .client_fd = ask->folder ? ask->client_fd : -1,
		                     .is_one_shot = true,
		                     .is_service = true,
		                     .is_work_read_only = ask->is_read_only,
		                     .trees = ask->trees,
		                     .n_trees = ask->n_trees };
	s->sandbox = sbx_create(c, &box, made, s, f);
	if (!s->sandbox) {
		service_free(s);
		return NULL;
	}
	if (s->sandbox->link.is_expected)
		begin(s);
	return s;
}
