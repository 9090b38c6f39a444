/*
 * gen-filters.c - compiles src/engine/policy.h, src/gate/policy.h, src/cache/policy.h and
 * src/vault/policy.h into the programs that the kernel runs.
 *
 *     gen-filters OUT.h
 *
 * libseccomp knows the numbers of the calls; the programs are our own. They search the number
 * among ranges of numbers with the same verdict. A launch waits while the kernel translates the
 * program and then walks through it for each number that it knows, so programs are both small
 * and shallow; plan_one() weighs the one against the other.
 *
 * 1. A call that is allowed whatever its arguments are returns before any argument is loaded.
 *    Only then does the kernel (since 5.11) remember the verdict and skip the program altogether.
 *    It gives up on shifts and memory: a table of bits is no choice.
 * 2. Programs are written from their last instruction to the first: where a jump leads is known
 *    when it is put, each verdict stands there once, and all jumps go forward, as they must.
 * 3. A place in a program is how many instructions there are from it to the end.
 */
#include <linux/filter.h>
#include <seccomp.h>
#include <stdarg.h>

#include "base/base.h"
#include "cache/policy.h"
#include "engine/policy.h"
#include "gate/policy.h"
#include "ledger/policy.h"
#include "vault/policy.h"

#define NUMBERS_MAX 1024
#define X32_BIT 0x40000000u
#define PROGRAM_MAX 256 /* from end to end of it, an 8-bit conditional jump reaches */
#define RANGES_MAX PROGRAM_MAX
#define EXITS_MAX 64

/* What one more instruction costs the kernel at load, in steps of one call through the program:
 * translating it takes 0.12 us, a step 2.4 ns (measured on Linux 6.18). */
#define INSTRUCTION_COST 50

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the low half of an argument is first");

struct filter {
	const char *name;
	const struct policy_group *groups;
	size_t group_count;
	uint32_t notify; /* the verdict that stands for NOTIFY */
	const struct policy_args *args;
};

struct program {
	const struct policy_args *args;
	uint32_t notify; /* the verdict that stands for NOTIFY */
	struct sock_filter code[PROGRAM_MAX];
	size_t len;
	struct {
		uint32_t verdict;
		size_t place; /* 0: not put yet */
	} exits[EXITS_MAX];
	size_t exit_count;
};

struct range {
	uint32_t first, last, verdict;
};

/* The cheapest decision among ranges[i] to ranges[j]. */
struct plan {
	struct range ranges[RANGES_MAX];
	size_t count;
	uint32_t cost[RANGES_MAX][RANGES_MAX];
	size_t split[RANGES_MAX][RANGES_MAX]; /* the first range of the upper half; 0: no halves */
};

/* clang-format off */
static const struct filter filters[] = {
	{ "filter_default",       policy_default,     COUNT(policy_default),     NOTIFY, policy_args },
	{ "filter_default_quiet", policy_default,     COUNT(policy_default),     ALLOW,  policy_args },
	{ "filter_init",          policy_init,        COUNT(policy_init),        NOTIFY, policy_args },
	{ "filter_gate_master",   policy_gate_master, COUNT(policy_gate_master), NOTIFY, policy_gate_args },
	{ "filter_gate_child",    policy_gate_child,  COUNT(policy_gate_child),  NOTIFY, policy_gate_args },
	{ "filter_cache",         policy_cache,       COUNT(policy_cache),       NOTIFY, policy_gate_args },
	{ "filter_ledger",        policy_ledger,      COUNT(policy_ledger),      NOTIFY, policy_args },
	{ "filter_vault",         policy_vault,       COUNT(policy_vault),       NOTIFY, policy_vault_args },
};
/* clang-format on */

/* A wrong table must stop the build, so nothing here is handled further up. */
static void PRINTF(1, 2) __attribute__((noreturn)) die(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fputs("gen-filters: ", stderr);
	vfprintf(stderr, fmt, args);
	fputc('\n', stderr);
	va_end(args);
	exit(1);
}

/* The number of the call whose name, or name@N, stands at `text`; negative if this
 * architecture has no such call. Moves `*text` to the next name. */
static int next_number(const char **text)
{
	char name[32];
	int given;

	int fields = sscanf(*text, "%31[a-z0-9_]@%d", name, &given);
	if (fields < 1)
		die("no name at \"%s\"", *text);
	*text += strcspn(*text, " ");
	*text += strspn(*text, " ");

	int known = seccomp_syscall_resolve_name(name);
	if (fields == 1 && known == __NR_SCMP_ERROR)
		die("no architecture has a call %s", name);
	if (fields == 2 && known != __NR_SCMP_ERROR && known != given)
		die("%s has number %d, not %d", name, known, given);
	return fields == 2 ? given : known;
}

/* Puts `verdict` at every number that the group names; elsewhere `verdicts` stays 0. */
static void mark_group(const struct policy_group *g, uint32_t verdict,
                       uint32_t verdicts[NUMBERS_MAX])
{
	for (const char *text = g->calls; *text;) {
		int nr = next_number(&text);
		if (nr < 0)
			continue;
		if (nr >= NUMBERS_MAX || verdicts[nr])
			die("%d of \"%s\" is out of range or named twice", nr, g->why);
		verdicts[nr] = verdict;
	}
}

static void add_range(struct plan *plan, struct range r)
{
	struct range *last = plan->count > 0 ? &plan->ranges[plan->count - 1] : NULL;

	if (last && last->verdict == r.verdict)
		last->last = r.last;
	else if (plan->count < RANGES_MAX)
		plan->ranges[plan->count++] = r;
	else
		die("more than %d ranges of numbers", RANGES_MAX);
}

/* Numbers are unsigned here, as they are in a filter. */
static void add_ranges(const struct filter *f, struct plan *plan)
{
	bool x32 = seccomp_arch_native() == SCMP_ARCH_X86_64;
	uint32_t verdicts[NUMBERS_MAX] = { 0 };

	for (size_t i = 0; i < f->group_count; i++)
		mark_group(&f->groups[i], f->groups[i].verdict, verdicts);
	for (uint32_t nr = 0; nr < NUMBERS_MAX; nr++)
		add_range(plan, (struct range){ nr, nr, verdicts[nr] ? verdicts[nr] : ABSENT });
	add_range(plan, (struct range){ NUMBERS_MAX, X32_BIT - 1, ABSENT });
	add_range(plan, (struct range){ X32_BIT, UINT32_MAX - 1,
	                                x32 ? SECCOMP_RET_KILL_PROCESS : ABSENT });
	/* -1 is how a tracer skips a call. */
	add_range(plan, (struct range){ UINT32_MAX, UINT32_MAX, ABSENT });
}

/* How many calls a range stands for; beyond the kernel's last call it is as good as none. */
static uint32_t range_calls(const struct range *r)
{
	return r->last < NUMBERS_MAX ? r->last - r->first + 1 : 1;
}

/* The cost of taking every range that differs from the first for an exception, to be compared
 * with one by one; UINT32_MAX if one of them is more than a single number. */
static uint32_t exceptions_cost(const struct plan *plan, size_t i, size_t j, uint32_t calls)
{
	uint32_t cost = 0;

	for (size_t k = i + 1; k <= j; k++) {
		const struct range *r = &plan->ranges[k];
		if (r->verdict == plan->ranges[i].verdict)
			continue;
		if (r->first != r->last)
			return UINT32_MAX;
		cost += INSTRUCTION_COST + calls--;
	}
	return cost;
}

/* Chooses between exceptions and all ways to make two halves, which are planned already. A
 * comparison costs an instruction, and a step for each call that comes by. */
static void plan_one(struct plan *plan, size_t i, size_t j)
{
	uint32_t calls = 0;

	for (size_t k = i; k <= j; k++)
		calls += range_calls(&plan->ranges[k]);

	uint32_t best = exceptions_cost(plan, i, j, calls);
	size_t split = 0;
	for (size_t k = i + 1; k <= j; k++) {
		uint32_t halves = plan->cost[i][k - 1] + plan->cost[k][j];
		uint32_t cost = INSTRUCTION_COST + calls + halves;
		if (cost < best) {
			best = cost;
			split = k;
		}
	}
	plan->cost[i][j] = best;
	plan->split[i][j] = split;
}

static void plan_all(struct plan *plan)
{
	for (size_t distance = 0; distance < plan->count; distance++)
		for (size_t i = 0; i + distance < plan->count; i++)
			plan_one(plan, i, i + distance);
}

/* Puts an instruction before all others and returns its place. */
static size_t put(struct program *p, struct sock_filter instruction)
{
	if (p->len == PROGRAM_MAX)
		die("more than %d instructions, and jumps may not reach", PROGRAM_MAX);
	p->code[PROGRAM_MAX - ++p->len] = instruction;
	return p->len;
}

static size_t put_jump(struct program *p, uint16_t test, uint32_t k, size_t yes, size_t no)
{
	uint8_t jt = (uint8_t)(p->len - yes), jf = (uint8_t)(p->len - no);

	return put(p, (struct sock_filter)BPF_JUMP(BPF_JMP | test | BPF_K, k, jt, jf));
}

/* Loads a word of struct seccomp_data for the comparison that was put last. */
static size_t put_load(struct program *p, size_t offset, uint32_t mask)
{
	if (mask != UINT32_MAX)
		put(p, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, mask));
	return put(p, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

/* How many cases the switch has. A case that can never match is a mistake. */
static size_t count_cases(const struct policy_args *s, uint32_t id)
{
	size_t n = 0;

	for (; n < COUNT(s->cases) && s->cases[n].verdict; n++) {
		uint32_t value = s->cases[n].value;
		if (value & ~s->mask)
			die("value %#x of switch %u is not in its mask", value, id);
		for (size_t i = 0; i < n; i++)
			if (s->cases[i].value == value)
				die("value %#x stands twice in switch %u", value, id);
	}
	if (n == 0 || !s->otherwise)
		die("switch %u is not complete", id);
	return n;
}

/* Of a half of an argument, as struct policy_args names it. */
static size_t argument_offset(uint32_t arg)
{
	size_t whole = offsetof(struct seccomp_data, args[arg & ~POLICY_HIGH]);

	return arg & POLICY_HIGH ? whole + sizeof(uint32_t) : whole;
}

static size_t exit_place(struct program *p, uint32_t verdict);

static size_t put_switch(struct program *p, uint32_t id)
{
	const struct policy_args *s = &p->args[id];
	size_t n = count_cases(s, id);
	size_t places[COUNT(s->cases)];

	for (size_t i = 0; i < n; i++)
		places[i] = exit_place(p, s->cases[i].verdict);

	size_t next = exit_place(p, s->otherwise);
	while (n-- > 0)
		next = put_jump(p, BPF_JEQ, s->cases[n].value, places[n], next);
	return put_load(p, argument_offset(s->arg), s->mask);
}

static size_t put_exit(struct program *p, uint32_t verdict)
{
	if ((verdict & SECCOMP_RET_ACTION_FULL) == BY_ARGS(0))
		return put_switch(p, verdict & SECCOMP_RET_DATA);
	return put(p, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, verdict));
}

/* The place that gives the verdict; put there when it is first asked for. */
static size_t exit_place(struct program *p, uint32_t verdict)
{
	size_t i = 0;

	if (verdict == NOTIFY)
		verdict = p->notify;
	while (i < p->exit_count && p->exits[i].verdict != verdict)
		i++;
	if (i == EXITS_MAX)
		die("more than %d verdicts", EXITS_MAX);
	if (i == p->exit_count) {
		p->exits[p->exit_count++].verdict = verdict;
		p->exits[i].place = put_exit(p, verdict);
	}
	if (p->exits[i].place == 0)
		die("switch %u leads back to itself", verdict & SECCOMP_RET_DATA);
	return p->exits[i].place;
}

static size_t put_search(struct program *p, const struct plan *plan, size_t i, size_t j)
{
	size_t split = plan->split[i][j];

	if (split > 0) {
		size_t below = put_search(p, plan, i, split - 1);
		size_t above = put_search(p, plan, split, j);
		return put_jump(p, BPF_JGE, plan->ranges[split].first, above, below);
	}

	size_t next = exit_place(p, plan->ranges[i].verdict);
	for (size_t k = j; k > i; k--) {
		const struct range *r = &plan->ranges[k];
		if (r->verdict != plan->ranges[i].verdict) {
			size_t place = exit_place(p, r->verdict);
			next = put_jump(p, BPF_JEQ, r->first, place, next);
		}
	}
	return next;
}

/* A foreign architecture is seen first: its numbers mean other calls. */
static void compile(const struct filter *f, struct program *p)
{
	static struct plan plan;

	plan.count = 0;
	add_ranges(f, &plan);
	plan_all(&plan);

	size_t foreign = exit_place(p, SECCOMP_RET_KILL_PROCESS);
	put_search(p, &plan, 0, plan.count - 1);
	size_t native = put_load(p, offsetof(struct seccomp_data, nr), UINT32_MAX);
	put_jump(p, BPF_JEQ, seccomp_arch_native(), native, foreign);
	put_load(p, offsetof(struct seccomp_data, arch), UINT32_MAX);
}

static void print(FILE *out, const struct filter *f, const struct program *p)
{
	fprintf(out, "\nstatic const struct sock_filter %s[] = {\n", f->name);
	for (size_t i = PROGRAM_MAX - p->len; i < PROGRAM_MAX; i++)
		fprintf(out, "\t{ 0x%02x, %u, %u, %#x },\n", p->code[i].code, p->code[i].jt,
		        p->code[i].jf, p->code[i].k);
	fputs("};\n", out);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		die("usage: gen-filters OUT.h");

	FILE *out = fopen(argv[1], "we");
	if (!out)
		die("cannot write %s: %s", argv[1], strerror(errno));
	fputs("/* Made from the tables of policy by tools/gen-filters.c: edit those. */\n"
	      "#pragma once\n\n#include <linux/filter.h>\n",
	      out);
	for (size_t i = 0; i < COUNT(filters); i++) {
		struct program p = { .args = filters[i].args, .notify = filters[i].notify };
		compile(&filters[i], &p);
		print(out, &filters[i], &p);
	}
	if (fclose(out) != 0)
		die("cannot write %s: %s", argv[1], strerror(errno));
	return 0;
}
