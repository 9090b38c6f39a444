#include "monitor/ask.h"

#include "base/fd.h"
#include "os/extent.h"
#include "os/sock.h"

static uint32_t flags_of(const struct command *c)
{
	return (c->is_tty ? EXEC_TTY : 0u) | (c->has_stdin ? EXEC_STDIN : 0u) |
	       (c->is_merged ? EXEC_MERGE : 0u) | (c->is_final ? EXEC_FINAL : 0u) |
	       (c->wants_usage ? EXEC_USAGE : 0u) | (c->is_shell ? EXEC_SHELL : 0u) |
	       (c->is_alone ? EXEC_ALONE : 0u) | (c->is_gated ? EXEC_GATED : 0u);
}

/* A text that is too long for a packet goes in a file. */
static int text_file(const struct command *c, struct err *e)
{
	AUTO(fd_close) int fd = os_memfd("command");
	int r = fd < 0 ? fd : os_pwrite2(fd, c->text, c->text_len, NULL, 0, 0);

	return r < 0 ? err_sys(e, -r, "write the command") : fd_take(&fd);
}

int ask_exec(int channel_fd, uint32_t num, const struct command *c, int log_fd, struct err *e)
{
	struct channel_packet p; /* not cleared: most commands are much shorter */
	struct channel_exec x = { .flags = flags_of(c),
		                  .uid = c->uid,
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
	AUTO(fd_close) int text = -1;
	size_t n = sizeof x;

	if (c->text_len > sizeof p.data - sizeof x) {
		text = text_file(c, e);
		if (text < 0)
			return -1;
		x.flags |= EXEC_TEXT_FD;
	} else {
		memcpy(p.data + n, c->text, c->text_len);
		n += c->text_len;
	}
	memcpy(p.data, &x, sizeof x);
	p.head = (struct channel_head){ .type = CH_EXEC, .len = (uint32_t)n, .num = num };
	int r =
	    os_send(channel_fd, &p, sizeof p.head + n, (int[]){ log_fd, text }, text < 0 ? 1 : 2);
	return r < 0 ? err_sys(e, -r, "send the command") : 0;
}
