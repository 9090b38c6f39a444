#include "base/base.h"

#include "test.h"

/* True when `work` does not come back: it aborts, or ASan's allocator ends the process first. */
static bool never_returns(void (*work)(void))
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		work();
		_exit(0);
	}
	waitpid(pid, &status, 0);
	return status != 0;
}

static void alloc_too_much(void)
{
	free(mem_alloc(PTRDIFF_MAX));
}

static void grow_too_much(void)
{
	free(mem_grow(NULL, PTRDIFF_MAX));
}

TEST(out_of_memory_aborts)
{
	CHECK(never_returns(alloc_too_much));
	CHECK(never_returns(grow_too_much));
}

TEST(memory_is_zeroed_and_never_null)
{
	AUTO(freep) unsigned char *p = mem_alloc(100);
	AUTO(freep) void *none = mem_alloc(0);

	for (int i = 0; i < 100; i++)
		CHECK_INT(p[i], 0);
	CHECK(none);
}

TEST(grow_keeps_what_was_there)
{
	AUTO(freep) char *p = mem_strdup("kept");

	p = mem_grow(p, 100000);
	CHECK_STR(p, "kept");
	p = mem_grow(p, 0);
	CHECK(p);
}

TEST(freep_may_run_twice)
{
	char *p = mem_strdup("x");

	freep(&p);
	CHECK(!p);
	freep(&p);
}
