#include "spec/opts.h"

int number_parse(const struct opt *o, const json_t *v, uint64_t *out, struct err *e)
{
	const struct limit_rule *rule = &o->limit;
	char number[24], bound[32];
	uint64_t value = 0;
	const char *text = scalar_text(v, number);

	if (json_is_real(v) && rule->unit == &unit_cores) {
		snprintf(number, sizeof number, "%.15g", json_real_value(v));
		text = number;
	}
	if (!text)
		return wrong_type(o->forms, v, e);
	if (rule->unit->parse(text, &value, e) < 0)
		return -1;
	bool is_small = value < rule->min;

	rule->unit->print(is_small ? rule->min : rule->max, bound);
	if (is_small || value > rule->max)
		return err_new(e, ERR_INVALID, "\"%s\" is too %s %s", quote(text).text,
		               is_small ? "small, the least is" : "large, the most is", bound);
	*out = value;
	return 0;
}

static int limit_set(struct input *in, const struct opt *o, void *into, json_t *v, struct err *e)
{
	struct spec *s = into;
	uint64_t value = 0;

	(void)in;
	if (number_parse(o, v, &value, e) < 0)
		return -1;
	s->limits[o->limit.id] = (struct limit){ .value = value, .named = true };
	return 0;
}

static json_t *limit_get(const struct opt *o, const void *from)
{
	const struct spec *s = from;
	uint64_t value = s->limits[o->limit.id].value;

	if (value == 0)
		return NULL;
	if (o->limit.unit == &unit_cores)
		return json_real((double)value / 1000);
	return json_integer((json_int_t)value);
}

static const struct opt_type opt_limit = {
	.wants = "a number",
	.set = limit_set,
	.get = limit_get,
};
/* What people write; the same limit is printed in milliseconds by the row with _ms. */
static const struct opt_type opt_duration = { .wants = "a duration", .set = limit_set };

#define KIB(n) ((uint64_t)(n) << 10)
#define MIB(n) ((uint64_t)(n) << 20)
#define TIB(n) ((uint64_t)(n) << 40)
#define YEAR_MS (365ull * 86400000)

#define CORES "a number of cores: `2`, `1.5`"
#define SIZE "bytes or a size: `4g`"
#define WHOLE "a whole number"
#define DURATION "seconds or a duration: `10m`"
#define MILLISECONDS "a whole number of milliseconds"

/*
 * Bounds that the kernel sets: a cpu quota has at least 1 ms of 100, pid_max ends at 2^22,
 * RLIMIT_NOFILE at fs.nr_open (2^20 unless changed); below 4 MiB no program starts. The others
 * only keep a slip of the keyboard out.
 */
/* clang-format off */
static const struct opt rows[] = {
	{ .key = "cpu", .flag = "cpu", .arg = "CORES", .dflt = "2", .weaker = true,
	  .type = &opt_limit, .limit = { LIMIT_CPU, &unit_cores, 10, 4096000 },
	  .forms = CORES, .help = "processor time, in cores" },
	{ .key = "mem", .flag = "mem", .arg = "SIZE", .dflt = "4g", .weaker = true,
	  .type = &opt_limit, .limit = { LIMIT_MEM, &unit_size, MIB(4), TIB(1024) },
	  .forms = SIZE, .help = "memory with page cache and tmpfs, no swap" },
	{ .key = "disk", .flag = "disk", .arg = "SIZE", .dflt = "2g", .weaker = true,
	  .type = &opt_limit, .limit = { LIMIT_DISK, &unit_size, MIB(1), TIB(1024) },
	  .forms = SIZE, .help = "scratch space, at most mem; half of mem if that is less" },
	{ .key = "inodes", .flag = "inodes", .arg = "N", .dflt = "262144", .weaker = true,
	  .type = &opt_limit, .limit = { LIMIT_INODES, &unit_count, 64, 1ull << 32 },
	  .forms = WHOLE, .help = "files and folders in the scratch space" },
	{ .key = "pids", .flag = "pids", .arg = "N", .dflt = "512", .weaker = true,
	  .type = &opt_limit, .limit = { LIMIT_PIDS, &unit_count, 1, 1u << 22 },
	  .forms = WHOLE, .help = "processes and threads at once" },
	{ .key = "wall", .flag = "wall", .arg = "TIME", .weaker = true,
	  .type = &opt_duration, .limit = { LIMIT_WALL, &unit_duration, 1, YEAR_MS },
	  .forms = DURATION, .help = "life of the sandbox from the first command on" },
	{ .key = "wall_ms", .twin = "wall",
	  .type = &opt_limit, .limit = { LIMIT_WALL, &unit_count, 1, YEAR_MS },
	  .forms = MILLISECONDS, .help = "the same in milliseconds, as it is printed" },
	{ .key = "idle", .flag = "idle", .arg = "TIME", .weaker = true,
	  .type = &opt_duration, .limit = { LIMIT_IDLE, &unit_duration, 1, YEAR_MS },
	  .forms = DURATION, .help = "life of the sandbox without output or input" },
	{ .key = "idle_ms", .twin = "idle",
	  .type = &opt_limit, .limit = { LIMIT_IDLE, &unit_count, 1, YEAR_MS },
	  .forms = MILLISECONDS, .help = "the same in milliseconds, as it is printed" },
	{ .key = "output", .flag = "output", .arg = "SIZE", .dflt = "64m", .weaker = true,
	  .type = &opt_limit, .limit = { LIMIT_OUTPUT, &unit_size, KIB(1), TIB(1) },
	  .forms = SIZE, .help = "what a command may write to stdout and stderr" },
	{ .key = "files", .flag = "files", .arg = "N", .dflt = "65536", .weaker = true,
	  .type = &opt_limit, .limit = { LIMIT_FILES, &unit_count, 16, 1u << 20 },
	  .forms = WHOLE, .help = "open descriptors of a process" },
	{ .key = "io", .flag = "io", .arg = "SIZE", .weaker = true,
	  .type = &opt_limit, .limit = { LIMIT_IO, &unit_size, KIB(4), TIB(1) },
	  .forms = SIZE, .help = "bytes per second from and to block devices" },
};
/* clang-format on */
const struct opt_table limit_table = { rows, COUNT(rows) };

const struct opt *opt_by_limit(enum limit_id id)
{
	const struct opt *o = rows;

	while (o->limit.id != id || !o->flag)
		o++;
	return o;
}

const char *limit_name(enum limit_id id)
{
	return opt_by_limit(id)->flag;
}

void limit_text(enum limit_id id, uint64_t value, char out[32])
{
	opt_by_limit(id)->limit.unit->print(value, out);
}
