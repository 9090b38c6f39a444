#include "tree/serve.h"

#include "base/fd.h"
#include "os/sock.h"
#include "tree/fail.h"
#include "tree/settle.h"
#include "tree/sys.h"
#include "tree/verbs.h"

#define SECOND 1000u
#define PAUSE_MS 20 /* nobody asks for so long */

/* How long a verb may take at most, and when the request does not say; 0: as long as somebody is
 * there. What moves bytes takes as long as they take. */
/* clang-format off */
static const struct {
	int (*run)(struct call *c, struct err *e);
	uint32_t time_ms, time_max_ms;
	bool has_body; /* a descriptor that comes along is its body, not the answer's way out */
} verbs[] = {
	[TREE_STAT]    = { verb_stat,    10 * SECOND,  60 * SECOND, false },
	[TREE_LIST]    = { verb_list,    10 * SECOND,  60 * SECOND, false },
	[TREE_READ]    = { verb_read,    0,            0,           false },
	[TREE_LINES]   = { verb_lines,   10 * SECOND,  60 * SECOND, false },
	[TREE_WRITE]   = { verb_write,   0,            0,           true },
	[TREE_EDIT]    = { verb_edit,    30 * SECOND,  60 * SECOND, true },
	[TREE_DELETE]  = { verb_delete,  60 * SECOND,  600 * SECOND, false },
	[TREE_MOVE]    = { verb_move,    60 * SECOND,  600 * SECOND, true },
	[TREE_COPY]    = { verb_copy,    60 * SECOND,  600 * SECOND, true },
	[TREE_MKDIR]   = { verb_mkdir,   10 * SECOND,  60 * SECOND, true },
	[TREE_BATCH]   = { verb_batch,   60 * SECOND,  600 * SECOND, true },
	[TREE_PATCH]   = { verb_patch,   60 * SECOND,  600 * SECOND, true },
	[TREE_GREP]    = { verb_grep,    10 * SECOND,  60 * SECOND, true },
	[TREE_GLOB]    = { verb_glob,    10 * SECOND,  60 * SECOND, true },
	[TREE_WATCH]   = { verb_watch,   0,            0,           false },
	[TREE_TAR_OUT] = { verb_tar_out, 0,            0,           false },
	[TREE_TAR_IN]  = { verb_tar_in,  0,            0,           true },
	[TREE_IMAGE]   = { verb_image,   1800 * SECOND, 7200 * SECOND, true },
	[TREE_PORTS]   = { verb_ports,   5 * SECOND,   10 * SECOND, false },
	[TREE_DIAL]    = { verb_dial,    5 * SECOND,   60 * SECOND, false },
	[TREE_MARK]    = { verb_mark,    10 * SECOND,  60 * SECOND, true },
	[TREE_UNZIP]   = { verb_unzip,   600 * SECOND, 3600 * SECOND, true },
};
/* clang-format on */
_Static_assert(COUNT(verbs) == TREE_VERBS, "a verb has no function");

static uint64_t deadline_of(const struct tree_request *req)
{
	uint32_t ms = req->time_ms ? req->time_ms : verbs[req->verb].time_ms;
	uint32_t max = verbs[req->verb].time_max_ms;

	if (max && ms > max)
		ms = max;
	return ms ? sys_now_ms() + ms : 0;
}

static void call_init(struct call *c, struct conn *conn, const struct tree_packet *p)
{
	*c = (struct call){
		.conn = conn,
		.id = p->head.id,
		.flags = p->head.flags,
		.req = p->request,
		.source_fd = -1,
		.sink_fd = -1,
		.deadline_ms = deadline_of(&p->request),
		.looked_ms = sys_now_ms(),
		.inline_body = p->data,
		.is_body_whole = p->head.flags & TREE_LAST,
		.answer = { .count = TREE_UNKNOWN, .size = TREE_UNKNOWN },
	};
	memcpy(c->path, p->path.at, p->path.len);
	memcpy(c->match, p->match.at, p->match.len);
}

/* The descriptor becomes the call's; -1 when the request is not what it says. */
static int take_fd(struct call *c, int *fd, struct err *e)
{
	bool is_promised = c->flags & TREE_FD;

	if (is_promised != (*fd >= 0))
		return fail(e, TREE_INVALID, "a descriptor was promised and is not there");
	if (*fd < 0)
		return 0;
	int r = sys_set_nonblocking(*fd);
	if (r < 0)
		return err_sys(e, -r, "use the descriptor");
	if (verbs[c->req.verb].has_body)
		c->source_fd = fd_take(fd);
	else
		c->sink_fd = fd_take(fd);
	return 0;
}

static void serve_one(struct conn *conn, const struct tree_packet *p, int *fd)
{
	static struct call c; /* its paths are large, and there is one at a time */
	struct err e = { 0 };

	call_init(&c, conn, p);
	int r = take_fd(&c, fd, &e);
	if (r == 0)
		r = verbs[c.req.verb].run(&c, &e);
	call_end(&c, r < 0 ? &e : NULL);
	call_done(&c);
}

void tree_serve(int socket_fd, int root_fd)
{
	static struct conn conn;
	struct tree_packet p;
	struct err e;

	conn.socket_fd = socket_fd;
	conn.root_fd = root_fd;
	while (!conn.is_gone) {
		AUTO(fd_close) int fd = -1;
		size_t n_fds = 1;

		if (settle_is_due() && sys_wait(-1, 0, socket_fd, PAUSE_MS) == 0)
			settle_now();
		int n = os_recv(socket_fd, conn.in, sizeof conn.in, &fd, &n_fds);

		if (n <= 0 || tree_packet_parse(conn.in, (size_t)n, &p, &e) < 0)
			break;
		if (p.head.type == TREE_REQUEST)
			serve_one(&conn, &p, &fd);
		else if (p.head.type != TREE_BODY && p.head.type != TREE_CANCEL)
			break; /* what is left of an old call is fine, anything else is not */
	}
	settle_now();
}
