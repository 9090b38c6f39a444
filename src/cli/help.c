#include "cli/help.h"

#include "base/str.h"
#include "cli/run.h"
#include "spec/spec.h"

static const struct {
	const char *name, *usage, *does;
} commands[] = {
	{ "run", "[options] -- CMD...", "run a command behind walls" },
	{ "policy", "show|check [options] [FILE]", "print or check what a spec means" },
	{ "doctor", "[--json]", "what this host can enforce, and what it lacks" },
	{ "gc", "[--dry-run] [--json]", "remove what dead sandboxes left" },
	{ "help", "[COMMAND]", "this text, or the options of a command" },
	{ "version", "", "the version" },
};

static int help_run(void)
{
	AUTO(str_done) struct str text = { .max = 64u << 10 };

	str_add(&text, run_help);
	spec_help(&text);
	str_add(&text,
	        "\nExit status: the command's own; 124 timeout or wall; 125 our failure or bad\n"
	        "usage; 126 denied or not executable; 127 not found; 128+n by signal (oom 137).\n");
	fputs(str_text(&text), stdout);
	return 0;
}

int help_main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "run") == 0)
		return help_run();
	printf("caisson: run untrusted code behind walls\n\n");
	for (size_t i = 0; i < COUNT(commands); i++)
		printf("  caisson %-8s %-28s %s\n", commands[i].name, commands[i].usage,
		       commands[i].does);
	return 0;
}

int help_version_main(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	printf("caisson " CAISSON_VERSION "\n");
	return 0;
}
