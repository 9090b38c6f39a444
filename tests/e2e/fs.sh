#!/bin/bash
# fs.sh - ephemeral, ro and overlay mounts; the host's files stay as they are.
. "$(dirname "$0")/lib.sh"

src=$T/src
mkdir -p "$src/sub/deep" "$src/empty" "$src/private"
cd "$src" || exit
echo one >a && echo two >b && echo three >sub/c && echo four >"sub/deep/with space" && ln -s a link && ln a hard
chmod 640 b && chmod 700 private && echo mine >private/p && chmod 755 sub/c && head -c 3000000 /dev/urandom >big
cd "$T" || exit
tree() { find "$src" -printf '%P %y %m %U %G %s %n %T@ %C@ %l\n' | sort && find "$src" -type f -exec md5sum {} +; }
tree >before
t_untouched() { # NAME
	tree >after
	t_ok "$1" diff before after
}

# ---- overlay ----
overlay() { run --fs "overlay:$src:/work" "$@"; }
overlay -- sh -c 'cat a b sub/c "sub/deep/with space" private/p; readlink link; cat link; pwd'
t_is "overlay: all is there" "$out" $'one\ntwo\nthree\nfour\nmine\na\none\n/work'
overlay -- sh -c 'stat -c "%U %G %a" . a b sub private | tr "\n" " "'
t_is "overlay: the owner is the agent" "$out" \
	"agent agent 755 agent agent 644 agent agent 640 agent agent 755 agent agent 700 "
overlay -- sh -ec 'echo new >n; echo more >>a; : >b; rm sub/c; rm -r empty; mv a a2; mkdir d; mv d d2
	chmod 600 big; ln a2 hard2; ln -sf b link; touch -d 2001-01-01 private/p; cp big big2
	dd if=/dev/zero of=big bs=1M count=1 conv=notrunc 2>/dev/null; cat a2 n; ls | tr "\n" " "'
t_is "overlay: write, delete, rename, chmod, link all work" "$status $out" \
	$'0 one\nmore\nnew\na2 b big big2 d2 hard hard2 link n private sub '
t_untouched "overlay: and the host's folder is as it was"
if has_attributes; then
	overlay -- sh -ec 'mv sub/deep deep2; mv sub sub2; rm -rf private; mkdir private; rm -r empty; mkdir empty
		cat "deep2/with space"; ls -A sub2 private empty | tr "\n" " "; ls | tr "\n" " "'
	t_is "overlay: folders too" "$status $out" \
		$'0 four\nempty:  private:  sub2: c a b big deep2 empty hard link private sub2 '
	overlay -- sh -c 'rm -rf ./* && ls -A | wc -l'
	t_is "overlay: all of it can be deleted inside" "$out" 0
else
	for name in "overlay: folders too" "overlay: all of it can be deleted inside"; do
		t_skip "$name" "$NO_ATTRIBUTES"
	done
fi
t_untouched "overlay: and not outside"
overlay -- cat a
t_is "overlay: nothing is kept for the next run" "$out" one
overlay -- sh -c 'git init -q . && git add . && git -c user.name=a -c user.email=a@example.org commit -qm all && git status --short | wc -l'
t_is "overlay: git works on top" "$status $out" "0 0"
overlay --disk 2m -- sh -c 'echo x >>big; echo $?'
t_like "overlay: what is copied up counts against disk" "$out$err" "*No space left*"
t_untouched "overlay: still as it was"
overlay -u root -- sh -c 'stat -c %U a && echo x >>a'
t_is "overlay: as root inside, root is the owner" "$status $out" "0 root"
overlay -u 777:888 -- sh -c 'stat -c "%u %g" a; echo x >>a'
t_is "overlay: or whoever was named" "$status $out" "0 777 888"

# ---- ro ----
run --fs "ro:$src:/in" -- sh -c 'cat /in/a; for c in "touch /in/n" "rm /in/a" "chmod 777 /in/a" "touch /in/a" "mv /in/a /in/z" "mkdir /in/m"; do $c; done; cat /in/a'
t_is "ro: readable" "$out" $'one\none'
t_is "ro: not changeable" "$(grep -c 'Read-only file system' <<<"$err")" 6
run --fs "ro:$src" -- cat "$src/a"
t_is "ro: at the same path unless another is given" "$out" one
run --fs "ro:$src/a:/in/file" -- sh -c 'cat /in/file; ls /in; echo x >/in/file'
t_like "ro: a file" "$out $err" $'one\nfile *Read-only file system'
run --fs "ro:$src/link:/in/file" -- cat /in/file
t_is "ro: a link is what it points to" "$out" one
echo later >"$src/later"
run --fs "ro:$src:/in" -- cat /in/later
t_is "ro: shows what is there now" "$out" later
rm "$src/later"
tree >before

# ---- several ----
run --fs ephemeral:/work --fs "ro:$src:/in" --fs "overlay:$src:/cow" --fs ephemeral:/data -- sh -c \
	'pwd; echo x >/work/x; echo x >/data/x; echo x >/cow/a; cat /in/a /cow/a; echo /in/* /cow/* | wc -w; ls /data'
t_is "several side by side" "$out" $'/work\none\nx\n16\nx'
for at in /opt/tc /opt/a/b/c /work/deep/er /var/cache/x /home/agent/.cache/x /home/other /tmp/x /run/x /srv/x /new; do
	run --fs "ephemeral:$at" -- sh -c "touch $at/f && pwd"
	t_is "a mount at $at" "$status $out" "0 $at"
done
run --fs ephemeral:/work --fs "ro:$src:/work/in" --fs ephemeral:/work/in/sub -- sh -c 'touch /work/x /work/in/sub/x && touch /work/in/x; ls /work /work/in/sub'
t_is "one in another" "$out" $'/work:\nin\nx\n\n/work/in/sub:\nx'
run --fs ephemeral:/work/in/sub --fs "ro:$src:/work/in" --fs ephemeral:/work -- sh -c 'touch /work/in/sub/x; ls /work /work/in/sub'
t_is "the order in which they are written does not matter" "$out" $'/work:\nin\n\n/work/in/sub:\nx'
run --fs "ro:$src/a:/work/a" --fs ephemeral:/work -- cat a
t_is "also for a file" "$out" one
run --fs "overlay:$src:/work" --fs ephemeral:/work/sub/cache -- sh -c 'touch sub/cache/x && ls sub'
t_is "one in an overlay" "$status $out" $'0 c\ncache\ndeep'
t_untouched "and its mount point is not left on the host"
run --fs "overlay:$src:/one" --fs "overlay:$src:/two" -- sh -c 'echo x >/one/a; cat /two/a'
t_is "two overlays of one folder are apart" "$out" one

# ---- ephemeral, -w ----
run --fs ephemeral:/data -- sh -c 'pwd; stat -c "%U %a" .; touch x; df --output=fstype . | tail -n 1'
t_is "ephemeral: the agent's, in memory" "$out" $'/data\nagent 755\ntmpfs'
run --fs "overlay:$src:/work" -w /work/sub/deep -- pwd
t_is "-w" "$out" /work/sub/deep
run -w /usr/bin -- pwd
t_is "-w anywhere" "$out" /usr/bin
run --fs "ro:$src:/in" -- pwd
t_is "without a writable mount it starts in /" "$out" /

# ---- the caller's own rights ----
if is_root; then
	# Only ids of the folder's owner are mapped: what belongs to others is nobody's inside.
	install -o 64002 -g 64002 -m 600 "$src/a" "$src/others"
	install -d -o 64002 -m 700 "$src/theirs"
	overlay -- sh -c 'stat -c %U others; cat others; ls theirs; rm -f others'
	t_is "files of somebody else in it stay closed" "$out $(grep -c 'Permission denied' <<<"$err")" "nobody 2"
	rm -r "$src/others" "$src/theirs"
else
	for how in ro overlay; do
		t_says "$how: a folder that the caller may not read" 125 "* $closed: Permission denied" --fs "$how:$closed:/in" -- true
	done
	t_says "a path through it" 125 "open $closed/file: Permission denied" --fs "ro:$closed/file:/in" -- true
	ln -s "$closed" "$T/shortcut"
	t_says "a link to it" 125 "*: Permission denied" --fs "ro:$T/shortcut:/in" -- true
	t_says "a file that the caller may not read" 125 "read /etc/shadow: Permission denied" --fs ro:/etc/shadow:/in -- true
	run --fs ro:/etc:/in -- cat /in/hostname /in/shadow
	t_like "a closed file in an open folder" "$status $err" "1 *Permission denied"
fi
t_says "a device is no source" 125 "fs: /dev/null is neither*" --fs ro:/dev/null:/in -- true
mkfifo "$T/pipe"
t_says "a pipe is no source" 125 "fs: $T/pipe is neither*" --fs "ro:$T/pipe:/in" -- true
t_says "a file is no overlay" 125 "fs: overlay:$src/a is not a folder" --fs "overlay:$src/a:/work" -- true
t_done
