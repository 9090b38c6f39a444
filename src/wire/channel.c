#include "wire/channel.h"

static const char *const state_names[] = {
	[RUN_EXITED] = "exited", [RUN_SIGNALED] = "signaled", [RUN_TIMEOUT] = "timeout",
	[RUN_OOM] = "oom",       [RUN_KILLED] = "killed",     [RUN_EXPIRED] = "expired",
	[RUN_LOST] = "lost",
};
_Static_assert(COUNT(state_names) == RUN_LOST + 1, "a state has no name");

const char *run_state_name(enum run_state s)
{
	return (size_t)s < COUNT(state_names) ? state_names[s] : "lost";
}

int run_exit_status(const struct channel_end *end)
{
	switch ((enum run_state)end->state) {
	case RUN_EXITED:
	case RUN_SIGNALED:
	case RUN_KILLED:
		return end->signal ? 128 + end->signal : end->exit_code;
	case RUN_TIMEOUT:
	case RUN_EXPIRED:
		return 124;
	case RUN_OOM:
		return 137;
	case RUN_LOST:
		break;
	}
	return 125;
}

bool shell_name_is(const char *name, size_t len)
{
	static const char letters[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";

	for (size_t i = 0; i < len; i++)
		if (!memchr(letters, name[i], sizeof letters - 1))
			return false;
	return len > 0 && len < SHELL_NAME_SIZE;
}

/* Three strings, and nothing else. */
bool shell_text_is(const char *text, size_t n)
{
	size_t nuls = 0;

	for (size_t i = 0; i < n; i++)
		nuls += text[i] == '\0';
	return nuls == 3 && text[n - 1] == '\0';
}

const char *shell_text_cwd(const char *text)
{
	return text + strlen(text) + 1;
}

const char *shell_text_env(const char *text)
{
	const char *cwd = shell_text_cwd(text);

	return cwd + strlen(cwd) + 1;
}

bool channel_shell_read(struct channel_shell *out, const char **text, const void *bytes, size_t n)
{
	if (n < sizeof *out)
		return false;
	memcpy(out, bytes, sizeof *out);
	*text = (const char *)bytes + sizeof *out;
	out->reason[sizeof out->reason - 1] = '\0';
	return out->text_len == n - sizeof *out &&
	       shell_name_is(out->name, strnlen(out->name, sizeof out->name)) &&
	       (out->text_len == 0 || shell_text_is(*text, out->text_len));
}

size_t channel_end_size(const struct channel_end *end)
{
	size_t n = end->n_execs < CHANNEL_EXECS_MAX ? end->n_execs : CHANNEL_EXECS_MAX;

	return offsetof(struct channel_end, execs) + n * sizeof end->execs[0];
}

bool channel_end_read(struct channel_end *out, const void *bytes, size_t n)
{
	if (n < offsetof(struct channel_end, execs) || n > sizeof *out)
		return false;
	memset(out, 0, sizeof *out);
	memcpy(out, bytes, n);
	out->reason[sizeof out->reason - 1] = '\0';
	for (size_t i = 0; i < CHANNEL_CHILDREN_MAX; i++)
		out->children[i].name[sizeof out->children[i].name - 1] = '\0';
	for (size_t i = 0; i < CHANNEL_EXECS_MAX; i++)
		out->execs[i][CHANNEL_EXEC_TEXT - 1] = '\0';
	return out->state <= RUN_LOST && out->exit_code >= -1 && out->exit_code <= 255 &&
	       out->signal >= 0 && out->signal <= 64;
}
