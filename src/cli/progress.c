#include "cli/progress.h"

#include <time.h>
#include <unistd.h>

#include "cli/table.h"

#define EACH_MS 1000

static uint64_t began_ms, shown_ms;
static bool is_shown;

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

int progress_wait_ms(void)
{
	return isatty(STDERR_FILENO) ? EACH_MS : -1;
}

void progress_show(const char *doing, uint64_t bytes)
{
	uint64_t now = now_ms();

	if (began_ms == 0)
		began_ms = shown_ms = now;
	if (now - shown_ms < EACH_MS || !isatty(STDERR_FILENO))
		return;
	shown_ms = now;
	is_shown = true;
	fprintf(stderr, "\r%s ... %s", doing, brief_duration(now - began_ms).text);
	if (bytes > 0)
		fprintf(stderr, ", %s", brief_bytes(bytes).text);
	fputs("\033[K", stderr);
	fflush(stderr);
}

void progress_end(void)
{
	if (is_shown)
		fputs("\r\033[K", stderr);
	is_shown = false;
	began_ms = 0;
}
