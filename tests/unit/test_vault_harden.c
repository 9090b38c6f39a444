#include "vault/harden.h"

#include <sys/socket.h>
#include <sys/syscall.h>

#include "os/caps.h"
#include "test_vault.h"

static void say(struct str *out, const char *what, long r)
{
	str_addf(out, "%s %s\n", what, r >= 0 ? "ok" : strerrorname_np(errno));
}

TEST(it_has_rights_over_files_and_over_nothing_else)
{
	struct str out = { .max = 4096 };
	struct vault v = { .uid = 0 };
	struct err e = { 0 };
	char status[4096];

	if (geteuid() != 0)
		SKIP("needs root");
	CHECK_INT(harden_start(&e), 0);
	CHECK_INT(harden_open(&v, &e), 0);
	CHECK(os_read_file(AT_FDCWD, "/proc/self/status", status, sizeof status) > 0);
	/* chown dac_override dac_read_search fowner fsetid setgid setuid sys_admin mknod lease
	 * setfcap */
	CHECK(strstr(status, "CapEff:\t00000000982000df"));
	CHECK(strstr(status, "CapBnd:\t00000000982000df"));
	say(&out, "execve", syscall(SYS_execve, "/bin/true", NULL, NULL));
	say(&out, "fork", syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
	say(&out, "socket", socket(AF_INET, SOCK_STREAM, 0));
	say(&out, "kill", syscall(SYS_kill, getpid(), 0));
	say(&out, "ptrace", syscall(SYS_ptrace, 0, 0, 0, 0));
	say(&out, "setns", syscall(SYS_setns, 0, 0));
	say(&out, "unshare", syscall(SYS_unshare, 0));
	say(&out, "bpf", syscall(SYS_bpf, 0, NULL, 0));
	say(&out, "module", syscall(SYS_finit_module, -1, "", 0));
	say(&out, "tty", syscall(SYS_ioctl, 0, 0x5412, ""));
	say(&out, "open", syscall(SYS_openat, AT_FDCWD, "/", O_RDONLY, 0));
	CHECK_STR(str_text(&out),
	          "execve ENOSYS\nfork ENOSYS\nsocket ENOSYS\nkill ENOSYS\nptrace ENOSYS\n"
	          "setns ENOSYS\nunshare ENOSYS\nbpf ENOSYS\nmodule ENOSYS\ntty EPERM\nopen ok\n");
	str_done(&out);
}
