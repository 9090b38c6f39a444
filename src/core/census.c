#include "core/census.h"

#include <jansson.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "core/trees.h"
#include "core/workspace-internal.h"
#include "os/file.h"

#define TEXT_MAX (512u << 20)
#define YOUNG_SHARE 5 /* nobody can keep the disk busy by asking how busy it is */

struct census_op {
	struct census_op *next;
	struct core *core;
	int fd;
	uint64_t begun_ms;
	census_done_fn *done;
	void *arg;
};

/* ---- from text ----------------------------------------------------------------------- */

static uint64_t number(const json_t *o, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(o, key));
}

static bool truth(const json_t *o, const char *key)
{
	return json_is_true(json_object_get(o, key));
}

static void add_tree(struct census *c, uint64_t num, const json_t *o)
{
	vec_push(&c->trees, (struct census_tree){ num, number(o, "bytes"), number(o, "files"),
	                                          truth(o, "sealed"), truth(o, "half") });
}

static void add_volume(struct census *c, uint64_t num, const json_t *o)
{
	vec_push(&c->volumes, (struct census_volume){ num, number(o, "bytes") });
}

static void add_point(struct census *c, uint64_t num, const json_t *o)
{
	vec_push(&c->points,
	         (struct census_point){ num, number(o, "workspace"), truth(o, "broken") });
}

static void add_holder(struct census *c, uint64_t num, const json_t *o)
{
	vec_push(&c->holders,
	         (struct census_holder){ num, number(o, "kept"), number(o, "shared") });
}

/* The first member that a line has says what it is; a checkpoint has a workspace too. */
static void add_line(struct census *c, const json_t *o)
{
	static const struct {
		const char *key;
		void (*add)(struct census *c, uint64_t num, const json_t *o);
	} kinds[] = { { "tree", add_tree },
		      { "volume", add_volume },
		      { "checkpoint", add_point },
		      { "workspace", add_holder } };

	c->n_strays += json_object_get(o, "stray") != NULL;
	for (size_t i = 0; i < COUNT(kinds); i++) {
		if (!json_object_get(o, kinds[i].key))
			continue;
		kinds[i].add(c, number(o, kinds[i].key), o);
		return;
	}
}

static int by_num(const void *a, const void *b)
{
	uint64_t x, y;

	memcpy(&x, a, sizeof x);
	memcpy(&y, b, sizeof y);
	return (x > y) - (x < y);
}

#define SORT(v)                                                                                    \
	do {                                                                                       \
		if ((v)->len > 1)                                                                  \
			qsort((v)->at, (v)->len, sizeof *(v)->at, by_num);                         \
	} while (0)

void census_read(struct census *out, const char *text, size_t len)
{
	for (size_t at = 0; at < len;) {
		const char *end = memchr(text + at, '\n', len - at);
		size_t n = end ? (size_t)(end - text) - at : len - at;
		json_t *o = json_loadb(text + at, n, 0, NULL);

		add_line(out, o);
		json_decref(o);
		at += n + 1;
	}
	SORT(&out->trees);
	SORT(&out->volumes);
	SORT(&out->points);
	SORT(&out->holders);
}

void census_done(struct census *census)
{
	vec_done(&census->trees);
	vec_done(&census->volumes);
	vec_done(&census->points);
	vec_done(&census->holders);
	*census = (struct census){ 0 };
}

#define FIND(census, list, num)                                                                    \
	((census) && (census)->list.len > 0                                                        \
	     ? bsearch(&(num), (census)->list.at, (census)->list.len, sizeof *(census)->list.at,   \
	               by_num)                                                                     \
	     : NULL)

const struct census_tree *census_tree(const struct census *census, uint64_t num)
{
	return FIND(census, trees, num);
}

const struct census_volume *census_volume(const struct census *census, uint64_t num)
{
	return FIND(census, volumes, num);
}

const struct census_point *census_point(const struct census *census, uint64_t num)
{
	return FIND(census, points, num);
}

const struct census_holder *census_holder(const struct census *census, uint64_t num)
{
	return FIND(census, holders, num);
}

/* Of its files, or of its root. */
static void add_use(const struct census *census, int64_t num, int64_t top, struct census_use *use)
{
	const struct census_tree *tree = census_tree(census, (uint64_t)top);
	const struct census_volume *volume = census_volume(census, (uint64_t)num);
	const struct census_holder *points = census_holder(census, (uint64_t)num);

	use->top += (tree ? tree->bytes : 0) + (volume ? volume->bytes : 0);
	use->files += tree ? tree->files : 0;
	use->is_volume |= volume != NULL;
	use->unique += points ? points->kept - points->shared : 0;
	use->shared += points ? points->shared : 0;
}

static uint64_t layer_bytes(const struct census *census, uint64_t num)
{
	const struct census_tree *layer = census_tree(census, num);

	return layer ? layer->bytes : 0;
}

struct census_use census_use(const struct census *census, const struct workspace_row *row)
{
	uint64_t layers[VAULT_LAYERS_MAX];
	struct census_use use = { 0 };

	add_use(census, row->num, row->top, &use);
	if (row->root_num)
		add_use(census, row->root_num, row->root_top, &use);
	int n = ws_layers(row->stack, layers);

	for (int i = 0; i < n; i++)
		use.layers += layer_bytes(census, layers[i]);
	use.layers += layer_bytes(census, (uint64_t)row->root_tree);
	use.unique += use.top;
	use.shared += use.layers;
	return use;
}

/* ---- of the keeper ------------------------------------------------------------------- */

static void op_free(struct census_op *o)
{
	struct census_op **at = &o->core->census_ops;

	while (*at != o)
		at = &(*at)->next;
	*at = o->next;
	fd_close(&o->fd);
	free(o);
}

static void fail(struct census_op *o, const struct err *e)
{
	struct fail f = { 0 };

	fail_err(&f, e);
	o->done(o->arg, NULL, &f);
	op_free(o);
}

static int read_text(struct census_op *o, struct census *out, struct err *e)
{
	struct stat st;

	if (fstat(o->fd, &st) < 0 || (uint64_t)st.st_size > TEXT_MAX)
		return err_new(e, ERR_LIMIT, "the census is too long");
	if (st.st_size == 0)
		return 0;
	char *text = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, o->fd, 0);
	if (text == MAP_FAILED)
		return err_sys(e, errno, "read the census");
	census_read(out, text, (size_t)st.st_size);
	munmap(text, (size_t)st.st_size);
	return 0;
}

static void counted(void *arg, const struct vault_done *d, const struct err *why)
{
	struct census_op *o = arg;
	struct core *c = o->core;
	struct census *census = mem_alloc(sizeof *census);
	struct err e = { 0 };

	*census = (struct census){ 0 };
	if (why || read_text(o, census, &e) < 0) {
		census_done(census);
		free(census);
		fail(o, why ? why : &e);
		return;
	}
	census->total = d->bytes;
	census->taken_ms = core_now_ms();
	census->took_ms = core_mono_ms() - o->begun_ms;
	if (c->census)
		census_done(c->census);
	free(c->census);
	c->census = census;
	o->done(o->arg, census, NULL);
	op_free(o);
}

void census_take(struct core *c, census_done_fn *done, void *arg)
{
	struct census_op *o = mem_alloc(sizeof *o);
	struct vault_packet p = { .head.type = V_CENSUS };

	*o = (struct census_op){ .next = c->census_ops,
		                 .core = c,
		                 .fd = memfd_create("census", MFD_CLOEXEC),
		                 .begun_ms = core_mono_ms(),
		                 .done = done,
		                 .arg = arg };
	c->census_ops = o;
	if (o->fd < 0) {
		struct err e = { 0 };

		err_sys(&e, errno, "make a file for the census");
		fail(o, &e);
		return;
	}
	trees_ask(c, &p, o->fd, counted, o);
}

void census_get(struct core *c, census_done_fn *done, void *arg)
{
	if (c->census &&
	    core_now_ms() - c->census->taken_ms < (int64_t)(c->census->took_ms * YOUNG_SHARE))
		done(arg, c->census, NULL);
	else
		census_take(c, done, arg);
}

void census_close(struct core *c)
{
	struct census_op *next;

	for (struct census_op *o = c->census_ops; o; o = next) {
		next = o->next;
		fd_close(&o->fd);
		free(o);
	}
	c->census_ops = NULL;
	if (c->census)
		census_done(c->census);
	free(c->census);
	c->census = NULL;
}
