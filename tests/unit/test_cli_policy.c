#include "cli/policy.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/limits.h"
#include "test.h"

enum { WORDS_MAX = 32, TEXT_MAX = 8 << 20 };

/* A folder of the test's own, and in it. */
static void enter_scratch(void)
{
	char dir[] = "/tmp/test-policy-XXXXXX";

	CHECK(mkdtemp(dir));
	CHECK_INT(chdir(dir), 0);
}

static void leave_scratch(void)
{
	char dir[256];

	CHECK(getcwd(dir, sizeof dir));
	unlink("spec");
	unlink("spec.json");
	unlink("spec.yaml");
	unlink("out");
	CHECK_INT(rmdir(dir), 0);
}

static void write_file(const char *name, const char *text, size_t len)
{
	AUTO(fd_close) int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	CHECK_INT(write(fd, text, len), (long long)len);
}

/* Runs the verb with stdout in the file "out", which is then read into `out`. */
static int run(const char *const *words, struct str *out, struct err *e)
{
	char *argv[WORDS_MAX + 1] = { NULL };
	char buf[4096];
	int argc = 0;
	ssize_t n;
	AUTO(fd_close) int saved = dup(STDOUT_FILENO);
	AUTO(fd_close) int file = open("out", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	for (; words[argc]; argc++)
		argv[argc] = mem_strdup(words[argc]);
	fflush(stdout);
	CHECK(dup2(file, STDOUT_FILENO) >= 0);
	int status = policy_main(argc, argv, e);

	fflush(stdout);
	CHECK(dup2(saved, STDOUT_FILENO) >= 0);
	CHECK_INT(lseek(file, 0, SEEK_SET), 0);
	str_clear(out);
	while ((n = read(file, buf, sizeof buf)) > 0)
		str_addn(out, buf, (size_t)n);
	while (argc > 0)
		free(argv[--argc]);
	return status;
}

#define WORDS(...) ((const char *const[]){ "policy", __VA_ARGS__, NULL })

TEST(show_prints_the_one_liner)
{
	AUTO(str_done) struct str out = { .max = TEXT_MAX };
	struct err e = { 0 };

	enter_scratch();
	CHECK_INT(run(WORDS("show", "--net", "deny", "--fs", "ephemeral:/work", "--creds", "none",
	                    "--cpu", "2", "--mem=4g", "--pids", "512", "--wall", "10m", "--json"),
	              &out, &e),
	          0);
	CHECK_STR(str_text(&out),
	          "{\"net\":{\"mode\":\"deny\"},\"fs\":[{\"kind\":\"ephemeral\",\"at\":\"/work\"}],"
	          "\"creds\":[],\"limits\":{\"cpu\":2.0,\"mem\":4294967296,\"pids\":512,"
	          "\"wall_ms\":600000},\"user\":\"agent\"}\n");
	leave_scratch();
}

TEST(show_without_json_prints_a_file_that_check_takes)
{
	AUTO(str_done) struct str out = { .max = TEXT_MAX };
	struct err e = { 0 };

	enter_scratch();
	CHECK_INT(
	    run(WORDS("show", "--resolved", "-e", "A=1", "-u", "root", "--mem", "1g"), &out, &e),
	    0);
	CHECK(strstr(str_text(&out), "\nimage: host\n"));
	CHECK(strstr(str_text(&out), "\n  disk: 512m\n"));
	CHECK(strstr(str_text(&out), "\nuser: root\n"));
	write_file("spec.yaml", out.data, out.len);
	CHECK_INT(run(WORDS("check", "spec.yaml"), &out, &e), 0);
	CHECK_STR(str_text(&out), "spec.yaml: ok\n");
	leave_scratch();
}

TEST(flags_and_files_in_the_order_given)
{
	static const char text[] = "limits: {mem: 1g, pids: 5}\nfs: ephemeral:/a\n";
	AUTO(str_done) struct str out = { .max = TEXT_MAX };
	struct err e = { 0 };

	enter_scratch();
	write_file("spec", text, strlen(text));
	CHECK_INT(run(WORDS("show", "--mem", "2g", "--spec", "spec", "--pids", "6", "--fs",
	                    "ephemeral:/b", "--json"),
	              &out, &e),
	          0);
	CHECK_STR(str_text(&out),
	          "{\"net\":{\"mode\":\"deny\"},\"fs\":[{\"kind\":\"ephemeral\",\"at\":\"/a\"},"
	          "{\"kind\":\"ephemeral\",\"at\":\"/b\"}],\"creds\":[],"
	          "\"limits\":{\"mem\":1073741824,\"pids\":6},\"user\":\"agent\"}\n");
	leave_scratch();
}

TEST(bad_usage_is_125)
{
	static const struct {
		const char *words[8], *part;
	} rows[] = {
		{ { "policy" }, "usage: " },
		{ { "policy", "shwo" }, "usage: " },
		{ { "policy", "check" }, "usage: " },
		{ { "policy", "check", "a", "b" }, "usage: " },
		{ { "policy", "check", "--resolved", "a" }, "usage: " },
		{ { "policy", "show", "file" }, "policy show takes no \"file\"" },
		{ { "policy", "show", "-x" }, "policy show takes no \"-x\"" },
		{ { "policy", "show", "--" }, "policy show takes no \"--\"" },
		{ { "policy", "show", "--memory", "4g" }, "did you mean --mem?" },
		{ { "policy", "show", "--memory=4g" },
		  "unknown flag --memory; did you mean --mem?" },
		{ { "policy", "show", "--mem" }, "--mem needs a value" },
		{ { "policy", "show", "-e" }, "-e needs a value" },
		{ { "policy", "show", "--spec" }, "--spec needs a value" },
		{ { "policy", "show", "--net", "denny" }, "did you mean \"deny\"?" },
		{ { "policy", "show", "--mem=" }, "--mem: \"\" is not a size" },
		{ { "policy", "show", "--disk", "8g" }, "is larger than mem" },
		{ { "policy", "show", "--spec", "missing" }, "open missing: " },
	};
	AUTO(str_done) struct str out = { .max = TEXT_MAX };

	enter_scratch();
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct err e = { 0 };

		printf("# row %zu\n", i);
		CHECK_INT(run(rows[i].words, &out, &e), 125);
		CHECK_STR(str_text(&out), "");
		if (!strstr(e.msg, rows[i].part))
			CHECK_STR(e.msg, rows[i].part);
	}
	leave_scratch();
}

TEST(check_says_what_is_wrong_and_where)
{
	static const struct {
		const char *name, *text, *message;
	} rows[] = {
		{ "spec.yaml", "net: deny\nlimits:\n  memory: 4g\n",
		  "spec.yaml: line 3: limits: unknown key \"memory\"; did you mean \"mem\"?" },
		{ "spec.json", "{\"net\":\n\"deny\",}", "spec.json: line 2: not JSON" },
		{ "spec", "{\"fs\":[\"ephemeral:/a\",\"ephemeral:/a/\"]}",
		  "spec: fs[1].at: two mounts at \"/a\"; the first is fs[0]" },
		{ "spec", "", "spec: the spec is empty; write {} for all defaults" },
	};
	AUTO(str_done) struct str out = { .max = TEXT_MAX };

	enter_scratch();
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct err e = { 0 };

		write_file(rows[i].name, rows[i].text, strlen(rows[i].text));
		CHECK_INT(run(WORDS("check", rows[i].name), &out, &e), 1);
		CHECK_STR(str_text(&out), "");
		CHECK_STR(e.msg, rows[i].message);
	}
	leave_scratch();
}

TEST(check_as_json)
{
	AUTO(str_done) struct str out = { .max = TEXT_MAX };
	struct err e = { 0 };

	enter_scratch();
	write_file("spec", "{}", 2);
	CHECK_INT(run(WORDS("check", "--json", "spec"), &out, &e), 0);
	CHECK_STR(str_text(&out), "{\"ok\":true}\n");
	write_file("spec", "[]", 2);
	CHECK_INT(run(WORDS("check", "spec", "--json"), &out, &e), 1);
	CHECK_STR(str_text(&out),
	          "{\"ok\":false,\"error\":\"spec: wants an object of keys such as net, "
	          "fs, limits, not a list\"}\n");
	CHECK_INT(run(WORDS("check", "missing\xff", "--json"), &out, &e), 1);
	CHECK_STR(str_text(&out), "{\"ok\":false}\n");
	leave_scratch();
}

/* A file that cannot be read whole is an error, never the defaults. */
TEST(unreadable_files)
{
	AUTO(str_done) struct str out = { .max = TEXT_MAX };
	AUTO(str_done) struct str big = { .max = TEXT_MAX };
	struct err e = { 0 };

	enter_scratch();
	CHECK_INT(run(WORDS("check", "missing"), &out, &e), 1);
	CHECK_STR(e.msg, "open missing: No such file or directory");
	CHECK_INT(run(WORDS("check", "."), &out, &e), 1);
	CHECK_STR(e.msg, "read .: Is a directory");
	str_add(&big, "{}");
	while (big.len < SPEC_BYTES_MAX)
		str_add(&big, " ");
	write_file("spec", big.data, big.len);
	CHECK_INT(run(WORDS("check", "spec"), &out, &e), 0);
	str_add(&big, " ");
	write_file("spec", big.data, big.len);
	CHECK_INT(run(WORDS("check", "spec"), &out, &e), 1);
	CHECK_STR(e.msg, "spec: more than 4194304 bytes");
	leave_scratch();
}

TEST(output_that_is_lost_is_an_error)
{
	struct err e = { 0 };
	char verb[] = "policy", show[] = "show", *argv[] = { verb, show, NULL };
	AUTO(fd_close) int saved = dup(STDOUT_FILENO);
	AUTO(fd_close) int full = open("/dev/full", O_WRONLY | O_CLOEXEC);

	if (full < 0)
		SKIP("needs /dev/full");
	fflush(stdout);
	CHECK(dup2(full, STDOUT_FILENO) >= 0);
	int status = policy_main(2, argv, &e);

	CHECK(dup2(saved, STDOUT_FILENO) >= 0);
	CHECK_INT(status, 125);
	CHECK_STR(e.msg, "write to stdout: No space left on device");
}
