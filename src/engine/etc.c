/*
 * etc.c - /etc of the host image: who one is inside, and what programs cannot do without.
 *
 * An allow-list: nothing of the host's /etc is visible unless it is named here. Files are
 * copied, folders are shown read-only. A folder image has its own /etc; it only gets the
 * files that name the user, when it has none.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "engine/build.h"
#include "os/file.h"
#include "os/mount.h"

#define COPY_BYTES_MAX (512 * 1024)
#define READ_ONLY (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_RDONLY)

static const struct {
	const char *name, *text;
} written[] = {
	{ "passwd", "root:x:0:0:root:/root:/bin/sh\n"
		    "agent:x:1000:1000:agent:/home/agent:/bin/sh\n"
		    "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n" },
	{ "group", "root:x:0:\ntty:x:5:\nagent:x:1000:\nnogroup:x:65534:\n" },
	{ "hosts", "127.0.0.1 localhost caisson\n::1 localhost\n" },
	{ "hostname", "caisson\n" },
	{ "resolv.conf", "# no name server: net is denied\n" },
	{ "nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n" },
	{ "machine-id", "" },
};

/* Public, and read by tools at start. Not here on purpose: anything that can hold a token
 * (gitconfig, npmrc, pip.conf, apt), keys, accounts, or names of this network. */
static const char *const copied[] = {
	"ld.so.cache", "ld.so.conf",  "localtime",  "timezone",	  "services",	   "protocols",
	"mime.types",  "os-release",  "inputrc",    "locale.gen", "debian_version", "magic",
	"host.conf",   "gai.conf",    "shells",	    "rpc",	  "bash.bashrc",    "profile",
	"issue",       "ethertypes",  "networks",
};

static const char *const shown[] = {
	"alternatives",	   "ca-certificates", "crypto-policies", "fonts",	    "java",
	"java-11-openjdk", "java-17-openjdk", "java-21-openjdk", "java-25-openjdk", "ld.so.conf.d",
	"maven",	   "perl",	      "pki/ca-trust",	 "pki/tls/certs",   "python3",
	"python3.11",	   "python3.12",      "python3.13",	 "ssl/certs",	    "terminfo",
	"vim",		   "xml",
};

static int copy_file(int host_fd, int etc_fd, const char *name, struct err *e)
{
	char link[256];
	struct stat st;
	int r = os_fstatat(host_fd, name, &st, AT_SYMLINK_NOFOLLOW);

	if (r < 0 || (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode)))
		return 0;
	if (S_ISLNK(st.st_mode)) { /* os-release, localtime: they point into /usr */
		r = os_readlinkat(host_fd, name, link, sizeof link);
		if (r >= 0)
			r = os_symlinkat(link, etc_fd, name);
		return r < 0 ? err_sys(e, -r, "copy the link /etc/%s", name) : 0;
	}
	AUTO(fd_close) int in = os_openat(host_fd, name, O_RDONLY, 0);
	if (in < 0 || st.st_size > COPY_BYTES_MAX)
		return 0; /* not readable by everybody: not for the inside */
	AUTO(fd_close) int out = os_openat(etc_fd, name, O_WRONLY | O_CREAT | O_EXCL, 0644);
	if (out < 0)
		return err_sys(e, -out, "make /etc/%s", name);
	AUTO(freep) char *bytes = mem_alloc((size_t)st.st_size + 1);
	ssize_t n = read(in, bytes, (size_t)st.st_size);
	if (n < 0)
		return err_sys(e, errno, "read /etc/%s", name);
	r = os_write_all(out, bytes, (size_t)n);
	return r < 0 ? err_sys(e, -r, "write /etc/%s", name) : 0;
}

static int show_dir(struct build *b, int host_fd, const char *name, struct err *e)
{
	char path[64];
	struct stat st;

	if (os_fstatat(host_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
		return 0;
	snprintf(path, sizeof path, "/etc/%s", name);
	AUTO(fd_close) int target = place_target(b, path, true, NULL, e);
	return target < 0 ? -1 : place_clone(host_fd, name, target, READ_ONLY, e);
}

static int write_identity(int etc_fd, bool is_host, struct err *e)
{
	for (size_t i = 0; i < COUNT(written); i++) {
		const char *text = written[i].text;
		int r = os_make_file(etc_fd, written[i].name, text, strlen(text), 0644);

		if (r < 0 && (is_host || r != -EEXIST))
			return err_sys(e, -r, "write /etc/%s", written[i].name);
	}
	return 0;
}

int etc_make(struct build *b, struct err *e)
{
	bool is_host = b->box->plan->image == IMAGE_HOST;
	AUTO(fd_close) int etc = place_dir(b, "etc", 0755, e);

	if (etc < 0 || write_identity(etc, is_host, e) < 0)
		return -1;
	if (!is_host)
		return 0;
	AUTO(fd_close) int host = os_openat(AT_FDCWD, "/etc", O_PATH | O_DIRECTORY, 0);
	if (host < 0)
		return err_sys(e, -host, "open the host's /etc");
	for (size_t i = 0; i < COUNT(copied); i++)
		if (copy_file(host, etc, copied[i], e) < 0)
			return -1;
	for (size_t i = 0; i < COUNT(shown); i++)
		if (show_dir(b, host, shown[i], e) < 0)
			return -1;
	return os_symlinkat("/proc/self/mounts", etc, "mtab") < 0 ? err_new(e, ERR_INTERNAL, "link mtab") : 0;
}
