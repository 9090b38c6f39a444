/*
 * spec-reference - prints docs/spec.md; tools/check-docs compares the two.
 */
#include "spec/spec.h"

int main(void)
{
	AUTO(str_done) struct str out = { .max = 1u << 20 };

	spec_reference(&out);
	if (out.overflow || fputs(str_text(&out), stdout) < 0 || fflush(stdout) != 0)
		return EXIT_FAILURE;
	return EXIT_SUCCESS;
}
