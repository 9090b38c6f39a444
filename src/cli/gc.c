#include "cli/gc.h"

static bool is_json, is_dry;
static int left;

static void found(const char *what, bool is_gone)
{
	left += !is_gone;
	if (!is_json)
		printf("%s: %s\n", what, is_gone ? "removed" : is_dry ? "left over" : "resists");
}

int gc_main(int argc, char **argv, const struct driver *driver)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--dry-run") == 0) {
			is_dry = true;
		} else if (strcmp(argv[i], "--json") == 0) {
			is_json = true;
		} else {
			fprintf(stderr,
			        "caisson: unknown option %s: caisson gc [--dry-run] [--json]\n",
			        argv[i]);
			return 125;
		}
	}
	int n = driver->sweep(is_dry, found);

	if (n < 0) {
		fprintf(stderr, "caisson: cannot look for leftovers here\n");
		return 125;
	}
	if (is_json)
		printf("{\"found\":%d,\"removed\":%d}\n", n, n - left);
	else
		printf("%d found, %d removed\n", n, n - left);
	return left > 0 && !is_dry ? 1 : 0;
}
