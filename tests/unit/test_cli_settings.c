#include "cli/settings.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "test.h"

static char dir[64];

static void make_dir(void)
{
	snprintf(dir, sizeof dir, "/tmp/test-settings-XXXXXX");
	CHECK(mkdtemp(dir) && chdir(dir) == 0);
}

static void remove_dir(void)
{
	static const char *const names[] = { "f", "caisson/config.yaml", "caisson" };

	for (size_t i = 0; i < COUNT(names); i++)
		(void)remove(names[i]);
	CHECK_INT(rmdir(dir), 0);
}

static void write_file(const char *name, const char *text, mode_t mode)
{
	AUTO(fd_close) int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	CHECK_INT(fchmod(fd, mode), 0);
}

TEST(who_could_have_written_it_decides)
{
	static const struct {
		uid_t owner;
		mode_t mode;
		const char *message; /* NULL: it is read */
	} rows[] = {
		{ 0, 0644, NULL },
		{ 0, 0600, NULL },
		{ 0, 0664, "f may be written by others (mode 0664)" },
		{ 0, 0646, "f may be written by others (mode 0646)" },
		{ 65534, 0644, "f belongs to user 65534; it must be root's or your own" },
	};

	if (geteuid() != 0)
		SKIP("needs root: files of others");
	make_dir();
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct err e = { 0 };
		struct config c;

		write_file("f", "ttl: 1h\n", rows[i].mode);
		CHECK_INT(chown("f", rows[i].owner, (gid_t)-1), 0);
		config_init(&c);
		CHECK_INT(settings_read(&c, "f", &e), rows[i].message ? -1 : 0);
		if (rows[i].message) {
			CHECK(strstr(e.msg, rows[i].message));
			CHECK_INT(e.kind, ERR_DENIED);
		}
		config_done(&c);
		CHECK_INT(unlink("f"), 0);
	}
	remove_dir();
}

TEST(what_is_no_file_is_refused_and_holds_nobody)
{
	struct err e = { 0 };
	struct config c;

	make_dir();
	config_init(&c);
	CHECK_INT(settings_read(&c, "none", &e), -1);
	CHECK_INT(e.sys, ENOENT);
	CHECK_INT(settings_read(&c, ".", &e), -1);
	CHECK(strstr(e.msg, ". is not a file"));
	CHECK_INT(mkfifo("f", 0600), 0);
	CHECK_INT(settings_read(&c, "f", &e), -1);
	CHECK(strstr(e.msg, "f is not a file"));
	CHECK_INT(unlink("f"), 0);
	write_file("f", "ttl: 1h\ncolour: red\n", 0600);
	CHECK_INT(settings_read(&c, "f", &e), -1);
	CHECK(strstr(e.msg, "f: line 2: unknown key \"colour\""));
	config_done(&c);
	remove_dir();
}

TEST(flags_over_file_over_defaults)
{
	char *args[SETTINGS_ARGS_MAX];
	AUTO(str_done) struct str line = { .max = 4096 };
	AUTO(settings_done) struct settings s;
	struct err e = { 0 };

	make_dir();
	write_file("f",
	           "state: /s\nrun: /r\nttl: 1h\nquota: {mem: 1g, pids: 9}\n"
	           "tls: {cert: /c, key: /k}\n",
	           0600);
	settings_init(&s);
	CHECK_INT(config_flag(&s.flags, "quota", "pids=5", &e), 0);
	CHECK_INT(settings_load(&s, "f", &e), 0);
	settings_args(&s, "launcher", args);
	for (size_t i = 0; args[i]; i++)
		str_addf(&line, "%s%s", i ? " " : "", args[i]);
	CHECK_STR(str_text(&line),
	          "launcher --state /s --run /r --service-id 1879047936 --ttl 1h "
	          "--keep-records 30d --keep-trash 1d --keep-ledger 4g --ledger-burst 20000 "
	          "--process-events on --ports 20000-29999 --log info --quota mem=1g "
	          "--quota pids=5 --tls /c /k");
	remove_dir();
}

TEST(none_means_none)
{
	AUTO(settings_done) struct settings s;
	struct err e = { 0 };

	settings_init(&s);
	CHECK_INT(config_flag(&s.flags, "state", "/s", &e), 0);
	CHECK_INT(config_flag(&s.flags, "run", "/r", &e), 0);
	CHECK_INT(settings_load(&s, "none", &e), 0);
	CHECK_STR(s.path, "");
	CHECK_STR(s.all.state, "/s");
}
