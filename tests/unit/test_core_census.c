#include "core/census.h"

#include "store/workspaces.h"
#include "test.h"

static const char text[] =
    "{\"tree\":30,\"bytes\":4096,\"files\":2,\"sealed\":false,\"half\":false}\n"
    "{\"tree\":9,\"bytes\":100,\"files\":1,\"sealed\":true,\"half\":false}\n"
    "{\"stray\":\"trees\"}\n"
    "not JSON\n"
    "{\"volume\":7,\"bytes\":5000}\n"
    "{\"checkpoint\":21,\"workspace\":7,\"broken\":true}\n"
    "{\"checkpoint\":20,\"workspace\":7,\"broken\":false}\n"
    "{\"workspace\":7,\"kept\":900,\"shared\":300}\n"
    "{\"blobs\":3,\"bytes\":12288}\n"
    "{\"tree\":12,\"bytes\":7,\"files\":0,\"sealed\":true,\"half\":true}";

TEST(lines_are_found_by_their_numbers)
{
	struct census c = { 0 };

	census_read(&c, text, sizeof text - 1);
	CHECK_INT(c.trees.len, 3);
	CHECK_INT(c.n_strays, 1);
	CHECK_INT(census_tree(&c, 30)->bytes, 4096);
	CHECK(!census_tree(&c, 30)->is_sealed && census_tree(&c, 9)->is_sealed);
	CHECK(census_tree(&c, 12)->is_half);
	CHECK(!census_tree(&c, 10) && !census_tree(NULL, 9));
	CHECK_INT(census_volume(&c, 7)->bytes, 5000);
	CHECK(census_point(&c, 21)->is_broken && !census_point(&c, 20)->is_broken);
	CHECK(!census_point(&c, 22));
	CHECK_INT(census_holder(&c, 7)->shared, 300);
	census_done(&c);
	CHECK(!census_tree(&c, 30));
}

TEST(use_is_alone_or_shared)
{
	static const struct {
		struct workspace_row row;
		struct census_use use; /* top, unique, shared, layers, files */
	} rows[] = {
		{ { .num = 8, .top = 30, .stack = "[9,12]" }, { 4096, 4096, 107, 107, 2, false } },
		{ { .num = 7, .top = 31, .stack = "[1]" }, { 5000, 5600, 300, 0, 0, true } },
		{ { .num = 6, .top = 32, .stack = "[99]" }, { 0, 0, 0, 0, 0, false } },
	};
	struct census c = { 0 };

	census_read(&c, text, sizeof text - 1);
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct census_use use = census_use(&c, &rows[i].row);

		CHECK_INT(use.top, rows[i].use.top);
		CHECK_INT(use.unique, rows[i].use.unique);
		CHECK_INT(use.shared, rows[i].use.shared);
		CHECK_INT(use.layers, rows[i].use.layers);
		CHECK_INT(use.files, rows[i].use.files);
		CHECK_INT(use.is_volume, rows[i].use.is_volume);
		CHECK_INT(census_use(NULL, &rows[i].row).unique, 0);
	}
	census_done(&c);
}
