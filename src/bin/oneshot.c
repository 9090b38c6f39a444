#include "bin/oneshot.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "bin/inspect.h"
#include "core/details.h"
#include "core/enforced.h"
#include "core/id.h"
#include "engine/hostcheck.h"
#include "io/log.h"
#include "io/timer.h"
#include "launcher/gates.h"
#include "launcher/launcher.h"
#include "launcher/server.h"
#include "monitor/ask.h"
#include "monitor/monitor.h"
#include "os/extent.h"
#include "os/sock.h"
#include "spec/netdoc.h"
#include "wire/keep.h"

enum { NUM = 1 }; /* of the one command */

/* How far the command may be ahead of whoever reads our output. */
#define WINDOW (256u << 10)

struct oneshot {
	struct plan plan;
	struct command command;
	struct sandbox sandbox;
	int log_fd;
	uint64_t at, acked; /* positions in the log */
	uint64_t input_sent, input_took;
	bool has_grown, has_end, is_gone; /* the monitor has said all */
	struct channel_end end;
	struct enforced_texts enforced;
	struct gates gates;
	bool is_noted, is_told; /* what is not enforced; of the start */
	bool is_inline;         /* output is kept for the end */
	struct keep kept[LOG_STREAMS];
	struct channel_packet packet;
	unsigned char bytes[LOG_FRAME_DATA_MAX];
};

/* ---- start ------------------------------------------------------------------------- */

static int check_host(struct oneshot *o, const struct spec *spec, struct launcher_host *host,
                      struct err *e)
{
	if (spec_check(spec, e) < 0 || launcher_mode(&host->is_root, e) < 0)
		return -1;
	int r = cgroup_find(&host->cgroup, host->is_root);
	if (r < 0)
		return err_sys(e, -r, "look at the cgroups");
	struct enforce_host judged = { .is_root = host->is_root,
		                       .cgroup = &host->cgroup,
		                       .walls = WALLS_ALL };
	if (spec->net.mode != NET_DENY)
		judged.net_error = hostcheck_net(host->is_root);
	if (enforce_check(spec, &judged, e) < 0)
		return -1;
	enforced_print(spec, &judged, &o->enforced);
	return 0;
}

static int make_command(struct oneshot *o, const struct run_setup *setup, struct err *e)
{
	struct command_ask ask = { .argv = setup->argv,
		                   .cwd = setup->cwd,
		                   .uid = o->plan.uid,
		                   .gid = o->plan.gid,
		                   .is_tty = setup->is_tty,
		                   .has_stdin = setup->has_stdin,
		                   .is_final = true,
		                   .wants_usage = setup->is_inline,
		                   .rows = setup->rows,
		                   .cols = setup->cols,
		                   .timeout_ms = setup->timeout_ms,
		                   .window = WINDOW };

	if (command_make(&o->command, setup->spec, ask, e) < 0)
		return -1;
	o->log_fd = os_memfd("log");
	return o->log_fd < 0 ? err_sys(e, -o->log_fd, "make the log") : 0;
}

static void oneshot_free(struct oneshot *o)
{
	plan_done(&o->plan);
	command_done(&o->command);
	fd_close(&o->log_fd);
	for (size_t i = 0; i < LOG_STREAMS; i++)
		keep_done(&o->kept[i]);
	free(o->enforced.by);
	free(o->enforced.note);
	free(o);
}

/* ---- the gate ---------------------------------------------------------------------- */

static int write_rules(const struct spec *spec, struct err *e)
{
	static const struct config_net nothing = { .ask_ms = 1000 };
	AUTO(str_done) struct str text = { .max = GATE_RULES_MAX };

	if (net_document(&spec->net, &nothing, NULL, &text, e) < 0)
		return -1;
	AUTO(fd_close) int fd = os_memfd_sealable("rules");
	int r = fd < 0 ? fd : os_pwrite2(fd, str_text(&text), text.len, NULL, 0, 0);
	if (r >= 0)
		r = os_seal(fd);
	return r < 0 ? err_sys(e, -r, "write the rules") : fd_take(&fd);
}

/* The daemon's part of it, once: a child that dies is not replaced. */
static int give_gate(struct oneshot *o, const struct spec *spec, struct err *e)
{
	const struct {
		struct channel_head head;
		struct gate_rules rules;
	} m = { { .type = CH_RULES, .len = sizeof m.rules }, { .generation = 1 } };
	const struct channel_head gate = { .type = CH_GATE };

	if (!o->plan.has_net)
		return 0;
	AUTO(fd_close) int rules = write_rules(spec, e);
	AUTO(fd_close) int child = rules < 0 ? -1 : gates_ask(&o->gates, timer_now_ms(), e);
	if (child < 0)
		return -1;
	int r = os_send(o->sandbox.control_fd, &m, sizeof m, &rules, 1);
	if (r >= 0)
		r = os_send(o->sandbox.control_fd, &gate, sizeof gate, &child, 1);
	return r < 0 ? err_sys(e, -r, "hand over the gate") : 0;
}

/* ---- launch ------------------------------------------------------------------------ */

/* The command is sent right behind the start: the monitor takes it while pid 1 works. */
static int launch(struct oneshot *o, const struct spec *spec, const struct launcher_host *host,
                  struct err *e)
{
	if (launcher_start(&o->sandbox, &o->plan, host, monitor_main, e) < 0)
		return -1;
	if (ask_exec(o->sandbox.control_fd, NUM, &o->command, o->log_fd, e) == 0 &&
	    give_gate(o, spec, e) == 0)
		return 0;
	if (e->sys == EPIPE || e->sys == ECONNRESET)
		return 0; /* the monitor gave up, and has said why */
	launcher_end(&o->sandbox);
	return -1;
}

static int start(const struct run_setup *setup, struct run_session *out, struct err *e)
{
	struct launcher_host host;
	struct oneshot *o = mem_alloc(sizeof *o);

	o->log_fd = o->gates.channel_fd = -1;
	o->gates.cache_fd = o->gates.state_fd = -1; /* no packages are kept, no secrets used */
	o->gates.is_root = geteuid() == 0;
	o->gates.id = SERVER_ID + 1;
	o->at = o->acked = LOG_FRAMES_AT;
	o->is_inline = setup->is_inline;
	for (size_t i = 0; i < LOG_STREAMS; i++)
		keep_init(&o->kept[i], INLINE_OUTPUT_MAX);
	if (check_host(o, setup->spec, &host, e) < 0 || plan_make(&o->plan, setup->spec, e) < 0 ||
	    make_command(o, setup, e) < 0 || launch(o, setup->spec, &host, e) < 0) {
		oneshot_free(o);
		return -1;
	}
	out->poll_fd = o->sandbox.control_fd;
	out->poll_events = POLLIN;
	out->has_room = true;
	out->driver_data = o;
	return 0;
}

/* ---- to the monitor ---------------------------------------------------------------- */

/* Room is waited for: the monitor always reads. */
static void tell(struct oneshot *o, enum channel_type type, const void *bytes, size_t n)
{
	struct channel_head head = { .type = type, .len = (uint32_t)n, .num = NUM };
	struct iovec iov[] = { { &head, sizeof head }, { (void *)(uintptr_t)bytes, n } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = n ? 2 : 1 };

	while (sendmsg(o->sandbox.control_fd, &msg, MSG_NOSIGNAL) < 0 && errno == EINTR)
		;
}

static void look_for_room(struct run_session *s)
{
	const struct oneshot *o = s->driver_data;

	s->has_room = o->input_sent - o->input_took <= CHANNEL_INPUT_MAX - DRIVER_INPUT_MAX;
}

static void input(struct run_session *s, const void *bytes, size_t n)
{
	struct oneshot *o = s->driver_data;

	tell(o, n > 0 ? CH_IN : CH_EOF, bytes, n);
	o->input_sent += n;
	look_for_room(s);
}

static void send_signal(struct run_session *s, int sig)
{
	const struct channel_signal m = { .sig = sig, .scope = SCOPE_PROCESS };

	tell(s->driver_data, CH_SIGNAL, &m, sizeof m);
}

static void resize(struct run_session *s, uint16_t rows, uint16_t cols)
{
	const struct channel_size size = { rows, cols };

	tell(s->driver_data, CH_RESIZE, &size, sizeof size);
}

static void end_inside(struct run_session *s)
{
	tell(s->driver_data, CH_KILL, NULL, 0);
}

/* ---- from it ----------------------------------------------------------------------- */

/* What was read is given back at once: the log of a run is a window, not a record. */
static void acknowledge(struct oneshot *o)
{
	(void)os_punch(o->log_fd, (off_t)o->acked, (off_t)(o->at - o->acked));
	o->acked = o->at;
	tell(o, CH_ACK, &o->at, sizeof o->at);
}

/* 1 with bytes, 0 when the log has no more for now. */
static int read_log(struct oneshot *o, struct run_event *out, struct err *e)
{
	struct log_frame f;
	uint64_t skipped;
	int r;

	do {
		if (o->at - o->acked > WINDOW / 2)
			acknowledge(o);
		r = log_next(o->log_fd, &o->at, &f, o->bytes, &skipped);
		if (r > 0 && o->is_inline)
			keep_add(&o->kept[f.stream], o->bytes, f.len);
	} while (r > 0 && o->is_inline);
	if (r < 0)
		return err_sys(e, -r, "read the log");
	if (r > 0)
		*out = (struct run_event){ .kind = f.stream == LOG_ERR ? RUN_ERR : RUN_OUT,
			                   .bytes = o->bytes,
			                   .n = f.len };
	return r;
}

static int take_end(struct oneshot *o, struct err *e)
{
	const struct channel_head forget = { .type = CH_FORGET, .num = o->packet.head.num };

	o->has_end = channel_end_read(&o->end, o->packet.data, o->packet.head.len);
	(void)os_send(o->sandbox.control_fd, &forget, sizeof forget, NULL, 0); /* or it waits */
	return o->has_end ? 0 : err_new(e, ERR_INTERNAL, "lost: the monitor's report is malformed");
}

static int take_fail(const struct oneshot *o, struct err *e)
{
	size_t n = o->packet.head.len < sizeof *e ? o->packet.head.len : sizeof *e;

	memcpy(e, o->packet.data, n);
	e->msg[sizeof e->msg - 1] = '\0';
	(void)hostcheck_advise("", o->gates.is_root ? HOST_ROOT : HOST_ROOTLESS, e);
	return -1;
}

static void take_took(struct run_session *s)
{
	struct oneshot *o = s->driver_data;

	memcpy(&o->input_took, o->packet.data, sizeof o->input_took);
	look_for_room(s);
}

static int take(struct run_session *s, struct err *e)
{
	struct oneshot *o = s->driver_data;

	switch ((enum channel_type)o->packet.head.type) {
	case CH_GREW:
		o->has_grown = true;
		break;
	case CH_TOOK:
		take_took(s);
		break;
	case CH_NET: /* nobody asks for it here: its number, as far as it was taken */
		tell(o, CH_NET_ACK, o->packet.data, sizeof(uint64_t));
		break;
	case CH_EXIT:
		return take_end(o, e);
	case CH_FAIL:
		return take_fail(o, e);
	case CH_END:
		o->is_gone = o->has_grown = true;
		break;
	/* clang-format off */
	case CH_GO: case CH_EXEC: case CH_TREE: case CH_IN: case CH_EOF: case CH_SIGNAL:
	case CH_RESIZE: case CH_KILL: case CH_ACK: case CH_WATCH: case CH_FORGET: case CH_STOP:
	case CH_FREEZE: case CH_THAW: case CH_HOLD: case CH_RELEASE: case CH_USAGE: case CH_SYNC: case CH_EXTEND: case CH_CLOSE: case CH_DROP:
	case CH_GATE: case CH_RULES: case CH_NET_ACK: case CH_ANSWER: case CH_GATELESS: case CH_RULED: case CH_ASK: case CH_UNASK: case CH_MASKED:
	case CH_READY: case CH_STARTED: case CH_RAN: case CH_WAITING: case CH_PROC: case CH_SYNCED: case CH_DONE: case CH_SHELL:
	case CH_TRIP: case CH_UNTRIP: case CH_TRIP_ANSWER: case CH_PROVED: case CH_TYPES:
		break; /* of no interest, or not the monitor's to say */
		/* clang-format on */
	}
	return 0;
}

/* 1: a packet was taken; 0: there is none now. */
static int receive(struct run_session *s, struct err *e)
{
	struct oneshot *o = s->driver_data;
	ssize_t n;

	do /* A monitor that ended without reading all we sent: what it sent is still there. */
		n = recv(o->sandbox.control_fd, &o->packet, sizeof o->packet, MSG_DONTWAIT);
	while (n < 0 && (errno == EINTR || errno == ECONNRESET));
	if (n < 0 && errno == EAGAIN)
		return 0;
	if (n < (ssize_t)sizeof o->packet.head ||
	    o->packet.head.len != (size_t)n - sizeof o->packet.head)
		return err_new(e, ERR_INTERNAL, "lost: the monitor of the sandbox died");
	return take(s, e) < 0 ? -1 : 1;
}

static json_t *text_or_null(const char *text)
{
	return text[0] ? details_text(text) : json_null();
}

/* The process object, as the daemon would print it. */
static json_t *process_of(const struct oneshot *o)
{
	const struct channel_end *end = &o->end;
	AUTO(freep) char *details = details_of(end, NULL);
	json_t *p = json_loads(details, 0, NULL);
	uint64_t dropped = end->dropped_bytes;
	char id[ID_SIZE];

	id_make(id, "px");
	json_object_set_new(p, "id", json_string(id));
	json_object_set_new(p, "state", json_string(run_state_name((enum run_state)end->state)));
	json_object_set_new(p, "exit_code",
	                    end->exit_code < 0 ? json_null() : json_integer(end->exit_code));
	json_object_set_new(p, "signal",
	                    end->signal == 0 ? json_null() : json_integer(end->signal));
	json_object_set_new(p, "reason", text_or_null(end->reason));
	json_object_set_new(p, "cwd", details_text(o->command.text));
	json_object_set_new(p, "ms", json_integer((json_int_t)end->ms));
	json_object_set_new(p, "usage",
	                    json_pack("{sI,sI,sI}", "cpu_ms", (json_int_t)end->cpu_ms, "mem_peak",
	                              (json_int_t)end->mem_peak, "io", (json_int_t)end->io_bytes));
	if (o->is_inline)
		dropped += details_streams(p, o->kept);
	json_object_set_new(p, "bytes",
	                    json_pack("{sI,sI,sI}", "stdout", (json_int_t)end->out_bytes, "stderr",
	                              (json_int_t)end->err_bytes, "dropped", (json_int_t)dropped));
	return p;
}

static int ended(struct oneshot *o, struct run_event *out, struct err *e)
{
	if (!o->has_end)
		return err_new(e, ERR_INTERNAL, "lost: the monitor ended without a report");
	*out = (struct run_event){ .kind = RUN_ENDED, .object = process_of(o) };
	return 1;
}

static int started(struct oneshot *o, struct run_event *out)
{
	const char *note = o->enforced.note;

	if (note[0] && !o->is_inline && !o->is_noted) {
		o->is_noted = true;
		*out = (struct run_event){ .kind = RUN_NOTE,
			                   .bytes = (const unsigned char *)note,
			                   .n = strlen(note) };
		return 1;
	}
	o->is_told = true;
	*out = (struct run_event){ .kind = RUN_STARTED,
		                   .object = json_pack("{so}", "enforced",
		                                       json_loads(o->enforced.by, 0, NULL)) };
	return 1;
}

static int next(struct run_session *s, struct run_event *out, struct err *e)
{
	struct oneshot *o = s->driver_data;
	int r = 1;

	if (!o->is_told)
		return started(o, out);
	while (r > 0) {
		r = o->has_grown ? read_log(o, out, e) : 0;
		if (r != 0)
			return r;
		if (o->is_gone)
			return ended(o, out, e);
		if (o->has_grown)
			acknowledge(o); /* all that there was: tell us of more */
		o->has_grown = false;
		r = receive(s, e);
	}
	return r;
}

/* ---- the end ----------------------------------------------------------------------- */

static void end(struct run_session *s)
{
	struct oneshot *o = s->driver_data;

	launcher_end(&o->sandbox);
	gates_done(&o->gates);
	oneshot_free(o);
	s->poll_fd = -1;
}

static int sweep(bool dry_run, void (*found)(const char *what, bool is_gone))
{
	return launcher_sweep(dry_run, true, found);
}

const struct driver oneshot_driver = { .start = start,
	                               .next = next,
	                               .input = input,
	                               .signal = send_signal,
	                               .resize = resize,
	                               .kill = end_inside,
	                               .end = end,
	                               .sweep = sweep,
	                               .inspect = inspect_host };
