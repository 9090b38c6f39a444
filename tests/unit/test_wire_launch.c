#include "wire/launch.h"

#include "test.h"

static struct launch_packet p;

static size_t size(void)
{
	return sizeof p.head + p.head.len;
}

static int order(size_t n, size_t n_fds)
{
	struct err e = { 0 };
	int r = launch_check_order(&p, n, n_fds, &e);

	if (r < 0) {
		CHECK_INT(e.kind, ERR_INVALID);
		CHECK(strncmp(e.msg, "launch: ", 8) == 0);
	}
	return r;
}

static int answer(size_t n, size_t n_fds)
{
	struct err e = { 0 };

	return launch_check_answer(&p, n, n_fds, &e);
}

/* ---- good ones ---------------------------------------------------------------------- */

static void good_make(void)
{
	static const char text[] = "/work\0sb_1";

	memset(&p, 0, sizeof p);
	p.make.uid = p.make.gid = LAUNCH_IDS_INSIDE_MAX;
	p.make.flags = LAUNCH_KEPT | LAUNCH_ROOTFUL | LAUNCH_NET;
	p.make.named = p.make.weaker = (1u << LAUNCH_LIMITS) - 1;
	p.make.limits[3] = LAUNCH_LIMIT_MAX;
	p.make.image = 9;
	p.make.n_mounts = 6;
	p.make.mounts[0] = (struct launch_mount){ .kind = LAUNCH_EPHEMERAL };
	p.make.mounts[1] = (struct launch_mount){ .kind = LAUNCH_RO, .ticket = 1, .at = 0 };
	p.make.mounts[2] = (struct launch_mount){ .kind = LAUNCH_OVERLAY, .ticket = ~0u, .at = 0 };
	p.make.mounts[3] =
	    (struct launch_mount){ .kind = LAUNCH_TREE, .tree = 1, .flags = LAUNCH_READ_ONLY };
	p.make.mounts[4] = (struct launch_mount){ .kind = LAUNCH_TREE, .tree = UINT64_MAX };
	p.make.mounts[5] =
	    (struct launch_mount){ .kind = LAUNCH_WORK, .tree = 2, .flags = LAUNCH_READ_ONLY };
	p.make.id = 6;
	p.make.text_len = sizeof text;
	memcpy(p.bytes + sizeof p.make, text, sizeof text);
	p.head =
	    (struct launch_head){ .type = L_MAKE, .len = sizeof p.make + sizeof text, .tag = 1 };
}

static void good_open(void)
{
	memset(&p, 0, sizeof p);
	p.open = (struct launch_open){ .want = LAUNCH_FILE, .path_len = 5 };
	memcpy(p.bytes + sizeof p.open, "/usr", 5);
	p.head = (struct launch_head){ .type = L_OPEN, .len = sizeof p.open + 5 };
}

static void good_clean(void)
{
	memset(&p, 0, sizeof p);
	p.slot.slot = LAUNCH_SLOTS - 1;
	p.head = (struct launch_head){ .type = L_CLEAN, .len = sizeof p.slot };
}

static void good_made(void)
{
	memset(&p, 0, sizeof p);
	p.made = (struct launch_made){ .slot = 0, .pid = 1, .name = "0-ab.sock" };
	p.head = (struct launch_head){ .type = L_MADE, .len = sizeof p.made };
}

static void good_opened(void)
{
	memset(&p, 0, sizeof p);
	p.opened = (struct launch_opened){ .ticket = 1, .is_dir = 1 };
	p.head = (struct launch_head){ .type = L_OPENED, .len = sizeof p.opened };
}

static void good_hosted(void)
{
	memset(&p, 0, sizeof p);
	p.host = (struct launch_host){
		.is_root = 1, .net_error = 4095, .by = { 2, 1 }, .release = "6.1"
	};
	p.head = (struct launch_head){ .type = L_HOSTED, .len = sizeof p.host };
}

static void good_failed(void)
{
	memset(&p, 0, sizeof p);
	p.err = (struct err){ .kind = ERR_INTERNAL, .msg = "why" };
	p.head = (struct launch_head){ .type = L_FAILED, .len = sizeof p.err };
}

static void good_gone(void)
{
	memset(&p, 0, sizeof p);
	p.gone = (struct launch_gone){ .slot = 4094, .pid = 7, .status = 9, .name = "x" };
	p.head = (struct launch_head){ .type = L_GONE, .len = sizeof p.gone };
}

static void good_done(void)
{
	memset(&p, 0, sizeof p);
	p.head = (struct launch_head){ .type = L_DONE, .len = sizeof p.done };
}

static void good_vault(void)
{
	memset(&p, 0, sizeof p);
	p.vault = (struct vault_open){ .workspace = 5,
		                       .top = 6,
		                       .n_layers = VAULT_LAYERS_MAX,
		                       .flags = VAULT_BOUNDED,
		                       .bytes = 1 };
	p.head = (struct launch_head){ .type = L_VAULT, .len = sizeof p.vault };
}

static void good_vaulted(void)
{
	memset(&p, 0, sizeof p);
	p.head = (struct launch_head){ .type = L_VAULTED };
}

static void good_gated(void)
{
	memset(&p, 0, sizeof p);
	p.head = (struct launch_head){ .type = L_GATED };
}

static void empty(enum launch_type type)
{
	memset(&p, 0, sizeof p);
	p.head = (struct launch_head){ .type = type };
}

static const struct {
	void (*fill)(void);
	size_t fds;
	bool is_order;
} good[] = {
	{ good_make, 0, true },     { good_open, 0, true },    { good_open, 1, true },
	{ good_clean, 0, true },    { good_made, 1, false },   { good_opened, 1, false },
	{ good_hosted, 0, false },  { good_failed, 0, false }, { good_gone, 0, false },
	{ good_done, 0, false },    { good_gated, 1, false },  { good_vault, 0, true },
	{ good_vaulted, 1, false },
};

TEST(good_ones_pass_in_their_direction_only)
{
	for (size_t i = 0; i < COUNT(good); i++) {
		good[i].fill();
		printf("# type %u\n", p.head.type);
		CHECK_INT(order(size(), good[i].fds), good[i].is_order ? 0 : -1);
		CHECK_INT(answer(size(), good[i].fds), good[i].is_order ? -1 : 0);
	}
	static const enum launch_type bare[] = { L_SWEEP, L_HOST, L_GATE, L_READY };
	for (size_t i = 0; i < COUNT(bare); i++) {
		empty(bare[i]);
		CHECK_INT(order(size(), 0), 0);
		CHECK_INT(answer(size(), 0), -1);
	}
}

TEST(every_other_length_is_refused)
{
	for (size_t i = 0; i < COUNT(good); i++) {
		good[i].fill();
		size_t whole = size();

		for (size_t n = 0; n < whole + 64; n++) {
			good[i].fill();
			CHECK(n == whole || order(n, good[i].fds) < 0);
			CHECK(n == whole || answer(n, good[i].fds) < 0);
			if (n < sizeof p.head || n == whole)
				continue;
			p.head.len = (uint32_t)(n - sizeof p.head); /* and says so */
			CHECK(order(n, good[i].fds) < 0);
			CHECK(answer(n, good[i].fds) < 0);
		}
	}
}

TEST(a_wrong_number_of_descriptors_is_refused)
{
	for (size_t i = 0; i < COUNT(good); i++) {
		good[i].fill();
		for (size_t n = 0; n < 5; n++) {
			bool is_right = n == good[i].fds || (p.head.type == L_OPEN && n < 2);
			int r = good[i].is_order ? order(size(), n) : answer(size(), n);

			CHECK_INT(r, is_right ? 0 : -1);
		}
	}
}

TEST(unknown_types_are_refused)
{
	static const uint32_t types[] = { L_TYPES, L_TYPES + 1, 0x7fffffff, 0x80000000, ~0u };

	for (size_t i = 0; i < COUNT(types); i++) {
		empty(L_HOST);
		p.head.type = types[i];
		CHECK_INT(order(size(), 0), -1);
		CHECK_INT(answer(size(), 0), -1);
	}
	empty(L_HOST);
	p.head.zero = 1;
	CHECK_INT(order(size(), 0), -1);
}

/* ---- every field out of range ---------------------------------------------------------- */

struct wrong {
	void (*fill)(void);
	size_t offset; /* in the body */
	uint32_t value;
};

static void place_first(const char *at)
{
	size_t n = strlen(at) + 1;

	good_make();
	p.make.n_mounts = 1;
	p.make.mounts[0].at = 0;
	p.make.id = 0;
	p.make.text_len = (uint32_t)n;
	memcpy(p.bytes + sizeof p.make, at, n);
	p.head.len = (uint32_t)(sizeof p.make + n);
}

TEST(a_mount_point_is_absolute_and_has_plain_names)
{
	static const struct {
		const char *at;
		int r;
	} rows[] = {
		{ "/work", 0 },       { "/a/b.c/..d/...", 0 }, { "work", -1 },   { "", -1 },
		{ "/", -1 },          { "//etc/shadow", -1 },  { "/a//b", -1 },  { "/a/", -1 },
		{ "/../../etc", -1 }, { "/a/..", -1 },         { "/./etc", -1 }, { "..", -1 },
		{ "/a/.", -1 },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct err e = { 0 };

		place_first(rows[i].at);
		CHECK_INT(launch_check_order(&p, sizeof p.head + p.head.len, 0, &e), rows[i].r);
	}
}

#define MAKE(field) good_make, offsetof(struct launch_make, field)
#define MOUNT(i, field) good_make, offsetof(struct launch_make, mounts[i].field)

static const struct wrong wrongs[] = {
	{ MAKE(named), 1u << LAUNCH_LIMITS },
	{ MAKE(weaker), 1u << 31 },
	{ MAKE(flags), LAUNCH_MAKE_FLAGS + 1 },
	{ MAKE(flags), ~0u },
	{ MAKE(uid), LAUNCH_IDS_INSIDE_MAX + 1 },
	{ MAKE(gid), ~0u },
	{ MAKE(id), 11 },
	{ MAKE(id), ~0u },
	{ MAKE(n_mounts), FS_ENTRIES_MAX + 1 },
	{ MAKE(n_mounts), ~0u },
	{ MAKE(text_len), 0 },
	{ MAKE(text_len), 10 },
	{ MAKE(text_len), 12 },
	{ MAKE(text_len), LAUNCH_TEXT_MAX + 1 },
	{ MAKE(text_len), ~0u },
	{ MAKE(zero), 1 },
	{ MAKE(limits) + 4, 0x01000001 }, /* high half: 2^56 and more */
	{ MAKE(limits) + 76, ~0u },
	{ MOUNT(0, kind), LAUNCH_MOUNT_KINDS },
	{ MOUNT(2, kind), ~0u },
	{ MOUNT(0, ticket), 1 },
	{ MOUNT(1, ticket), 0 },
	{ MOUNT(2, ticket), 0 },
	{ MOUNT(3, ticket), 1 },
	{ MOUNT(0, tree), 1 },
	{ MOUNT(1, tree) + 4, 1 },
	{ MOUNT(2, tree), 1 },
	{ MOUNT(3, tree), 0 },
	{ MOUNT(0, flags), LAUNCH_READ_ONLY },
	{ MOUNT(1, flags), LAUNCH_READ_ONLY },
	{ MOUNT(2, flags), LAUNCH_READ_ONLY },
	{ MOUNT(3, flags), LAUNCH_READ_ONLY << 1 },
	{ MOUNT(4, flags), ~0u },
	{ MOUNT(4, kind), LAUNCH_WORK }, /* a second one */
	{ MOUNT(5, tree), 0 },
	{ MOUNT(5, ticket), 1 },
	{ MOUNT(5, flags), LAUNCH_READ_ONLY << 1 },
	{ good_vault, offsetof(struct vault_open, id_base), 1 },
	{ good_vault, offsetof(struct vault_open, n_ids), 65535 },
	{ good_vault, offsetof(struct vault_open, flags), VAULT_ROOTLESS },
	{ good_vault, offsetof(struct vault_open, n_layers), VAULT_LAYERS_MAX + 1 },
	{ good_vault, offsetof(struct vault_open, ids_of), 5 }, /* its own */
	{ MAKE(image_tree), 1 },                                /* and a ticket */
	{ MAKE(root), 1 },
	{ MOUNT(0, at), 11 },
	{ MOUNT(2, at), ~0u },
	{ good_open, offsetof(struct launch_open, want), LAUNCH_WANTS },
	{ good_open, offsetof(struct launch_open, path_len), 4 },
	{ good_open, offsetof(struct launch_open, path_len), 6 },
	{ good_open, offsetof(struct launch_open, path_len), ~0u },
	{ good_clean, 0, LAUNCH_SLOTS },
	{ good_clean, 0, ~0u },
	{ good_clean, 0, 0x80000000 },
	{ good_made, offsetof(struct launch_made, slot), LAUNCH_SLOTS },
	{ good_made, offsetof(struct launch_made, pid), 0 },
	{ good_made, offsetof(struct launch_made, name), 0 },
	{ good_opened, offsetof(struct launch_opened, ticket), 0 },
	{ good_opened, offsetof(struct launch_opened, is_dir), 2 },
	{ good_hosted, offsetof(struct launch_host, is_root), 2 },
	{ good_hosted, offsetof(struct launch_host, by), 3 },
	{ good_hosted, offsetof(struct launch_host, net_error), 4096 },
	{ good_failed, offsetof(struct err, kind), ERR_NONE },
	{ good_failed, offsetof(struct err, kind), ERR_INTERNAL + 1 },
	{ good_gone, offsetof(struct launch_gone, slot), ~0u },
	{ good_gone, offsetof(struct launch_gone, pid), ~0u },
};

TEST(a_field_out_of_range_is_refused)
{
	for (size_t i = 0; i < COUNT(wrongs); i++) {
		wrongs[i].fill();
		size_t fds = p.head.type == L_MADE || p.head.type == L_OPENED;

		memcpy(p.bytes + wrongs[i].offset, &wrongs[i].value, sizeof wrongs[i].value);
		printf("# row %zu\n", i);
		CHECK_INT(p.head.type <= L_READY ? order(size(), fds) : answer(size(), fds), -1);
	}
}

TEST(text_ends_with_a_nul_and_a_path_has_only_one)
{
	good_make();
	p.bytes[p.head.len - 1] = 'x';
	CHECK_INT(order(size(), 0), -1);

	good_open();
	p.bytes[p.head.len - 1] = 'x';
	CHECK_INT(order(size(), 0), -1);
	good_open();
	p.bytes[p.head.len - 3] = '\0';
	CHECK_INT(order(size(), 0), -1);
	good_open();
	p.bytes[sizeof p.open] = 'u'; /* relative */
	CHECK_INT(order(size(), 0), -1);

	good_made();
	memset(p.made.name, 'x', sizeof p.made.name);
	CHECK_INT(answer(size(), 1), -1);
	good_gone();
	memcpy(p.gone.name, "../x", 5);
	CHECK_INT(answer(size(), 0), -1);
	good_hosted();
	memset(p.host.release, '6', sizeof p.host.release);
	CHECK_INT(answer(size(), 0), -1);
	good_failed();
	memset(p.err.msg, 'x', sizeof p.err.msg);
	CHECK_INT(answer(size(), 0), -1);
}

TEST(the_longest_of_all_fit)
{
	good_make();
	memset(p.bytes + sizeof p.make + strlen("/work") + 1, 'x',
	       LAUNCH_TEXT_MAX - strlen("/work") - 2);
	p.bytes[sizeof p.make + LAUNCH_TEXT_MAX - 1] = '\0';
	p.make.text_len = LAUNCH_TEXT_MAX;
	p.head.len = sizeof p.make + LAUNCH_TEXT_MAX;
	CHECK_INT(order(size(), 0), 0);
	CHECK_INT(size(), sizeof p);

	good_open();
	memset(p.bytes + sizeof p.open, '/', PATH_TEXT_MAX);
	p.bytes[sizeof p.open + PATH_TEXT_MAX - 1] = '\0';
	p.open.path_len = PATH_TEXT_MAX;
	p.head.len = sizeof p.open + PATH_TEXT_MAX;
	CHECK_INT(order(size(), 0), 0);
	p.open.path_len++;
	p.head.len++;
	CHECK_INT(order(size(), 0), -1);
}
