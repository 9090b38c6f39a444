#include "core/process-internal.h"

#include <fcntl.h>
#include <jansson.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "core/birth.h"
#include "core/details.h"
#include "core/image.h"
#include "core/notes.h"
#include "core/quota.h"
#include "core/shells.h"
#include "core/tripped.h"
#include "core/workspace.h"
#include "engine/command.h"
#include "engine/plan.h"
#include "io/journal.h"
#include "io/log.h"

/* ---- the object ---------------------------------------------------------------------- */

struct px *px_new(struct core *c)
{
	struct px *p = mem_alloc(sizeof *p);

	*p = (struct px){ .core = c, .log_fd = -1, .end.exit_code = -1 };
	return p;
}

static void px_free(struct px *p)
{
	roster_remove(&p->core->processes, &p->entry);
	timer_stop(&p->core->timers, &p->late);
	fd_close(&p->log_fd);
	free(p->argv);
	free(p->cwd);
	free(p->label);
	free(p->details);
	free(p->shell);
	free(p->why);
	json_decref(p->denials);
	json_decref(p->env_names);
	json_decref(p->workspace);
	free(p);
}

/* Stays while it lives, while its end is not on record, and while a request works with it. */
static void px_drop(struct px *p)
{
	if (p->refs == 0 && p->is_ended)
		px_free(p);
}

void px_unref(struct px *p)
{
	p->refs--;
	px_drop(p);
}

struct px *px_by_num(struct sbx *s, uint32_t num)
{
	for (struct px *p = s->processes; p; p = p->next)
		if (p->num == num)
			return p;
	return NULL;
}

static void leave_sandbox(struct px *p)
{
	if (!p->sandbox)
		return;
	for (struct px **at = &p->sandbox->processes; *at; at = &(*at)->next) {
		if (*at == p) {
			*at = p->next;
			break;
		}
	}
	sbx_touch(p->sandbox);
	p->sandbox = NULL;
}

/* ---- who is told --------------------------------------------------------------------- */

void px_watch_add(struct px *p, struct px_watch *w)
{
	w->next = p->watches;
	p->watches = w;
}

void px_watch_remove(struct px *p, struct px_watch *w)
{
	for (struct px_watch **at = &p->watches; *at; at = &(*at)->next) {
		if (*at == w) {
			*at = w->next;
			return;
		}
	}
}

/* A callback may remove itself; others stay where they are. */
static void tell(struct px *p, bool is_growth)
{
	struct px_watch *next;

	p->refs++;
	for (struct px_watch *w = p->watches; w; w = next) {
		next = w->next;
		if (is_growth)
			w->grew(w);
		else
			w->changed(w);
	}
	px_unref(p);
}

/* One that the store has not heard of yet: it stays, whoever lets go of it. */
static void tell_early(const struct px *p)
{
	struct px_watch *next;

	for (struct px_watch *w = p->watches; w; w = next) {
		next = w->next;
		w->changed(w);
	}
}

/* ---- the row ------------------------------------------------------------------------- */

static struct process_row row_of(const struct px *p)
{
	return (struct process_row){ .id = p->id,
		                     .tenant = p->tenant,
		                     .sandbox = p->sandbox_id,
		                     .generation = p->generation,
		                     .num = p->num,
		                     .state = p->state,
		                     .argv = p->argv,
		                     .cwd = p->cwd,
		                     .label = p->label,
		                     .shell = p->shell,
		                     .at_end = p->at_end,
		                     .exit_code = -1,
		                     .created_ms = p->created_ms,
		                     .started_ms = p->started_ms,
		                     .log_id = p->id };
}

static void on_record(void *arg, const struct store_answer *a)
{
	struct px *p = arg;

	if (a->code != STORE_OK) /* the log has it too: the next start settles it */
		journal(JOURNAL_ERROR, a->err->msg, "process", p->id, NULL);
	p->is_ended = p->is_over = true;
	leave_sandbox(p);
	p->refs++;
	tell(p, false); /* first: nobody waits for what the monitor does then */
	struct sbx *s = roster_find(&p->core->sandboxes, p->sandbox_id);
	if (s && s->generation == p->generation)
		(void)link_send(&s->link, CH_FORGET, p->num, NULL, 0);
	if (s && s->generation == p->generation)
		sbx_end_after(s, p->at_end);
	px_unref(p);
}

char *px_details(const struct px *p)
{
	char *text = p->details ? mem_strdup(p->details) : details_of(&p->end, p->denials);

	if ((!p->shell && !p->workspace) || p->details)
		return text;
	json_t *o = json_loads(text, 0, NULL);
	free(text);
	if (p->workspace)
		json_object_set(o, "workspace", p->workspace);
	json_t *shell = p->shell ? json_pack("{ss}", "name", p->shell) : NULL;
	if (p->shell && p->state != PROCESS_QUEUED) /* its monitor has said */
		json_object_set_new(shell, "restarted", json_boolean(p->is_shell_restarted));
	if (p->is_shell_restarted)
		json_object_set_new(shell, "reason", details_text(p->shell_reason));
	if (p->shell)
		json_object_set_new(o, "shell", shell);
	char *with = json_dumps(o, JSON_COMPACT);
	json_decref(o);
	return with;
}

/* It has ended, as p->end says. */
static void note_end(struct px *p, enum process_state state)
{
	p->has_end = true;
	p->state = state;
	p->ended_ms = core_now_ms();
	p->core->stats.bytes_out += p->end.out_bytes + p->end.err_bytes;
	if (!p->sandbox)
		return;
	p->sandbox->is_spent = p->sandbox->is_one_shot;
	snprintf(p->sandbox->last.id, sizeof p->sandbox->last.id, "%s", p->id);
	p->sandbox->last.created_ms = p->created_ms;
	p->sandbox->last.ended_ms = p->ended_ms;
}

static void service_ended(struct timer *t)
{
	on_record((char *)t - offsetof(struct px, late), &(struct store_answer){ 0 });
}

static void record_end(struct px *p)
{
	struct err e = { 0 };

	note_exec_ended(p);
	if (p->is_service) { /* as if there were a row */
		p->late.fired = service_ended;
		timer_set(&p->core->timers, &p->late, 0);
		return;
	}
	free(p->details);
	p->details = NULL;
	p->details = px_details(p);
	struct process_row row = row_of(p);
	row.exit_code = p->end.exit_code;
	row.signal = p->end.signal;
	row.reason = px_reason(p);
	row.ended_ms = p->ended_ms;
	row.ms = (int64_t)p->end.ms;
	row.cpu_ms = (int64_t)p->end.cpu_ms;
	row.mem_peak = (int64_t)p->end.mem_peak;
	row.io_bytes = (int64_t)p->end.io_bytes;
	row.bytes_out = (int64_t)p->end.out_bytes;
	row.bytes_err = (int64_t)p->end.err_bytes;
	row.bytes_dropped = (int64_t)p->end.dropped_bytes;
	row.details = p->details;
	if (store_process_finish(p->core->store, &row,
	                         (struct store_call){ .done = on_record, .arg = p }, &e) < 0)
		journal(JOURNAL_ERROR, e.msg, "process", p->id, NULL);
}

/* The end goes on record; who waits is told when it is there. */
static void finish(struct px *p, enum process_state state)
{
	note_end(p, state);
	record_end(p);
}

static void move(struct px *p, enum process_state state)
{
	struct err e = { 0 };

	if ((p->state != PROCESS_QUEUED && p->state != PROCESS_AWAITING_APPROVAL) ||
	    p->state == state)
		return;
	p->state = state;
	p->started_ms = state == PROCESS_RUNNING ? core_now_ms() : 0;
	if (p->is_service)
		return;
	struct process_row row = row_of(p);
	if (store_process_move(p->core->store, &row, (struct store_call){ 0 }, &e) < 0)
		journal(JOURNAL_ERROR, e.msg, "process", p->id, NULL);
}

/* ---- start --------------------------------------------------------------------------- */

static int open_log(struct px *p, struct fail *f)
{
	if (p->is_service) /* it has no name, so nobody has to remove it */
		p->log_fd = openat(p->core->logs_fd, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
	else
		p->log_fd =
		    openat(p->core->logs_fd, p->id, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (p->log_fd >= 0)
		return 0;
	fail_set(f, errno == ENOSPC || errno == EDQUOT ? FAIL_QUOTA : FAIL_BACKEND_ERROR,
	         "the log cannot be made: %s", strerror(errno));
	f->is_retry_safe = true;
	return -1;
}

static int send_exec(struct px *p, const struct command *c, struct fail *f)
{
	static unsigned char data[CHANNEL_DATA_MAX];
	struct channel_exec x = { .uid = c->uid,
		                  .gid = c->gid,
		                  .rows = c->rows,
		                  .cols = c->cols,
		                  .argc = c->argc,
		                  .envc = c->envc,
		                  .tripc = c->tripc,
		                  .trip_ms = c->trip_ms,
		                  .text_len = (uint32_t)c->text_len,
		                  .timeout_ms = c->timeout_ms,
		                  .log_max = c->log_max,
		                  .output_max = c->output_max,
		                  .window = c->window };
	struct channel_head head = { .type = CH_EXEC, .len = sizeof x, .num = p->num };
	struct link_fds fds = { .fd = { p->log_fd, -1 }, .n = 1 };
	AUTO(fd_close) int text_fd = -1;

	x.flags = (c->is_tty ? EXEC_TTY : 0) | (c->has_stdin ? EXEC_STDIN : 0) |
	          (c->is_merged ? EXEC_MERGE : 0) | (c->is_final ? EXEC_FINAL : 0) |
	          (c->is_shell ? EXEC_SHELL : 0) | (c->is_alone ? EXEC_ALONE : 0) |
	          (c->is_gated ? EXEC_GATED : 0) | EXEC_USAGE;
	if (sizeof x + c->text_len > sizeof data) {
		text_fd = memfd_create("command", MFD_CLOEXEC);
		if (text_fd < 0 || write(text_fd, c->text, c->text_len) != (ssize_t)c->text_len)
			return fail_set(f, FAIL_BACKEND_ERROR, "the command finds no room");
		x.flags |= EXEC_TEXT_FD;
		fds.fd[fds.n++] = text_fd;
	} else if (c->text) { /* it always has a cwd and a program */
		memcpy(data + sizeof x, c->text, c->text_len);
		head.len += (uint32_t)c->text_len;
	}
	memcpy(data, &x, sizeof x);
	if (link_send_fds(&p->sandbox->link, head, data, fds) == 0)
		return 0;
	fail_set(f, FAIL_SANDBOX_UNAVAILABLE, "the sandbox does not answer");
	f->is_retry_safe = true;
	return -1;
}

/* In the host's image we know whether there is a bash; in another one a shell has to look. */
static void shell_argv(const struct sbx *s, const char *script, const char *argv[6])
{
	static const char look[] = "[ -x /bin/bash ] && exec /bin/bash -c \"$1\"; eval \"$1\"";
	bool is_host = strcmp(s->spec.image, "host") == 0;

	argv[0] = is_host && access("/bin/bash", X_OK) == 0 ? "/bin/bash" : "/bin/sh";
	argv[1] = "-c";
	argv[2] = is_host ? script : look;
	argv[3] = is_host ? NULL : "sh";
	argv[4] = is_host ? NULL : script;
	argv[5] = NULL;
}

/* Ours run what they run. */
static bool has_trips(const struct sbx *s)
{
	return s->spec.commands.len > 0 && !s->is_service;
}

static uint64_t hold_ms(const struct sbx *s)
{
	const struct config_net *net = s->core->config.net;

	return net && net->ask_ms ? net->ask_ms : COMMAND_HOLD_MS;
}

static int make_command(const struct sbx *s, const struct px_ask *ask, struct command *c,
                        struct fail *f)
{
	struct err e = { 0 };
	const char *shell[6] = { ask->shell, NULL };
	AUTO(str_done) struct str script = { .max = SHELL_SCRIPT_MAX };
	bool is_script = ask->script || ask->shell;
	struct command_ask q = { .argv = (char *const *)(is_script ? shell : ask->argv),
		                 .cwd = ask->shell ? NULL : ask->cwd,
		                 .env = ask->shell ? NULL : ask->env,
		                 .uid = s->uid,
		                 .gid = s->gid,
		                 .is_tty = ask->is_tty,
		                 .has_stdin = ask->has_stdin,
		                 .is_merged = ask->is_merged,
		                 .is_final = ask->is_final,
		                 .is_shell = ask->shell != NULL,
		                 .is_alone = ask->is_alone,
		                 .is_gated =
		                     s->spec.net.mode != NET_DENY && spec_reads_tls(&s->spec),
		                 .wants_usage = true,
		                 .rows = ask->rows,
		                 .cols = ask->cols,
		                 .timeout_ms = ask->timeout_ms,
		                 .log_max = ask->log_max,
		                 .window = ask->window,
		                 .trip_ms = has_trips(s) ? hold_ms(s) : 0 };

	if (ask->shell && shells_script(ask, &script, f) < 0)
		return -1;
	if (ask->shell)
		shell[1] = str_text(&script);
	else if (ask->script)
		shell_argv(s, ask->script, shell);
	if (ask->user && image_ids(s, ask->user, &q.uid, &q.gid, &e) < 0)
		return fail_err(f, &e);
	if (!s->core->host.is_root && (q.uid != s->uid || q.gid != s->gid))
		return fail_set(f, FAIL_UNENFORCEABLE,
		                "user: without root there is one id inside, the sandbox's own");
	if (ask->shell && (q.uid != s->uid || q.gid != s->gid))
		return fail_set(f, FAIL_INVALID, "user: a shell runs as the sandbox's own");
	return command_make(c, &s->spec, q, &e) < 0 ? fail_err(f, &e) : 0;
}

/* What is not on record shall not run, and nobody is told of it before. */
static void inserted(void *arg, const struct store_answer *a)
{
	struct px *p = arg;

	p->is_stored = true;
	p->is_over |= p->is_in_log && a->code == STORE_OK;
	if (a->code != STORE_OK) {
		journal(JOURNAL_ERROR, a->err->msg, "process", p->id, NULL);
		p->is_unrecorded = true;
		p->is_disk_full = a->code == STORE_FULL;
		if (p->sandbox)
			(void)link_send(&p->sandbox->link, CH_KILL, p->num, NULL, 0);
	}
	tell(p, false);
	px_unref(p);
}

static const char *first_cwd(struct sbx *s, const struct px_ask *ask, const struct command *c)
{
	const char *cwd = ask->shell && !ask->cwd ? shells_cwd(s, ask->shell) : ask->cwd;

	return cwd ? cwd : c->text; /* the first of its strings */
}

void px_forget(struct px *p)
{
	if (p->log_fd >= 0 && !p->is_service)
		(void)unlinkat(p->core->logs_fd, p->id, 0); /* nobody will ask for it */
	px_free(p);
}

/* For the ledger: names, never values. */
static json_t *names_of(const struct pair_list *env)
{
	json_t *list = env && env->len ? json_array() : NULL;

	for (size_t i = 0; list && i < env->len; i++)
		json_array_append_new(list, details_text(env->at[i].key));
	return list;
}

struct px *px_make(struct sbx *s, const struct px_ask *ask, struct fail *f)
{
	const struct quota one = { .of = { [QUOTA_PROCESSES] = !s->is_service } };
	struct command cmd = { 0 };

	if (ask->cwd && strlen(ask->cwd) >= PATH_TEXT_MAX) {
		fail_set(f, FAIL_INVALID, "cwd: a path has less than %d bytes", PATH_TEXT_MAX);
		return NULL;
	}
	if (quota_admit(s->core, s->tenant, &one, f) < 0 || ledger_admit(s->core, f) < 0 ||
	    (ask->shell && shells_check(s, ask, f) < 0) || make_command(s, ask, &cmd, f) < 0)
		return NULL;
	struct px *p = px_new(s->core);
	id_make(p->id, "px");
	if (!s->is_service)
		core_made(s->core, p->id);
	p->entry.key = p->id;
	p->sandbox = s;
	p->num = ++s->next_num;
	p->generation = s->generation;
	p->created_ms = core_now_ms();
	p->is_service = s->is_service;
	p->is_final = ask->is_final;
	p->at_end = ask->at_end;
	p->is_tty = ask->is_tty;
	p->has_stdin = ask->has_stdin;
	snprintf(p->tenant, sizeof p->tenant, "%s", s->tenant);
	snprintf(p->sandbox_id, sizeof p->sandbox_id, "%s", s->id);
	snprintf(p->actor, sizeof p->actor, "%s", ask->actor ? ask->actor : "");
	const char *const shown[] = { "sh", "-c", ask->script, NULL };
	p->argv = details_argv(ask->script ? shown : ask->argv);
	details_argv_hash(ask->script ? shown : ask->argv, p->argv_hash);
	p->shell = ask->shell ? mem_strdup(ask->shell) : NULL;
	p->cwd = mem_strdup(first_cwd(s, ask, &cmd));
	p->label = ask->label ? mem_strdup(ask->label) : NULL;
	p->env_names = names_of(ask->env);
	bool is_well = open_log(p, f) == 0 && (!p->shell || shells_prepare(p, f) == 0) &&
	               send_exec(p, &cmd, f) == 0;
	p->has_birth = is_well && p->is_final && !p->is_service && birth_write(p) >= 0;

	command_done(&cmd);
	if (is_well)
		return p;
	px_forget(p);
	return NULL;
}

/* One that dies with us, and whose log says who it is, is in no hurry. */
int px_record(struct px *p, struct fail *f)
{
	struct sbx *s = p->sandbox;
	struct store_call call = { .done = inserted, .arg = p, .is_lazy = p->is_final };
	struct err e = { 0 };

	/* Its monitor says when it runs only if that may take a while. */
	bool is_at_once = p->is_final && !has_trips(s);

	p->state = is_at_once ? PROCESS_RUNNING : PROCESS_QUEUED;
	p->started_ms = is_at_once ? p->created_ms : 0;
	struct process_row row = row_of(p);
	if (p->is_final && !p->is_service)
		core_nudge_soon(s->core);
	if (!p->is_service && store_process_insert(s->core->store, &row, call, &e) < 0) {
		/* What is not on record shall not run. */
		(void)link_send(&s->link, CH_KILL, p->num, NULL, 0);
		return fail_unsent(f, &e);
	}
	p->next = s->processes;
	s->processes = p;
	roster_add(&s->core->processes, &p->entry);
	p->refs = p->is_service ? 1 : 2; /* the caller's, and that of inserted() */
	p->is_stored = p->is_service;
	p->is_known = true;
	s->core->stats.execs++;
	note_exec_started(p);
	tripped_recorded(p);
	return 0;
}

struct px *px_start(struct sbx *s, const struct px_ask *ask, struct fail *f)
{
	struct px *p = px_make(s, ask, f);

	if (!p || px_record(p, f) == 0)
		return p;
	px_forget(p);
	return NULL;
}

/* ---- what the monitor says ------------------------------------------------------------ */

void px_on_started(struct px *p)
{
	move(p, PROCESS_RUNNING);
	tell(p, false);
}

void px_on_asked(struct px *p, const char *approval)
{
	snprintf(p->approval, sizeof p->approval, "%s", approval);
	tell(p, false);
}

void px_on_held(struct px *p)
{
	move(p, PROCESS_AWAITING_APPROVAL);
	tell(p, false);
}

/* STARTED comes when it executes. */
void px_on_approved(struct px *p)
{
	move(p, PROCESS_QUEUED);
	tell(p, false);
}

void px_on_denied(struct px *p, const char *reason, const char *approval)
{
	p->is_denied = true;
	snprintf(p->denied, sizeof p->denied, "gate.commands: %s%s%s", reason,
	         approval[0] ? ", approval " : "", approval);
}

void px_on_grew(struct px *p)
{
	tell(p, true);
}

void px_on_took(struct px *p, const void *bytes, size_t n)
{
	uint64_t took;

	if (n != sizeof took)
		return;
	memcpy(&took, bytes, sizeof took);
	p->in_taken = took > p->in_sent ? p->in_sent : took;
	tell(p, false);
}

void px_on_waiting(struct px *p)
{
	p->is_waiting_for_input = true;
	tell(p, false);
}

static const enum process_state states[] = {
	[RUN_EXITED] = PROCESS_EXITED,   [RUN_SIGNALED] = PROCESS_SIGNALED,
	[RUN_TIMEOUT] = PROCESS_TIMEOUT, [RUN_OOM] = PROCESS_OOM,
	[RUN_KILLED] = PROCESS_KILLED,   [RUN_EXPIRED] = PROCESS_EXPIRED,
	[RUN_LOST] = PROCESS_LOST,
};

static void tell_end(struct px *p);
static void pointed(void *arg, struct wsx *w, const struct point_row *point, const struct fail *f);

void px_on_end(struct px *p, const struct channel_end *end)
{
	if (p->has_end)
		return;
	move(p, PROCESS_RUNNING); /* it did run */
	p->end = *end;
	if (p->shell && p->sandbox &&
	    shells_cwd(p->sandbox, p->shell)) { /* where it left the shell */
		free(p->cwd);
		p->cwd = mem_strdup(shells_cwd(p->sandbox, p->shell));
	}
	p->end.reason[sizeof p->end.reason - 1] = '\0';
	note_end(p, end->state <= RUN_LOST ? states[end->state] : PROCESS_LOST);
	if (p->sandbox && !p->is_service && wsx_wants_point(p->sandbox)) {
		struct wsx_point_ask ask = { .process = p->id };

		/* Until its end is on record it stays, whoever lets go of it. */
		wsx_point(p->sandbox->workspace, &ask, pointed, p);
		return;
	}
	tell_end(p);
}

/* What it changed is kept: the next command begins after that. */
static void pointed(void *arg, struct wsx *w, const struct point_row *point, const struct fail *f)
{
	struct px *p = arg;

	p->workspace =
	    json_pack("{ss,sI,sb,ss?,sI,sI}", "id", w->row.id, "rev", (json_int_t)w->row.rev,
	              "dirty", wsx_is_dirty(w), "checkpoint", point->id[0] ? point->id : NULL,
	              "files", (json_int_t)point->files, "at", (json_int_t)w->row.head);
	if (f)
		json_object_set_new(p->workspace, "reason", details_text(f->detail));
	tell_end(p);
}

static void tell_end(struct px *p)
{
	p->is_in_log = log_has_end(p->log_fd);
	p->is_over = p->is_in_log && (p->has_birth || (p->is_stored && !p->is_unrecorded));
	if (p->is_over)
		tell_early(p);
	record_end(p);
}

/* It was never executed: the shell's words for that are 126 and 127. */
const char *px_reason(const struct px *p)
{
	return p->why ? p->why : p->end.reason;
}

bool px_is_of_program(const struct err *e)
{
	return strncmp(e->msg, "execute: ", 9) == 0;
}

void px_on_fail(struct px *p, const struct err *e)
{
	bool is_program = px_is_of_program(e);

	if (p->has_end)
		return;
	snprintf(p->end.reason, sizeof p->end.reason, "%s", e->msg);
	free(p->why);
	p->why = is_program ? NULL : mem_strdup(e->msg);
	p->is_never_run = true;
	if (is_program && p->is_denied) {
		snprintf(p->end.reason, sizeof p->end.reason, "%s", p->denied);
		finish(p, PROCESS_DENIED);
		return;
	}
	if (!is_program) {
		finish(p, PROCESS_LOST);
		return;
	}
	move(p, PROCESS_RUNNING);
	p->end.exit_code = e->kind == ERR_NOT_FOUND ? 127 : 126;
	finish(p, PROCESS_EXITED);
}

/* Nobody will report it any more; but a log may have its end: the monitor writes it there first. */
void px_lose(struct px *p, enum process_state state, const char *reason)
{
	struct channel_end end;

	if (p->has_end)
		return;
	if (p->log_fd >= 0 && log_end(p->log_fd, &end) == 1) {
		px_on_end(p, &end);
		return;
	}
	p->end.exit_code = -1;
	snprintf(p->end.reason, sizeof p->end.reason, "%s", reason);
	finish(p, state);
}

void px_lose_all(struct sbx *s, enum process_state state, const char *reason)
{
	struct px *next;

	for (struct px *p = s->processes; p; p = next) {
		next = p->next;
		px_lose(p, state, reason);
		leave_sandbox(p);
	}
}

void px_lose_unknown(struct sbx *s)
{
	struct px *next;

	for (struct px *p = s->processes; p; p = next) {
		next = p->next;
		if (!p->is_known)
			px_lose(p, PROCESS_LOST, "its monitor knows nothing of it");
	}
}
