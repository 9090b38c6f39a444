#!/bin/bash
# images.sh - caisson image: import, ls, rm; and commands in what was imported.
. "$(dirname "$0")/lib.sh"

make() { PYTHONDONTWRITEBYTECODE=1 python3 "$tests/oci.py" "$@"; }
image() { # ARGS...: $status, $out, $err
	bounded "$caisson" image "$@" >"$T/out" 2>"$T/err" </dev/null
	status=$?
	out=$(cat "$T/out") err=$(cat "$T/err")
}
t_image() { # NAME WANT ARGS...
	image "${@:3}"
	t_is "$1" "$status $out$err" "$2"
}
inside() { run --image "$1" -- sh -c "$2"; }

make root root
make layout layout
tar -C root -cf root.tar .
gzip -k root.tar

t_image "nothing is there" "0 NAME  SOURCE  SIZE  FILES  AGE  DIGEST" ls
t_image "a tar" "0 plain" import plain root.tar
t_image "packed by gzip" "0 gz" import gz root.tar.gz
t_image "an OCI layout, a folder" "0 oci" import oci oci:layout
tar -C layout -czf layout.tgz .
t_image "an OCI layout, a tar of one" "0 oci-tar" import oci-tar oci:layout.tgz --ref small
image import stdin - <root.tar
bounded "$caisson" image import stdin - <root.tar.gz >"$T/out" 2>&1
t_is "from standard input" "$?$(cat "$T/out")" 0stdin
image ls
t_is "they are listed by name" "$(awk 'NR > 1 { print $1, $2 }' <<<"$out" | tr '\n' ' ')" "gz tar oci oci oci-tar oci plain tar stdin tar "
for name in plain gz oci oci-tar stdin; do
	inside "$name" 'cat /etc/motd; id -u'
	t_is "a command in $name" "$out" $'from the image\n1000'
done
inside oci 'ls /etc /opt; cat /etc/kind/in; test ! -e /usr/bin/env && echo nothing of the host'
t_is "whiteouts hide what is below" "$(tr '\n' ' ' <<<"$out")" "/etc: again issue kind motd mtab passwd  /opt: new 2nothing of the host "
inside plain 'touch /etc/x 2>/dev/null; ls /etc/x 2>/dev/null; stat -c %a /bin/busybox'
t_is "not writable for its user, and nothing is setuid" "$out" 755
if is_root; then
	run --image plain --user web -- sh -c 'id -u; id -g'
	t_is "a user of the image" "$out" $'33\n34'
	run --image plain --profile rootful --user root -- sh -c 'echo mine >/etc/motd; cat /etc/motd'
	t_is "root inside may write" "$out" mine
	inside plain 'cat /etc/motd'
	t_is "and leaves nothing" "$out" "from the image"
fi

# ---- what is refused ----
t_says "no such image: the nearest" 125 'image: there is no "plian"; did you mean "plain"?' --image plian -- true
t_image "a name that is taken" "1 caisson: there is an image plain; replace it?" import plain root.tar
t_image "a name that is none" '1 caisson: "host" is not a name for an image (letters, digits, then . _ - : / too; not host, dir: or oci:)' import host root.tar
t_image "a folder" "125 caisson: root is a folder: use it as --image dir:root, or as oci:root when it is an OCI layout" import x root
image import x oci:root
t_like "a folder that is no layout" "$status $err" "125 caisson: root: open oci-layout: No such file or directory"
image import x nowhere
t_like "no such file" "$status $err" "125 caisson: open nowhere: No such file or directory"
image import x oci:layout --ref other
t_like "no such image in a layout" "$status $err" "125 caisson: layout: no image other for linux/*; there are: small"
ln -s /etc/passwd evil
mkdir -p bad/evil
echo x >bad/evil/passwd
tar -cf bad.tar evil
tar -C bad -rf bad.tar evil/passwd
t_image "an archive that means harm" "1 caisson: evil/passwd: through a link" import x bad.tar
head -c 30000 root.tar.gz >cut.tgz
t_image "one that is cut" "1 caisson: the packed bytes end early" import x cut.tgz
blob=$(find layout/blobs -type f -size +100k | head -n 1)
cp -r layout broken
printf x | dd of="broken/${blob#layout/}" bs=1 seek=1000 conv=notrunc 2>/dev/null
image import x oci:broken
t_like "a blob that is not what it is called" "$status $err" "1 caisson: blob ????????????: its digest is not the one it has"
image ls
t_is "of none of them anything is left" "$(wc -l <<<"$out")" 6
if [ -r "$E2E_BASE/$role/state/trees" ]; then
	trees() { find "$E2E_BASE/$role/state/trees" -mindepth 1 -maxdepth 1 ! -name 1 | wc -l; }
	five() { [ "$(trees)" = 5 ]; }
	t_ok "nor on the disk" eventually five
fi

# ---- replace and remove ----
echo newer >root/etc/motd
tar -C root -cf newer.tar .
bounded "$caisson" create --key keeps --image plain >/dev/null 2>&1
t_image "replaced when asked" "0 plain" import --replace plain newer.tar
inside plain 'cat /etc/motd'
t_is "the new one" "$out" newer
t_is "who has the old one keeps it" "$(bounded "$caisson" exec keeps -- cat /etc/motd 2>/dev/null)" "from the image"
bounded "$caisson" replace keeps >/dev/null 2>&1
image rm plain
t_like "not while a sandbox has it" "$status $err" "1 caisson: plain: image: sandbox sb_* has it"
bounded "$caisson" rm keeps >/dev/null 2>&1
t_image "removed" "0 " rm plain gz oci oci-tar stdin
t_says "and gone" 125 'image: there is no "plain"*' --image plain -- true

# ---- what other programs make ----
# umoci makes layers as Docker does, skopeo archives of them.
other() { "$@" >"$T/said" 2>&1 || sed 's/^/# /' "$T/said"; }
as=()
is_root || as=(--rootless)
other umoci init --layout made
other umoci new --image made:one
printf 'first\n' >first
printf 'second\n' >second
other umoci unpack "${as[@]}" --image made:one bundle
cp -a root/. bundle/rootfs/
other umoci repack --image made:one bundle
other umoci insert "${as[@]}" --image made:one first /etc/first
other umoci insert "${as[@]}" --image made:one second /etc/second
other umoci insert "${as[@]}" --image made:one --whiteout /etc/first
t_image "what umoci makes" "0 umoci" import umoci oci:made
inside umoci 'cat /etc/second; test -e /etc/first || echo hidden; cat /etc/passwd | wc -l'
t_is "works" "$out" $'second\nhidden\n2'
other skopeo --insecure-policy --tmpdir "$T" copy oci:made:one oci-archive:made.tar:two
t_image "what skopeo makes" "0 skopeo" import skopeo oci:made.tar --ref two
inside skopeo 'cat /etc/second'
t_is "works too" "$out" second
t_image "removed as well" "0 " rm umoci skopeo
t_done
