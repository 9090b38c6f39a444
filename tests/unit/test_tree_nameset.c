#include "tree/nameset.h"

#include "test.h"

TEST(a_set_of_names_knows_what_is_above_them)
{
	struct nameset s = { .seed = 42 };
	char name[64];

	for (int i = 0; i < 5000; i++) {
		snprintf(name, sizeof name, "d%d/e/f%d", i % 70, i);
		nameset_add(&s, name);
	}
	CHECK(nameset_has(&s, "d0") && nameset_has(&s, "d69/e") && nameset_has(&s, "d0/e/f0"));
	CHECK(!nameset_has(&s, "d70") && !nameset_has(&s, "d0/e/f1") && !nameset_has(&s, ""));
	nameset_add(&s, "");
	CHECK(nameset_has(&s, ""));
	nameset_clear(&s);
	CHECK(!nameset_has(&s, "d0"));
	nameset_done(&s);
}
