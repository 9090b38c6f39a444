#include "spec/opts.h"

static int limit_set(struct input *in, const struct opt *o, void *into, json_t *v, struct err *e)
{
	const struct limit_rule *rule = &o->limit;
	struct spec *s = into;
	char number[24], bound[32];
	uint64_t value = 0;

	(void)in;
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
	s->limits[rule->id] = (struct limit){ .value = value, .named = true };
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

static const struct opt_type opt_limit = { .wants = "a number",
	                                   .set = limit_set,
	                                   .get = limit_get };
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
 * The bounds, where the kernel sets them: a cpu quota has at least 1 ms of 100; page tables and the
 * first pages of a program need about 4 MiB; pid_max ends at 2^22; RLIMIT_NOFILE ends at
 * fs.nr_open, 2^20 unless changed. The others only keep a slip of the keyboard out.
 */
/* clang-format off */
static const struct opt rows[] = {
	{ .key = "cpu", .flag = "cpu", .arg = "CORES", .dflt = "2", .type = &opt_limit, .forms = CORES, .weaker = true,
	  .help = "processor time, in cores",
	  .limit = { LIMIT_CPU, &unit_cores, 10, 4096 * 1000 } },
	{ .key = "mem", .flag = "mem", .arg = "SIZE", .dflt = "4g", .type = &opt_limit, .forms = SIZE, .weaker = true,
	  .help = "memory with page cache and tmpfs, no swap",
	  .limit = { LIMIT_MEM, &unit_size, MIB(4), TIB(1024) } },
	{ .key = "disk", .flag = "disk", .arg = "SIZE", .dflt = "2g", .type = &opt_limit, .forms = SIZE, .weaker = true,
	  .help = "scratch space, at most mem; half of mem when that is less than the default",
	  .limit = { LIMIT_DISK, &unit_size, MIB(1), TIB(1024) } },
	{ .key = "inodes", .flag = "inodes", .arg = "N", .dflt = "262144", .type = &opt_limit, .forms = WHOLE, .weaker = true,
	  .help = "files and folders in the scratch space",
	  .limit = { LIMIT_INODES, &unit_count, 64, 1ull << 32 } },
	{ .key = "pids", .flag = "pids", .arg = "N", .dflt = "512", .type = &opt_limit, .forms = WHOLE, .weaker = true,
	  .help = "processes and threads at once",
	  .limit = { LIMIT_PIDS, &unit_count, 1, 1u << 22 } },
	{ .key = "wall", .flag = "wall", .arg = "TIME", .type = &opt_duration, .forms = DURATION, .weaker = true,
	  .help = "life of the sandbox from the first command on",
	  .limit = { LIMIT_WALL, &unit_duration, 1, YEAR_MS } },
	{ .key = "wall_ms", .twin = "wall", .type = &opt_limit, .forms = MILLISECONDS,
	  .help = "the same in milliseconds, as it is printed",
	  .limit = { LIMIT_WALL, &unit_count, 1, YEAR_MS } },
	{ .key = "idle", .flag = "idle", .arg = "TIME", .type = &opt_duration, .forms = DURATION, .weaker = true,
	  .help = "life of the sandbox without output or input",
	  .limit = { LIMIT_IDLE, &unit_duration, 1, YEAR_MS } },
	{ .key = "idle_ms", .twin = "idle", .type = &opt_limit, .forms = MILLISECONDS,
	  .help = "the same in milliseconds, as it is printed",
	  .limit = { LIMIT_IDLE, &unit_count, 1, YEAR_MS } },
	{ .key = "output", .flag = "output", .arg = "SIZE", .dflt = "64m", .type = &opt_limit, .forms = SIZE, .weaker = true,
	  .help = "what a command may write to stdout and stderr",
	  .limit = { LIMIT_OUTPUT, &unit_size, KIB(1), TIB(1) } },
	{ .key = "files", .flag = "files", .arg = "N", .dflt = "65536", .type = &opt_limit, .forms = WHOLE, .weaker = true,
	  .help = "open descriptors of a process",
	  .limit = { LIMIT_FILES, &unit_count, 16, 1u << 20 } },
	{ .key = "io", .flag = "io", .arg = "SIZE", .type = &opt_limit, .forms = SIZE, .weaker = true,
	  .help = "bytes per second from and to block devices",
	  .limit = { LIMIT_IO, &unit_size, KIB(4), TIB(1) } },
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
