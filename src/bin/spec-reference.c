/*
 * spec-reference - prints docs/spec.md, or with the word config docs/config.md; tools/check-docs
 * compares them.
 */
#include "spec/config.h"

int main(int argc, char **argv)
{
	AUTO(str_done) struct str out = { .max = 1u << 20 };

	if (argc > 1 && strcmp(argv[1], "config") == 0)
		config_reference(&out);
	else
		spec_reference(&out);
	if (out.overflow || fputs(str_text(&out), stdout) < 0 || fflush(stdout) != 0)
		return EXIT_FAILURE;
	return EXIT_SUCCESS;
}
