#include "apply/plan.h"

#include "test.h"

TEST(names)
{
	static const struct {
		const char *path;
		bool is_good;
	} rows[] = {
		{ "a", true },
		{ "a/b", true },
		{ ".git/x", true },
		{ "a\xff/\n", true },
		{ "...", true },
		{ "..a", true },
		{ "", false },
		{ "/a", false },
		{ "a/", false },
		{ "a//b", false },
		{ ".", false },
		{ "..", false },
		{ "a/../b", false },
		{ "a/.", false },
		{ "a/..", false },
		{ ".caisson-apply.00", false },
		{ "x/.CAISSON-apply.1/n0", false },
		{ "x/.cai\xe2\x81\xa0sson-apply.1/n0", false },
		{ ".caisson-apply", true },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		printf("# %s\n", rows[i].path);
		CHECK_INT(apply_path_is(rows[i].path), rows[i].is_good);
	}
}

/* base, head and host in three words: f a file, x an executable one, s setuid, l a link, d a
 * folder, o something else, - nothing, b blocked, e elsewhere; then which bytes the host has: =
 * base, > head, * both, ! neither. */
static enum node_type type_of(char c)
{
	static const struct {
		char letter;
		enum node_type type;
	} letters[] = {
		{ '-', NODE_NONE },      { 'f', NODE_FILE },  { 'x', NODE_FILE },
		{ 's', NODE_FILE },      { 'l', NODE_LINK },  { 'm', NODE_LINK },
		{ 'd', NODE_DIR },       { 'o', NODE_OTHER }, { 'b', NODE_BLOCKED },
		{ 'e', NODE_ELSEWHERE },
	};

	for (size_t i = 0; i < COUNT(letters); i++)
		if (letters[i].letter == c)
			return letters[i].type;
	CHECK(false);
	return NODE_NONE;
}

static struct apply_node node_of(char c)
{
	return (struct apply_node){ .type = type_of(c),
		                    .mode = c == 'x'   ? 0755
		                            : c == 's' ? 04755
		                                       : 0644,
		                    .target = c == 'l'   ? "l"
		                              : c == 'm' ? "m"
		                                         : NULL };
}

TEST(one_name_decided)
{
	static const struct {
		const char *what;
		enum apply_act act;
		mode_t mode;
	} rows[] = {
		{ "-f-!", ACT_CREATE, 0640 },   { "-x-!", ACT_CREATE, 0750 },
		{ "-s-!", ACT_CREATE, 0750 },   { "-l-!", ACT_CREATE, 0 },
		{ "-ff>", ACT_NONE, 0 },        { "-ff!", ACT_CONFLICT, 0 },
		{ "-fx>", ACT_CONFLICT, 0 },    { "-fl!", ACT_CONFLICT, 0 },
		{ "-fd!", ACT_CONFLICT, 0 },    { "-fo!", ACT_CONFLICT, 0 },
		{ "-fb!", ACT_CONFLICT, 0 },    { "-fe!", ACT_CONFLICT, 0 },
		{ "-d-!", ACT_MKDIR, 0 },       { "-dd!", ACT_NONE, 0 },
		{ "-df!", ACT_CONFLICT, 0 },    { "-o-!", ACT_LEAVE, 0 },
		{ "o--!", ACT_LEAVE, 0 },       { "fff=", ACT_REPLACE, 0644 },
		{ "fff>", ACT_NONE, 0 },        { "fff!", ACT_MERGE, 0644 },
		{ "ffx=", ACT_REPLACE, 0755 },  { "ffx>", ACT_NONE, 0 },
		{ "ffx!", ACT_MERGE, 0755 },    { "fxf=", ACT_REPLACE, 0755 },
		{ "fxf>", ACT_MODE, 0755 },     { "fxf*", ACT_MODE, 0755 },
		{ "fxx*", ACT_NONE, 0 },        { "xfx=", ACT_REPLACE, 0644 },
		{ "xff*", ACT_NONE, 0 },        { "fsf*", ACT_MODE, 0755 },
		{ "xsx*", ACT_NONE, 0 },        { "xsx=", ACT_REPLACE, 0755 },
		{ "xss=", ACT_REPLACE, 0755 },  { "xxs=", ACT_REPLACE, 0755 },
		{ "xxs!", ACT_MERGE, 0755 },    { "sxs*", ACT_NONE, 0 },
		{ "xfs>", ACT_MODE, 04644 },    { "ff-!", ACT_CONFLICT, 0 },
		{ "ffd!", ACT_CONFLICT, 0 },    { "ffl!", ACT_CONFLICT, 0 },
		{ "f-f=", ACT_DELETE, 0 },      { "f-f!", ACT_CONFLICT, 0 },
		{ "f-x=", ACT_CONFLICT, 0 },    { "f--!", ACT_NONE, 0 },
		{ "f-d!", ACT_CONFLICT, 0 },    { "f-b!", ACT_NONE, 0 },
		{ "l-l!", ACT_DELETE, 0 },      { "l-m!", ACT_CONFLICT, 0 },
		{ "lml!", ACT_REPLACE, 0 },     { "lmm!", ACT_NONE, 0 },
		{ "lmf!", ACT_CONFLICT, 0 },    { "lfl!", ACT_REPLACE, 0640 },
		{ "flf=", ACT_REPLACE, 0 },     { "flf!", ACT_CONFLICT, 0 },
		{ "fdf=", ACT_TO_DIR, 0 },      { "fdf!", ACT_CONFLICT, 0 },
		{ "fd-!", ACT_MKDIR, 0 },       { "ldl!", ACT_TO_DIR, 0 },
		{ "dfd!", ACT_FROM_DIR, 0640 }, { "df-!", ACT_CREATE, 0640 },
		{ "dfl!", ACT_CONFLICT, 0 },    { "d-d!", ACT_RMDIR, 0 },
		{ "d-f!", ACT_CONFLICT, 0 },    { "d--!", ACT_NONE, 0 },
		{ "ddd!", ACT_NONE, 0 },        { "dd-!", ACT_NONE, 0 },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		const char *w = rows[i].what;
		struct apply_entry e = { .path = "p",
			                 .base = node_of(w[0]),
			                 .head = node_of(w[1]),
			                 .host = node_of(w[2]),
			                 .has_base_bytes = w[3] == '=' || w[3] == '*',
			                 .has_head_bytes = w[3] == '>' || w[3] == '*',
			                 .is_mode_only = w[3] == '*' };
		const struct apply_change c = { &e, 1 };

		printf("# %s\n", w);
		apply_decide(&c, &e, 027);
		CHECK_STR(apply_act_name(e.act), apply_act_name(rows[i].act));
		CHECK_INT(e.act, rows[i].act);
		CHECK((e.why != NULL) == (e.act == ACT_CONFLICT || e.act == ACT_LEAVE));
		if (apply_act_writes(e.act) && e.head.type == NODE_FILE)
			CHECK_INT(e.mode, rows[i].mode);
	}
}

TEST(the_mode_of_the_folder_counts)
{
	struct apply_entry e = { .path = "p",
		                 .base = { NODE_FILE, 0644, NULL },
		                 .head = { NODE_FILE, 0755, NULL },
		                 .host = { NODE_FILE, 0100640, NULL },
		                 .has_base_bytes = true };
	const struct apply_change c = { &e, 1 };

	apply_decide(&c, &e, 022);
	CHECK_INT(e.act, ACT_REPLACE);
	CHECK_INT(e.mode, 0750);
}

TEST(a_file_that_gives_way_to_a_folder_clears_the_way)
{
	struct apply_entry all[] = {
		{ .path = "a",
		  .base = { NODE_FILE, 0644, NULL },
		  .head = { NODE_DIR, 0755, NULL },
		  .host = { NODE_FILE, 0644, NULL },
		  .has_base_bytes = true },
		{ .path = "a/b/c",
		  .head = { NODE_FILE, 0644, NULL },
		  .host = { NODE_BLOCKED, 0, NULL } },
		{ .path = "x/b",
		  .head = { NODE_FILE, 0644, NULL },
		  .host = { NODE_BLOCKED, 0, NULL } },
	};
	const struct apply_change c = { all, COUNT(all) };

	for (size_t i = 0; i < COUNT(all); i++)
		apply_decide(&c, &all[i], 022);
	CHECK_INT(all[0].act, ACT_TO_DIR);
	CHECK_INT(all[1].act, ACT_CREATE);
	CHECK_INT(all[2].act, ACT_CONFLICT);
	CHECK(apply_find(&c, "a/b/c") == &all[1] && !apply_find(&c, "a/b"));
}

TEST(steps_have_an_order)
{
	static const struct {
		enum op_kind kind;
		const char *path;
	} want[] = {
		{ OP_REMOVE, "d/x" },   { OP_REMOVE, "t" },   { OP_RMDIR, "f" },
		{ OP_RMDIR, "d/e" },    { OP_RMDIR, "d" },    { OP_MKDIR, "n" },
		{ OP_MKDIR, "n/m" },    { OP_MKDIR, "t" },    { OP_CREATE, "f" },
		{ OP_CREATE, "n/m/a" }, { OP_CREATE, "t/y" }, { OP_REPLACE, "r" },
		{ OP_REPLACE, "s" },    { OP_MODE, "m" },
	};
	struct apply_entry all[] = {
		{ .path = "d", .act = ACT_RMDIR },    { .path = "d/e", .act = ACT_RMDIR },
		{ .path = "d/x", .act = ACT_DELETE }, { .path = "f", .act = ACT_FROM_DIR },
		{ .path = "k", .act = ACT_NONE },     { .path = "l", .act = ACT_LEAVE },
		{ .path = "m", .act = ACT_MODE },     { .path = "n/m/a", .act = ACT_CREATE },
		{ .path = "r", .act = ACT_REPLACE },  { .path = "s", .act = ACT_MERGE },
		{ .path = "t", .act = ACT_TO_DIR },   { .path = "t/y", .act = ACT_CREATE },
	};
	const struct apply_change c = { all, COUNT(all) };
	struct apply_ops ops = { 0 };

	apply_steps(&c, 022, &ops);
	CHECK_INT(ops.list.len, COUNT(want));
	for (size_t i = 0; i < ops.list.len && i < COUNT(want); i++) {
		CHECK_STR(ops.list.at[i].path, want[i].path);
		CHECK_INT(ops.list.at[i].kind, want[i].kind);
		CHECK_INT(ops.list.at[i].is_needed,
		          want[i].kind == OP_RMDIR && want[i].path[0] == 'f');
	}
	apply_ops_done(&ops);
}
