#include "cli/gc.h"

static bool is_json;

static void found(const char *what)
{
	if (!is_json)
		printf("leftover of sandbox %s\n", what);
}

int gc_main(int argc, char **argv, const struct driver *driver)
{
	bool dry_run = false;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--dry-run") == 0) {
			dry_run = true;
		} else if (strcmp(argv[i], "--json") == 0) {
			is_json = true;
		} else {
			fprintf(stderr,
			        "caisson: unknown option %s: caisson gc [--dry-run] [--json]\n",
			        argv[i]);
			return 125;
		}
	}
	int n = driver->sweep(dry_run, found);

	if (is_json)
		printf("{\"%s\":%d}\n", dry_run ? "found" : "removed", n);
	else
		printf("%d %s\n", n, dry_run ? "found" : "removed");
	return 0;
}
