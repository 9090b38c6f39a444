#include "cli/secret_source.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "test.h"

#define NOBODY 65534

static char dir[64], path[128];

/* A config of one who is not root: its place is in a variable. */
static void begin(const char *text, mode_t mode)
{
	snprintf(dir, sizeof dir, "/tmp/test-source-XXXXXX");
	CHECK(mkdtemp(dir) && chmod(dir, 0755) == 0);
	CHECK_INT(setenv("XDG_CONFIG_HOME", dir, 1), 0);
	snprintf(path, sizeof path, "%s/caisson", dir);
	CHECK_INT(mkdir(path, 0755), 0);
	snprintf(path, sizeof path, "%s/caisson/config.yaml", dir);
	if (text) {
		AUTO(fd_close) int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

		CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
		CHECK_INT(fchmod(fd, mode), 0);
	}
	if (geteuid() == 0)
		CHECK_INT(seteuid(NOBODY), 0);
}

static void end(void)
{
	if (getuid() == 0)
		CHECK_INT(seteuid(0), 0);
	(void)unlink(path);
	snprintf(path, sizeof path, "%s/caisson", dir);
	CHECK_INT(rmdir(path), 0);
	CHECK_INT(rmdir(dir), 0);
}

static size_t read_all(int fd, char *out, size_t size)
{
	size_t n = 0;
	ssize_t r;

	while ((r = read(fd, out + n, size - 1 - n)) > 0)
		n += (size_t)r;
	out[n] = '\0';
	return n;
}

TEST(what_the_command_of_the_config_prints)
{
	static const struct {
		const char *text, *name;
		mode_t mode;
		const char *printed; /* NULL: it does not begin, */
		const char *message; /* or NULL: it ends well */
	} rows[] = {
		{ "secrets: {a: \"printf '%s' one-two; cat\"}\n", "a", 0644, "one-two", NULL },
		{ "secrets: {a: \"echo more than that; exit 3\"}\n", "a", 0644, "more than that\n",
		  "failed with 3" },
		{ "secrets: {a: \"kill -9 $$\"}\n", "a", 0644, "", "failed with 137" },
		{ "secrets: {a: echo}\n", "b", 0644, NULL, "has no secrets.b" },
		{ "secrets: {a: echo}\n", "a", 0666, NULL, "may be written by others" },
		{ "secrets: [echo]\n", "a", 0644, NULL, "secrets" },
		{ NULL, "a", 0, NULL, "there is no config" },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct secret_source s = { .fd = -1 };
		struct err e = { 0 };
		char printed[256] = "";

		begin(rows[i].text, rows[i].mode);
		int r = secret_source_begin(&s, rows[i].name, &e);

		if (r == 0)
			(void)read_all(s.fd, printed, sizeof printed);
		CHECK_INT(r, rows[i].printed ? 0 : -1);
		CHECK_STR(printed, rows[i].printed ? rows[i].printed : "");
		if (r == 0)
			r = secret_source_end(&s, &e);
		CHECK_INT(r, rows[i].message ? -1 : 0);
		CHECK(!rows[i].message || strstr(e.msg, rows[i].message));
		end();
	}
}
