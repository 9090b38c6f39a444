/*
 * caisson.c - main() of the program: which verb, which driver.
 */
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <unistd.h>

#include "bin/oneshot.h"
#include "cli/doctor.h"
#include "cli/gc.h"
#include "cli/help.h"
#include "cli/policy.h"
#include "cli/run.h"
#include "os/fault.h"
#include "os/file.h"

static int verb_run(int argc, char **argv)
{
	return run_main(argc, argv, &oneshot_driver);
}

static int verb_gc(int argc, char **argv)
{
	return gc_main(argc, argv, &oneshot_driver);
}

static int verb_doctor(int argc, char **argv)
{
	return doctor_main(argc, argv, &oneshot_driver);
}

static int verb_policy(int argc, char **argv)
{
	struct err e = { 0 };
	int status = policy_main(argc, argv, &e);

	if (status != 0)
		fprintf(stderr, "caisson: %s\n", e.msg);
	return status;
}

static const struct {
	const char *name;
	int (*main)(int argc, char **argv);
} verbs[] = {
	{ "run", verb_run },       { "policy", verb_policy }, { "gc", verb_gc },
	{ "doctor", verb_doctor }, { "help", help_main },     { "version", help_version_main },
};

/* A caller may have closed the standard three: a file of ours must not land there. The rest of
 * what it left open is not for any process of ours. */
static int clean_descriptors(void)
{
	int fd;

	do
		fd =
		    open("/dev/null", O_RDWR); /* inherited on purpose, if it is one of the three */
	while (fd >= 0 && fd < 3);
	if (fd >= 0)
		close(fd);
	return os_close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);
}

int main(int argc, char **argv)
{
	fault_init();
	signal(SIGCHLD, SIG_DFL); /* ignored by some callers: then no child could be waited for */
	int r = clean_descriptors();
	if (r < 0) {
		fprintf(stderr, "caisson: close what was inherited: %s\n", strerror(-r));
		return 125;
	}
	if (argc < 2)
		return help_main(1, argv);
	const char *name = argv[1];

	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
		name = "help";
	if (strcmp(name, "--version") == 0)
		name = "version";
	for (size_t i = 0; i < COUNT(verbs); i++)
		if (strcmp(verbs[i].name, name) == 0)
			return verbs[i].main(argc - 1, argv + 1);
	fprintf(stderr, "caisson: unknown command %s; `caisson help` lists them\n", name);
	return 125;
}
