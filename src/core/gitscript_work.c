/*
 * gitscript_work.c - git in a workspace. See gitscript.h.
 */
#include "core/gitscript-internal.h"

/* clang-format off */

/* A git folder of ours for the files of the workspace. Its own configuration, hooks, attributes and
 * worktrees are not in it. */
#define OWN \
	"theirs=/work/.git\n" \
	"own() { [ -d \"$1\" ] && [ ! -L \"$1\" ]; }\n" \
	"export GIT_DIR=/tmp/git GIT_WORK_TREE=/work GIT_INDEX_FILE=/tmp/index GIT_LITERAL_PATHSPECS=1\n" \
	"cd /work\n" \
	"git init -q --template= -b caisson\n" \
	"[ ! -f $theirs/info/exclude ] || git config -f /tmp/config core.excludesFile $theirs/info/exclude\n"

/* New objects stay ours and are forgotten; those of the workspace can be read. One without a
 * repository has no mirror, and git complains about a folder that is not there. */
#define MIRROR "mirror=" GIT_MIRROR "/objects; [ -d $mirror ] || mirror=\n"
#define OBJECTS_OURS MIRROR \
	"export GIT_ALTERNATE_OBJECT_DIRECTORIES=$theirs/objects${mirror:+:$mirror}\n"
#define OBJECTS_THEIRS MIRROR \
	"export GIT_ALTERNATE_OBJECT_DIRECTORIES=$mirror GIT_OBJECT_DIRECTORY=$theirs/objects\n"

/* With refs, HEAD and index of the workspace; one that is split lies in two files, and is made anew. */
#define REFS \
	"own $theirs && own $theirs/objects && own $theirs/refs && [ -f $theirs/HEAD ] && [ ! -e $theirs/commondir ] || exit 13\n" \
	"rm -rf /tmp/git/refs /tmp/git/HEAD\n" \
	"ln -s $theirs/refs /tmp/git/refs\n" \
	"ln -s $theirs/packed-refs /tmp/git/packed-refs\n" \
	"head -c 1024 $theirs/HEAD >/tmp/git/HEAD\n" \
	"cp /tmp/git/HEAD /tmp/head.was\n" \
	"head=$(git rev-parse -q --verify 'HEAD^{commit}') || head=\n" \
	"if [ -f $theirs/index ]; then cp $theirs/index /tmp/index; cp $theirs/index /tmp/index.was; fi\n" \
	"git ls-files -z >/dev/null 2>&1 || rm -f /tmp/index\n" \
	"[ -f /tmp/index ] || git read-tree ${head:---empty}\n"

#define HAS_HEAD "[ -n \"$head\" ] || exit 13\n"
#define IS_AT_REST \
	"for f in MERGE_HEAD CHERRY_PICK_HEAD REVERT_HEAD rebase-merge rebase-apply; do [ ! -e $theirs/$f ] || exit 18; done\n" \
	"[ ! -e $theirs/index.lock ] || exit 14\n"

/* The index is locked as git does it, for a moment; it is still the one that we began with. */
#define LOCK \
	"(set -C; : >$theirs/index.lock) 2>/dev/null || exit 14\n" \
	"trap 'rm -f $theirs/index.lock' EXIT\n" \
	"cmp -s /tmp/index.was $theirs/index || { [ ! -e /tmp/index.was ] && [ ! -e $theirs/index ]; } || exit 14\n"
#define UNLOCK \
	"cat /tmp/index >$theirs/index.lock\n" \
	"mv -f $theirs/index.lock $theirs/index\n" \
	"trap - EXIT\n" \
	"if ! cmp -s /tmp/head.was /tmp/git/HEAD; then cp /tmp/git/HEAD $theirs/HEAD.lock; mv -f $theirs/HEAD.lock $theirs/HEAD; fi\n"

/* "$@": paths, or none for all that is not ignored. Not git-add(1), which asks git in repositories
 * that lie below, by their own settings; those are left out. */
#define ADD \
	"add() {\n" \
	"	git ls-files -z -o -m --exclude-standard -- \"$@\" >/tmp/list\n" \
	"	git update-index -z --add --remove --replace --stdin </tmp/list\n" \
	"}\n"

const char git_script_commit[] = PRELUDE
	"export GIT_AUTHOR_NAME=\"$1\" GIT_AUTHOR_EMAIL=\"$2\" GIT_COMMITTER_NAME=\"$1\" GIT_COMMITTER_EMAIL=\"$2\"\n"
	"empty=$3; shift 3\n"
	"cat >/tmp/message\n"
	OWN OBJECTS_THEIRS REFS IS_AT_REST ADD
	"if [ $# -gt 0 ]; then\n" /* these and nothing else; what was staged stays staged */
	"	(export GIT_INDEX_FILE=/tmp/only; git read-tree ${head:---empty}; add \"$@\"; git write-tree >/tmp/tree)\n"
	"	add \"$@\"\n"
	"	tree=$(cat /tmp/tree)\n"
	"else\n"
	"	add\n"
	"	tree=$(git write-tree)\n"
	"fi\n"
	"was=${head:+$(git rev-parse \"$head^{tree}\")}\n"
	"[ \"$tree\" != \"$was\" ] || [ $empty = 1 ] || exit 15\n"
	"new=$(git commit-tree \"$tree\" ${head:+-p $head} -F /tmp/message)\n"
	LOCK
	"git update-ref HEAD $new ${head:-0000000000000000000000000000000000000000} || exit 19\n"
	UNLOCK
	"echo $new; echo $tree\n";

/* The files as they are. One that has lost its git folder has what it began with, in the mirror. */
const char git_script_point[] = PRELUDE OWN OBJECTS_OURS
	"if own $theirs && [ -f $theirs/index ]; then cp $theirs/index /tmp/index; fi\n"
	"git ls-files -z >/dev/null 2>&1 || rm -f /tmp/index\n"
	"[ -f /tmp/index ] || git read-tree ${1:---empty}\n"
	ADD "add\n"
	"all=$(git commit-tree $(git write-tree) -m point)\n"
	"echo $all\n"
	"printf '%s\\n' $all ${1:+^$1} | git pack-objects -q --revs --stdout\n";

/* The same, and only its tree. */
const char git_script_tree[] = PRELUDE OWN OBJECTS_OURS
	"if own $theirs && [ -f $theirs/index ]; then cp $theirs/index /tmp/index; fi\n"
	"git ls-files -z >/dev/null 2>&1 || rm -f /tmp/index\n"
	"[ -f /tmp/index ] || git read-tree ${1:---empty}\n"
	ADD "add\n"
	"echo -; git write-tree\n";

const char git_script_patch[] = PRELUDE OWN OBJECTS_OURS
	"base=${1:-$(git hash-object -w -t tree /dev/null)}; shift\n"
	"if [ \"$base\" = - ]; then read -r base; git unpack-objects -q --strict; fi\n"
	"if own $theirs && [ -f $theirs/index ]; then cp $theirs/index /tmp/index; fi\n"
	"git ls-files -z >/dev/null 2>&1 || rm -f /tmp/index\n"
	"[ -f /tmp/index ] || git read-tree $base\n"
	ADD "add\n"
	"git diff-index --cached -p --binary --full-index -M --no-ext-diff --no-textconv --no-color --ignore-submodules=none "
	"--submodule=short --src-prefix=a/ --dst-prefix=b/ \"$base\" -- \"$@\"\n";

const char git_script_pack[] = PRELUDE OWN OBJECTS_OURS REFS HAS_HEAD
	"base=-\n"
	"if read -r x; then read -r base; read -r x; git unpack-objects -q --strict; fi\n"
	ADD "add\n"
	"work=$(git commit-tree $(git write-tree) -p $head -m work)\n"
	"printf '%s\\n%s\\n%s\\n' $head $work $base\n"
	"printf '%s\\n' $work ${base#-} ${1:+^$1} | git pack-objects -q --revs --stdout\n";

/* What the other has committed is merged as commits, what it has not as files: nothing of either
 * is committed that was not. Nothing is written before both went well. */
const char git_script_merge[] = PRELUDE OWN OBJECTS_OURS REFS HAS_HEAD IS_AT_REST
	"read -r from; read -r work; read -r base\n"
	"if [ \"$work\" = - ]; then work=$from; else git unpack-objects -q --strict; fi\n"
	"from=$(git rev-parse -q --verify \"$from^{commit}\") || exit 12\n"
	"work=$(git rev-parse -q --verify \"$work^{commit}\") || exit 12\n"
	ADD "add\n"
	"tree=$(git write-tree)\n"
	"if [ \"$base\" = -  ]; then mine=$(git commit-tree $tree -p $head -m work)\n"
	"else\n" /* what both were when one became two */
	"	base=$(git commit-tree \"$base^{tree}\" -m base)\n"
	"	mine=$(git commit-tree $tree -p $base -m work)\n"
	"	work=$(git commit-tree \"$work^{tree}\" -p $base -m work)\n"
	"fi\n"
	"join() { git merge-tree --write-tree --name-only -z --no-messages \"$1\" \"$2\" >/tmp/joined && return; [ $? = 1 ] || exit 20; tail -z -n +2 /tmp/joined; exit 16; }\n"
	"joined() { head -z -n 1 /tmp/joined | tr -d '\\0\\n'; }\n"
	"if git merge-base --is-ancestor $from $head; then new=$head\n"
	"elif git merge-base --is-ancestor $head $from; then new=$from\n"
	"else join $head $from; new=$(git commit-tree $(joined) -p $head -p $from -m \"Merge commit '$from'\"); fi\n"
	"join $mine $work\n"
	"merged=$(joined)\n"
	"cp -R --no-clobber /tmp/git/objects/. $theirs/objects/\n"
	LOCK
	"git read-tree -m -u $tree $merged\n"
	"git read-tree -m $new\n"
	"git update-index -q --refresh >/dev/null || :\n"
	"[ $new = $head ] || git update-ref HEAD $new $head || exit 19\n"
	UNLOCK
	"echo $new; git rev-parse \"$new^{tree}\"\n";

const char git_script_push[] = PRELUDE OWN OBJECTS_OURS REFS HAS_HEAD
	"url=$1 ref=refs/heads/$2\n"
	"set -- ${3:+--force-with-lease=$ref:${3#-}}\n"
	"git push --porcelain --progress --no-verify --no-recurse-submodules --no-follow-tags --no-signed \"$@\" "
	"--end-of-options \"$url\" \"$head:$ref\" >/tmp/said && echo $head && git rev-parse \"$head^{tree}\" && exit\n"
	"grep -q '^!.*rejected' /tmp/said || exit 10\n"
	"grep '^!' /tmp/said | cut -f 3 | sed 's/^/error: /' >&2\n"
	"exit 17\n";

/* What it was of, where standard output is taken. */
#define TELL_TREE "echo \"tree $head $(git rev-parse \"$head^{tree}\")\" >&2\n"

/* With refs of its own: git leaves out a ref that has moved since it was read, and a command may
 * commit meanwhile. */
const char git_script_bundle[] = PRELUDE OWN OBJECTS_OURS REFS HAS_HEAD
	"[ -z \"$1\" ] || ! git merge-base --is-ancestor $head \"$1\" || exit 15\n"
	"[ -z \"$1\" ] || set -- \"$(git rev-parse -q --verify \"$1^{commit}\" || echo \"$1\")\"\n"
	"branch=$(git symbolic-ref -q HEAD || :)\n"
	"rm -f /tmp/git/refs /tmp/git/packed-refs && mkdir -p /tmp/git/refs/heads\n"
	"[ -z \"$branch\" ] || git update-ref \"$branch\" $head\n"
	"git bundle create -q - HEAD $branch ${1:+^$1}\n"
	TELL_TREE;

/* Of two commits: what was accepted, whatever became of the files. */
const char git_script_between[] = PRELUDE OWN OBJECTS_OURS
	"to=$(git rev-parse -q --verify \"$2^{commit}\") || exit 12\n"
	"base=${1:-$(git hash-object -w -t tree /dev/null)}\n"
	"git diff-tree -p --binary --full-index -M --no-ext-diff --no-textconv --no-color --ignore-submodules=none "
	"--submodule=short --src-prefix=a/ --dst-prefix=b/ \"$base\" \"$to\"\n";

const char git_script_mails[] = PRELUDE OWN OBJECTS_OURS REFS HAS_HEAD
	"git format-patch --stdout --binary --full-index -M --no-ext-diff --no-textconv --no-color --no-signature --no-notes "
	"--src-prefix=a/ --dst-prefix=b/ ${1:+$1..}HEAD\n"
	TELL_TREE;

const char git_script_look_files[] = PRELUDE OWN OBJECTS_OURS
	"base=${1:-$(git hash-object -w -t tree /dev/null)}\n"
	"if own $theirs && [ -f $theirs/index ]; then cp $theirs/index /tmp/index; fi\n"
	"git ls-files -z >/dev/null 2>&1 || rm -f /tmp/index\n"
	"[ -f /tmp/index ] || git read-tree $base\n"
	ADD "add\n"
	"git diff-index --cached -p -a --no-renames --no-ext-diff --no-textconv --no-color --ignore-submodules=all \"$base\"\n";

const char git_script_look_commits[] = PRELUDE OWN OBJECTS_OURS REFS HAS_HEAD
	"git log -p -a -m --no-renames --no-ext-diff --no-textconv --no-color --no-notes --format=fuller ${1:+$1..}HEAD\n";

/* What is ignored is what is not in its index, by the rules that lie in its files. */
const char git_script_take[] = PRELUDE
	"cat >/tmp/names\n"
	OWN OBJECTS_OURS
	"if own $theirs && [ -f $theirs/index ]; then cp $theirs/index /tmp/index; fi\n"
	"git ls-files -z >/dev/null 2>&1 || rm -f /tmp/index\n"
	"git ls-files -z -o -i --exclude-standard --directory >/tmp/ignored\n"
	"tar -c -f - --format=gnu --ignore-failed-read --no-recursion --hard-dereference --null -C /tmp ignored -C /work -T /tmp/names\n";

const char git_script_join[] = PRELUDE
	"cd /tmp\n"
	"head -c \"$1\" >base; head -c \"$2\" >ours; cat >theirs\n"
	"git merge-file -p -q ours base theirs >merged 2>/tmp/said && r=0 || r=$?\n"
	"[ $r != 0 ] || exec cat merged\n"
	"[ $r -lt 128 ] || r=0\n"
	"echo $r\n"
	"exit 16\n";
