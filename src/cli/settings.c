#include "cli/settings.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/str.h"

void settings_init(struct settings *s)
{
	config_init(&s->flags);
	config_init(&s->file);
	config_init(&s->all);
	s->path[0] = '\0';
}

void settings_done(struct settings *s)
{
	config_done(&s->flags);
	config_done(&s->file);
	config_done(&s->all);
}

/* ---- the file ------------------------------------------------------------------------ */

/* It decides what root's daemon does: only root, or the caller, may have written it. */
static int check_file(int fd, const char *path, struct err *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_sys(e, errno, "look at %s", path);
	if (!S_ISREG(st.st_mode))
		return err_new(e, ERR_INVALID, "%s is not a file", path);
	if (st.st_uid != 0 && st.st_uid != geteuid())
		return err_new(e, ERR_DENIED,
		               "%s belongs to user %u; it must be root's or your own", path,
		               (unsigned int)st.st_uid);
	if (st.st_mode & 022)
		return err_new(e, ERR_DENIED,
		               "%s may be written by others (mode %04o); chmod go-w it", path,
		               (unsigned int)st.st_mode & 07777);
	return 0;
}

static int read_all(int fd, struct str *out, const char *path, struct err *e)
{
	char buf[16384];
	ssize_t n;

	while ((n = read(fd, buf, sizeof buf)) > 0 && !out->overflow)
		str_addn(out, buf, (size_t)n);
	if (n < 0)
		return err_sys(e, errno, "read %s", path);
	return out->overflow ? err_new(e, ERR_LIMIT, "%s: more than %u bytes", path, SPEC_BYTES_MAX)
	                     : 0;
}

int settings_read(struct config *c, const char *path, struct err *e)
{
	/* Without O_NONBLOCK a FIFO in its place would hold us. */
	AUTO(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	AUTO(str_done) struct str text = { .max = SPEC_BYTES_MAX };

	if (fd < 0)
		return err_sys(e, errno, "open %s", path);
	if (check_file(fd, path, e) < 0 || read_all(fd, &text, path, e) < 0)
		return -1;
	if (config_yaml(c, str_text(&text), text.len, e) < 0 || config_check(c, e) < 0)
		return err_wrap(e, "%s", path);
	return 0;
}

/* Where it usually is; "" when there is no such place. */
static int usual_place(char out[PATH_TEXT_MAX], struct err *e)
{
	const char *xdg = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	int n = 0;

	out[0] = '\0';
	if (geteuid() == 0)
		n = snprintf(out, PATH_TEXT_MAX, "/etc/caisson/config.yaml");
	else if (xdg && *xdg)
		n = snprintf(out, PATH_TEXT_MAX, "%s/caisson/config.yaml", xdg);
	else if (home && *home)
		n = snprintf(out, PATH_TEXT_MAX, "%s/.config/caisson/config.yaml", home);
	return n >= PATH_TEXT_MAX ? err_new(e, ERR_INVALID, "the path of the config is too long")
	                          : 0;
}

static int find_file(struct settings *s, const char *named, struct err *e)
{
	if (named && strcmp(named, "none") == 0)
		return 0;
	if (named) {
		int n = snprintf(s->path, sizeof s->path, "%s", named);

		return n < 1 || n >= PATH_TEXT_MAX
		           ? err_new(e, ERR_INVALID, "--config: empty, or too long")
		           : 0;
	}
	if (usual_place(s->path, e) < 0)
		return -1;
	if (s->path[0] && access(s->path, F_OK) < 0 && (errno == ENOENT || errno == ENOTDIR))
		s->path[0] = '\0';
	return 0;
}

/* ---- all together -------------------------------------------------------------------- */

/* Where the caller's own daemon is, unless somebody said something else. */
static int add_places(struct config *c, struct err *e)
{
	struct address own;

	if (c->state && c->run)
		return 0;
	(void)unsetenv("CAISSON_SOCKET"); /* where others look, not where this one is */
	(void)unsetenv("CAISSON_HOST");
	if (address_find(&own, e) < 0)
		return -1;
	if (!c->state)
		c->state = arena_strdup(&c->arena, own.state_dir);
	if (!c->run)
		c->run = arena_strdup(&c->arena, own.run_dir);
	return 0;
}

int settings_file(struct settings *s, const char *named, struct err *e)
{
	if (find_file(s, named, e) < 0)
		return -1;
	return s->path[0] ? settings_read(&s->file, s->path, e) : 0;
}

int settings_load(struct settings *s, const char *named, struct err *e)
{
	if (settings_file(s, named, e) < 0)
		return -1;
	if (config_add(&s->all, &s->file, e) < 0 || config_add(&s->all, &s->flags, e) < 0 ||
	    config_check(&s->all, e) < 0 || add_places(&s->all, e) < 0)
		return -1;
	config_resolve(&s->all);
	return 0;
}

void settings_args(struct settings *s, const char *program, char *out[SETTINGS_ARGS_MAX])
{
	const char *args[SETTINGS_ARGS_MAX] = { program };
	size_t n = 1 + config_texts(&s->all, args + 1);

	if (s->all.tls.cert) {
		args[n++] = "--tls";
		args[n++] = s->all.tls.cert;
		args[n++] = s->all.tls.key;
	}
	args[n++] = NULL;
	for (size_t i = 0; i < n; i++)
		out[i] = (char *)(uintptr_t)args[i]; /* execv(3) changes none of them */
}
