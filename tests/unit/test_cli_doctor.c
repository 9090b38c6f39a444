#include "cli/doctor.h"

#include <fcntl.h>
#include <jansson.h>

#include "base/fd.h"
#include "base/str.h"
#include "test.h"

enum { TEXT_MAX = 1 << 20 };

/* ---- a driver of the test's own ---------------------------------------------------- */

static struct {
	bool is_enforceable, is_refused, is_failed;
	int exit_code;
	int inspected, started, ended, events;
} host;

/* clang-format off */
static const struct doctor_row host_rows[] = {
	{ DOCTOR_WALLS, DOCTOR_OK, "namespaces", "all seven", NULL, NULL },
	{ DOCTOR_WALLS, DOCTOR_MISSING, "proc", NULL, "nothing to see", "uncover it" },
	{ DOCTOR_ROOT, DOCTOR_OK, "mem", "cgroup1", NULL, NULL },
	{ DOCTOR_ROOT, DOCTOR_MISSING, "fs", NULL, NULL, NULL }, /* told by proc */
	{ DOCTOR_ROOTLESS, DOCTOR_MISSING, "cpu", NULL, "no delegation", "delegate it" },
	{ DOCTOR_ROOTLESS, DOCTOR_MISSING, "mem", NULL, "no delegation", "delegate it" },
	{ DOCTOR_SETTINGS, DOCTOR_WEAK, "kernel.kptr_restrict", "0", "addresses are shown", "sysctl -w x=1" },
	{ DOCTOR_SETTINGS, DOCTOR_OK, "kernel.dmesg_restrict", "1", NULL, NULL },
};
/* clang-format on */

static void inspect(struct doctor_report *out)
{
	host.inspected++;
	out->kernel = arena_strdup(&out->arena, "6.1.0");
	out->cgroup = "v2";
	out->mode = DOCTOR_ROOT;
	out->is_enforceable = host.is_enforceable;
	memcpy(out->rows, host_rows, sizeof host_rows);
	out->n_rows = COUNT(host_rows);
}

static int start(const struct run_setup *setup, struct run_session *out, struct err *e)
{
	host.started++;
	host.events = 0;
	CHECK_STR(setup->argv[0], "/bin/true");
	CHECK(setup->spec->resolved && setup->spec->limits[LIMIT_MEM].value > 0);
	if (host.is_refused)
		return err_new(e, ERR_INTERNAL, "take a slot: none is free");
	out->poll_fd = open("/dev/null", O_RDONLY | O_CLOEXEC); /* always readable */
	out->poll_events = POLLIN;
	return 0;
}

/* Nothing yet, some noise, the end. */
static int next(struct run_session *s, struct run_event *out, struct err *e)
{
	static const unsigned char noise[] = "noise";

	(void)s;
	if (host.events++ == 0)
		return 0;
	if (host.events == 2) {
		*out = (struct run_event){ .kind = RUN_OUT, .bytes = noise, .n = 5 };
		return 1;
	}
	if (host.is_failed)
		return err_new(e, ERR_INTERNAL, "build the walls: no");
	*out = (struct run_event){ .kind = RUN_ENDED,
		                   .object = json_pack("{ss,si}", "state", "exited", "exit_code",
		                                       host.exit_code) };
	return 1;
}

static void end(struct run_session *s)
{
	host.ended++;
	fd_close(&s->poll_fd);
}

static const struct driver driver = {
	.start = start, .next = next, .end = end, .inspect = inspect
};

static int doctor(const char *word, const char *file)
{
	char verb[] = "doctor";
	char option[32];
	char *argv[] = { verb, word ? option : NULL, NULL };
	AUTO(fd_close) int saved = dup(STDOUT_FILENO);
	AUTO(fd_close) int to = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	snprintf(option, sizeof option, "%s", word ? word : "");
	fflush(stdout);
	CHECK(dup2(to, STDOUT_FILENO) >= 0);
	int status = doctor_main(word ? 2 : 1, argv, &driver);

	fflush(stdout);
	CHECK(dup2(saved, STDOUT_FILENO) >= 0);
	return status;
}

/* Runs the verb and reads what it printed. */
static int run(const char *word, struct str *out)
{
	char file[] = "/tmp/test-doctor-XXXXXX";
	char buf[4096];
	ssize_t n;
	AUTO(fd_close) int from = mkstemp(file);
	int status = doctor(word, file);

	CHECK(from >= 0);
	CHECK_INT(unlink(file), 0);
	str_clear(out);
	while ((n = read(from, buf, sizeof buf)) > 0)
		str_addn(out, buf, (size_t)n);
	return status;
}

/* ---- what it prints ---------------------------------------------------------------- */

TEST(text_shows_both_modes_and_each_finding_once)
{
	static const char *const parts[] = {
		"Linux 6.1.0, cgroup v2, root mode\n",
		"\nenforced by           root mode (this)         rootless mode\n",
		"  mem                 cgroup1                  none\n",
		"\nmissing\n  proc: nothing to see\n      uncover it\n",
		"  rootless mode: cpu, mem: no delegation\n      delegate it\n",
		"\nweak\n  kernel.kptr_restrict (0): addresses are shown\n      sysctl -w x=1\n",
		" ms (median of 5)\nthe default spec can be enforced in root mode\n",
	};
	AUTO(str_done) struct str out = { .max = TEXT_MAX };
	const char *at;

	host.is_enforceable = true;
	CHECK_INT(run(NULL, &out), 0);
	at = str_text(&out);
	for (size_t i = 0; i < COUNT(parts); i++) {
		printf("# part %zu\n", i);
		at = strstr(at, parts[i]);
		CHECK(at);
	}
	const char *told = strstr(str_text(&out), "delegate it");
	CHECK(told && !strstr(told + strlen("delegate it"), "delegate it"));
	CHECK(!strstr(str_text(&out), "noise"));
	CHECK(!strstr(str_text(&out), "dmesg_restrict")); /* nothing to say */
	CHECK_INT(host.inspected, 1);
	CHECK_INT(host.started, 5);
	CHECK_INT(host.ended, 5);
}

static const char *text_at(json_t *rows, size_t i, const char *key)
{
	return json_string_value(json_object_get(json_array_get(rows, i), key));
}

TEST(json_has_the_same_content)
{
	AUTO(str_done) struct str out = { .max = TEXT_MAX };

	host.is_enforceable = true;
	CHECK_INT(run("--json", &out), 0);
	CHECK(strchr(str_text(&out), '\n') == str_text(&out) + out.len - 1); /* one line */
	json_t *o = json_loads(str_text(&out), 0, NULL);

	CHECK(o);
	CHECK_STR(json_string_value(json_object_get(o, "kernel")), "6.1.0");
	CHECK_STR(json_string_value(json_object_get(o, "cgroup")), "v2");
	CHECK_STR(json_string_value(json_object_get(o, "mode")), "root");
	CHECK(json_is_true(json_object_get(o, "enforceable")));
	CHECK_INT(json_array_size(json_object_get(o, "walls")), 2);
	CHECK_INT(json_array_size(json_object_get(o, "root")), 2);
	CHECK_INT(json_array_size(json_object_get(o, "rootless")), 2);
	json_t *settings = json_object_get(o, "settings");
	CHECK_INT(json_array_size(settings), 2);
	CHECK_STR(text_at(settings, 0, "name"), "kernel.kptr_restrict");
	CHECK_STR(text_at(settings, 0, "state"), "weak");
	CHECK_STR(text_at(settings, 0, "by"), "0");
	CHECK_STR(text_at(settings, 0, "detail"), "addresses are shown");
	CHECK_STR(text_at(settings, 0, "fix"), "sysctl -w x=1");
	CHECK_STR(text_at(settings, 1, "fix"), NULL);
	json_t *launch = json_object_get(o, "launch");
	CHECK(json_is_true(json_object_get(launch, "ok")));
	CHECK(json_real_value(json_object_get(launch, "median_ms")) > 0);
	CHECK_INT(json_integer_value(json_object_get(launch, "launches")), 5);
	json_decref(o);
}

TEST(status_1_when_the_default_spec_cannot_be_enforced)
{
	AUTO(str_done) struct str out = { .max = TEXT_MAX };

	host.is_enforceable = false;
	CHECK_INT(run(NULL, &out), 1);
	CHECK(strstr(str_text(&out), "the default spec cannot be enforced in root mode\n"));
	CHECK_INT(run("--json", &out), 1);
	CHECK(strstr(str_text(&out), "\"enforceable\":false"));
}

TEST(a_launch_that_fails_counts_and_is_explained)
{
	static const struct {
		bool is_refused, is_failed;
		int exit_code;
		const char *why;
	} rows[] = {
		{ true, false, 0, "take a slot: none is free" },
		{ false, true, 0, "build the walls: no" },
		{ false, false, 7, "/bin/true: exited" },
	};
	AUTO(str_done) struct str out = { .max = TEXT_MAX };

	for (size_t i = 0; i < COUNT(rows); i++) {
		host = (typeof(host)){ .is_enforceable = true,
			               .is_refused = rows[i].is_refused,
			               .is_failed = rows[i].is_failed,
			               .exit_code = rows[i].exit_code };
		CHECK_INT(run(NULL, &out), 1);
		CHECK(strstr(str_text(&out), "one launch: failed: "));
		CHECK(strstr(str_text(&out), rows[i].why));
		CHECK_INT(host.started, 1);
		CHECK_INT(host.ended, rows[i].is_refused ? 0 : 1);
		CHECK_INT(run("--json", &out), 1);
		CHECK(strstr(str_text(&out), "\"ok\":false"));
		CHECK(strstr(str_text(&out), "\"enforceable\":false"));
	}
}

TEST(bad_usage_is_125_and_does_nothing)
{
	AUTO(str_done) struct str out = { .max = TEXT_MAX };

	CHECK_INT(run("--jsn", &out), 125);
	CHECK_INT(run("extra", &out), 125);
	CHECK_STR(str_text(&out), "");
	CHECK_INT(host.inspected + host.started, 0);
}

TEST(output_that_is_lost_is_an_error)
{
	host.is_enforceable = true;
	if (access("/dev/full", W_OK) < 0)
		SKIP("needs /dev/full");
	CHECK_INT(doctor(NULL, "/dev/full"), 125);
}
