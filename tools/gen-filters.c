/*
 * gen-filters.c - compiles src/engine/policy.h into the programs that the kernel runs.
 *
 *     gen-filters OUT.h
 *
 * libseccomp compiles one program from the numbers, and one for each call whose arguments
 * decide; we link them into one. Two reasons: libseccomp has a single default verdict per
 * program, while "all requests but these" and "none but these" need different ones; and a call
 * that is allowed whatever its arguments are must return before any argument is loaded, because
 * only then does the kernel (since 5.11) remember the verdict and skip the program altogether.
 */
#include <linux/filter.h>
#include <seccomp.h>
#include <stdarg.h>
#include <sys/mman.h>

#include "base/base.h"
#include "base/fd.h"
#include "engine/policy.h"

#define NUMBERS_MAX 1024
#define API_LEVEL 6 /* what libseccomp 2.5 knows; by default it asks the build machine's kernel */

struct program {
	struct sock_filter code[BPF_MAXINSNS];
	size_t len;
};

struct filter {
	const char *name;
	const struct policy_group *groups;
	size_t group_count;
	uint32_t exec; /* the verdict that stands for NOTIFY */
};

/* clang-format off */
static const struct filter filters[] = {
	{ "filter_default",       policy_default, COUNT(policy_default), NOTIFY },
	{ "filter_default_quiet", policy_default, COUNT(policy_default), ALLOW },
	{ "filter_init",          policy_init,    COUNT(policy_init),    NOTIFY },
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

static scmp_filter_ctx context_new(uint32_t otherwise)
{
	scmp_filter_ctx ctx = seccomp_init(otherwise);
	if (!ctx)
		die("cannot start a filter with default verdict %#x", otherwise);

	int r = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	if (r == 0)
		r = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2); /* a binary tree */
	if (r < 0)
		die("cannot set an attribute: %s", strerror(-r));
	return ctx;
}

/* Compiles and releases `ctx`, and appends the result. */
static void context_append(scmp_filter_ctx ctx, struct program *p)
{
	AUTO(fd_close) int fd = memfd_create("filter", MFD_CLOEXEC);
	if (fd < 0)
		die("cannot create a memory file: %s", strerror(errno));

	int r = seccomp_export_bpf(ctx, fd);
	if (r < 0)
		die("cannot compile: %s", strerror(-r));
	seccomp_release(ctx);

	size_t room = sizeof(p->code) - p->len * sizeof(p->code[0]);
	ssize_t got = pread(fd, p->code + p->len, room, 0);
	if (got <= 0 || (size_t)got == room)
		die("a program must have between 1 and %d instructions", BPF_MAXINSNS - 1);
	p->len += (size_t)got / sizeof(p->code[0]);
}

static void add_group(scmp_filter_ctx ctx, const struct policy_group *g, uint32_t verdict,
                      bool seen[NUMBERS_MAX])
{
	for (const char *text = g->calls; *text;) {
		int nr = next_number(&text);
		if (nr < 0)
			continue;
		if (nr >= NUMBERS_MAX || seen[nr])
			die("%d of \"%s\" is out of range or named twice", nr, g->why);
		seen[nr] = true;
		if (verdict == ABSENT)
			continue; /* libseccomp refuses a rule that repeats the default */
		int r = seccomp_rule_add(ctx, verdict, nr, 0);
		if (r < 0)
			die("cannot add %d of \"%s\": %s", nr, g->why, strerror(-r));
	}
}

static void add_rule(scmp_filter_ctx ctx, int nr, const struct policy_rule *rule)
{
	struct scmp_arg_cmp when[COUNT(rule->when)];
	unsigned int n = 0;

	for (size_t i = 0; i < COUNT(rule->when) && rule->when[i].mask; i++)
		when[n++] = SCMP_CMP(rule->when[i].arg, SCMP_CMP_MASKED_EQ, rule->when[i].mask,
		                     rule->when[i].value);

	int r = seccomp_rule_add_array(ctx, rule->verdict, nr, n, when);
	if (r < 0)
		die("cannot add a rule of call %d: %s", nr, strerror(-r));
}

static void append_args(const struct policy_args *args, struct program *p)
{
	scmp_filter_ctx ctx = context_new(args->otherwise);
	int nr = seccomp_syscall_resolve_name(args->call);

	for (size_t i = 0; i < COUNT(args->rules) && args->rules[i].verdict; i++)
		add_rule(ctx, nr, &args->rules[i]);
	context_append(ctx, p);
}

/* Makes every "return BY_ARGS(id)" a jump to the end, where those rules are about to stand. */
static bool patch(struct program *p, uint32_t id)
{
	bool patched = false;

	for (size_t i = 0; i < p->len; i++) {
		struct sock_filter *c = &p->code[i];
		if (c->code != (BPF_RET | BPF_K) || c->k != BY_ARGS(id))
			continue;
		*c = (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, (uint32_t)(p->len - i - 1));
		patched = true;
	}
	return patched;
}

static void compile(const struct filter *f, struct program *p)
{
	scmp_filter_ctx ctx = context_new(ABSENT);
	bool seen[NUMBERS_MAX] = { false };

	for (size_t i = 0; i < f->group_count; i++) {
		uint32_t verdict = f->groups[i].verdict;
		add_group(ctx, &f->groups[i], verdict == NOTIFY ? f->exec : verdict, seen);
	}
	context_append(ctx, p);

	for (uint32_t id = 0; id < ARGS_COUNT; id++) {
		if (patch(p, id))
			append_args(&policy_args[id], p);
	}
	for (uint32_t id = 0; id < ARGS_COUNT; id++) {
		if (patch(p, id))
			die("%s: a jump back to the rules %u", f->name, id);
	}
}

static void print(FILE *out, const struct filter *f, const struct program *p)
{
	fprintf(out, "\nstatic const struct sock_filter %s[] = {\n", f->name);
	for (size_t i = 0; i < p->len; i++)
		fprintf(out, "\t{ 0x%02x, %u, %u, %#x },\n", p->code[i].code, p->code[i].jt,
		        p->code[i].jf, p->code[i].k);
	fputs("};\n", out);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		die("usage: gen-filters OUT.h");
	if (seccomp_api_set(API_LEVEL) < 0)
		die("libseccomp 2.5 or newer is needed");

	FILE *out = fopen(argv[1], "we");
	if (!out)
		die("cannot write %s: %s", argv[1], strerror(errno));
	fputs("/* Made from src/engine/policy.h by tools/gen-filters.c: edit those. */\n"
	      "#pragma once\n\n#include <linux/filter.h>\n",
	      out);
	for (size_t i = 0; i < COUNT(filters); i++) {
		struct program p = { .len = 0 };
		compile(&filters[i], &p);
		print(out, &filters[i], &p);
	}
	if (fclose(out) != 0)
		die("cannot write %s: %s", argv[1], strerror(errno));
	return 0;
}
