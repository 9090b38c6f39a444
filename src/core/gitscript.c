#include "core/gitscript-internal.h"

/* Bytes that may be written at "$1": never the last 5 % of a disk, or 1 GiB. */
#define ROOM                                                                                       \
	"room() { stat -f -c '%a %b %S' \"$1\" | awk '{ keep = $2 * $3 / 20; "                     \
	"if (keep > 1073741824) keep = 1073741824; r = $1 * $3 - keep; "                           \
	"if ($2 == 0 || r > 21474836480) r = 21474836480; printf(\"%.0f\", (r > 0 ? r : 0)) }'; "  \
	"}\n"
_Static_assert(GIT_REPO_BYTES_MAX == 21474836480, "ROOM has another bound");

/* What a killed one left is removed first: nobody else works here. */
/* clang-format off */
const char git_script_fetch[] = PRELUDE ROOM
	"url=$1; shift\n"
	"export GIT_DIR=" GIT_MIRROR "\n"
	"cd \"$GIT_DIR\"\n"
	"find . -name '*.lock' -type f -delete\n"
	"find . -name 'tmp_*' -type f -delete\n"
	"[ -f HEAD ] || git init -q --bare --template= -b caisson\n"
	"git ls-remote --symref --end-of-options \"$url\" HEAD >/tmp/head || exit 10\n"
	"head=$(sed -n 's,^ref: refs/heads/\\(.*\\)\tHEAD$,\\1,p' /tmp/head)\n"
	"tip() { git rev-parse -q --verify \"refs/caisson/heads/$head^{commit}\" || echo -; }\n"
	"old=$(tip)\n"
	"for p do set -- \"$@\" \"+$p:refs/caisson/${p#refs/}\"; shift; done\n"
	"room=$(room .); ulimit -f $((room > 67108864 ? room / 512 : 131072))\n" /* news are small */
	"git fetch --progress --prune --no-tags --force --no-write-fetch-head --no-auto-maintenance "
	"--no-recurse-submodules --end-of-options \"$url\" \"$@\" || exit 11\n"
	"git pack-refs --all\n"
	"new=$(tip)\n"
	"[ \"$new\" = - ] || git symbolic-ref HEAD \"refs/caisson/heads/$head\"\n"
	"printf '%s\\n' \"${head:--}\" \"$old\" \"$new\"\n";

const char git_script_resolve[] = PRELUDE
	"export GIT_DIR=" GIT_MIRROR "\n"
	"try() { sha=$(git rev-parse -q --verify \"$1^{commit}\") && printf '%s\\n%s\\n' \"$sha\" \"$2\" && exit; }\n"
	"if [ \"$1\" = HEAD ]; then\n"
	"	head=$(git symbolic-ref -q HEAD) && try \"$head\" \"${head#refs/caisson/heads/}\"\n"
	"	exit 12\n"
	"fi\n"
	"case $1 in refs/heads/*) try \"refs/caisson/${1#refs/}\" \"${1#refs/heads/}\" ;; refs/*) try \"refs/caisson/${1#refs/}\" - ;; esac || :\n"
	"try \"refs/caisson/heads/$1\" \"$1\" || try \"refs/caisson/tags/$1\" - || :\n"
	"case $1 in *[!0-9a-f]*) ;; ???????*) try \"$1\" - ;; esac || :\n"
	"exit 12\n";

/* A few small objects can name more files, or larger ones, than any disk has room for: what they
 * would be is counted first. The index is as good as on the host for everybody who gets these
 * files: written a second after the last of them, with the ids that they keep, and with what is
 * untracked known at this path. */
const char git_script_checkout[] = PRELUDE ROOM
	"cd /work\n"
	"GIT_DIR=" GIT_MIRROR " git ls-tree -r -t -l \"$1\" | awk -v room=\"$(room .)\" "
	"'{ bytes += $4 } NR > 1000000 || bytes > room + 0 { exit 1 }' || exit 20\n"
	"git init -q --template= -b caisson\n"
	"mkdir -p .git/info .git/objects/info\n"
	"echo " GIT_MIRROR "/objects >.git/objects/info/alternates\n"
	"git config core.untrackedCache true\n"
	"git config gc.auto 0\n"
	"git config user.name agent\n"
	"git config user.email agent@localhost\n"
	"git config remote.origin.url \"$2\"\n"
	"from=refs/heads; [ \"$2\" != " GIT_MIRROR " ] || from=refs/caisson/heads\n"
	"git config remote.origin.fetch \"+$from/*:refs/remotes/origin/*\"\n"
	"git -c advice.detachedHead=false checkout -q -f --no-recurse-submodules --detach \"$1\" --\n"
	"sleep 1.05\n"
	"export GIT_OPTIONAL_LOCKS=1\n"
	"git update-index -q --refresh || :\n"
	"git update-index --force-untracked-cache\n"
	"git status --porcelain >/dev/null\n"
	"git status --porcelain >/dev/null\n";

const char git_script_head[] = PRELUDE
	"cd " GIT_HEAD_LAYER "\n"
	"mkdir -p \".git/refs/heads/$(dirname -- \"$2\")\"\n"
	"printf 'ref: refs/heads/%s\\n' \"$2\" >.git/HEAD\n"
	"echo \"$1\" >\".git/refs/heads/$2\"\n"
	"cp /work/.git/config .git/config\n"
	"[ -n \"$4\" ] || exit 0\n"
	"mkdir -p \".git/refs/remotes/origin/$(dirname -- \"$4\")\"\n"
	"echo \"$1\" >\".git/refs/remotes/origin/$4\"\n"
	"git config -f .git/config \"branch.$2.remote\" origin\n"
	"git config -f .git/config \"branch.$2.merge\" \"refs/heads/$4\"\n";
/* clang-format on */

/* ---- what went wrong ----------------------------------------------------------------- */

static const struct {
	const char *word;
	enum fail_code code;
} words[] = {
	{ "could not read Username", FAIL_REPO_AUTH }, { "Authentication failed", FAIL_REPO_AUTH },
	{ "returned error: 401", FAIL_REPO_AUTH },     { "returned error: 403", FAIL_REPO_AUTH },
	{ "Permission denied", FAIL_REPO_AUTH },
};

static const struct {
	int status;
	enum fail_code code;
	const char *text; /* NULL: what git said */
} exits[] = {
	{ GIT_EXIT_REMOTE, FAIL_REPO_UNREACHABLE, NULL },
	{ GIT_EXIT_FETCH, FAIL_REPO_UNREACHABLE, NULL },
	{ GIT_EXIT_NO_REF, FAIL_NOT_FOUND, "there is no such branch, tag or commit" },
	{ GIT_EXIT_NO_REPO, FAIL_CONFLICT, "the workspace has no git folder of its own" },
	{ GIT_EXIT_BUSY, FAIL_BUSY, "somebody else works with the index: .git/index.lock" },
	{ GIT_EXIT_NOTHING, FAIL_CONFLICT, "there is nothing to commit" },
	{ GIT_EXIT_STALE, FAIL_STALE, NULL },
	{ GIT_EXIT_MERGING, FAIL_CONFLICT, "a merge or rebase is under way in the workspace" },
	{ GIT_EXIT_CHANGED, FAIL_BUSY, "somebody else committed meanwhile" },
	{ GIT_EXIT_LARGE, FAIL_TOO_LARGE,
	  "its files are more than a million, or than the disk has room for" },
};

/* The line that says most: git's own verdict, else the last one. */
static const char *verdict(const char *complaint, char *out, size_t size)
{
	const char *best = complaint ? complaint : "";

	for (const char *line = complaint; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, "fatal: ", 7) == 0 || strncmp(line, "error: ", 7) == 0) {
			best = line + 7;
			break;
		}
		if (*line)
			best = line;
	}
	snprintf(out, size, "%.*s", (int)strcspn(best, "\n"), best);
	return out[0] ? out : "git says nothing";
}

void git_explain(const struct service_end *end, const char *what, struct fail *f)
{
	char said[SERVICE_LINE_MAX];

	*f = end->fail;
	if (f->code != FAIL_NONE) {
		fail_set(f, f->code, "%s: %s", what, end->fail.detail);
		return;
	}
	if (end->exit_code == 0)
		return;
	fail_set(f, FAIL_BACKEND_ERROR, "%s: %s", what, verdict(end->complaint, said, sizeof said));
	for (size_t i = 0; i < COUNT(exits); i++)
		if (exits[i].status == end->exit_code)
			fail_set(f, exits[i].code, "%s: %s", what,
			         exits[i].text ? exits[i].text
			                       : verdict(end->complaint, said, sizeof said));
	for (size_t i = 0; i < COUNT(words) && f->code == FAIL_REPO_UNREACHABLE; i++)
		if (strstr(end->complaint, words[i].word))
			f->code = words[i].code;
}
