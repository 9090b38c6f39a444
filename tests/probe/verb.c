/*
 * verb.c - what the runner needs besides rows: a process that waits, a kernel that lacks calls.
 */
#include "probe.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Arguments: a token for the host to find us by, a process name. */
static int hold(void)
{
	if (arg(1))
		prctl(PR_SET_NAME, arg(1));
	puts("{\"id\":\"hold\"}");
	fflush(stdout);
	wait_for_host();
	return 0;
}

/*
 * Arguments: number:errno, ..., "--", a command. Runs the command as if the kernel had not
 * got these calls. Needs root: no_new_privs would change what is tested.
 */
static int mask(void)
{
	struct sock_filter code[64] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	};
	unsigned short n = 1;
	int i = 0;

	for (; arg(i) && strcmp(arg(i), "--") != 0 && n < COUNT(code) - 3; i++) {
		const char *colon = strchr(arg(i), ':');

		if (!colon)
			return errno = EINVAL, -1;
		code[n++] = (struct sock_filter)BPF_JUMP(
		    BPF_JMP | BPF_JEQ | BPF_K, (unsigned int)strtoul(arg(i), NULL, 10), 0, 1);
		code[n++] = (struct sock_filter)BPF_STMT(
		    BPF_RET | BPF_K,
		    SECCOMP_RET_ERRNO | (unsigned int)strtoul(colon + 1, NULL, 10));
	}
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = { .len = n, .filter = code };
	char *argv[64] = { 0 };

	for (size_t a = 0; arg(i) && a < COUNT(argv) - 1 && arg(i + 1 + (int)a); a++)
		argv[a] = (char *)(uintptr_t)arg(i + 1 + (int)a);
	if (!argv[0] || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
		return -1;
	execvp(argv[0], argv);
	return -1;
}

/* Arguments: files to print whole. */
static int cat(void)
{
	static char text[1 << 20];

	for (int i = 0; arg(i); i++)
		if (slurp(arg(i), text, sizeof text) > 0)
			fputs(text, stdout);
	return 0;
}

const struct row verb_rows[] = { { "hold", hold }, { "mask", mask }, { "cat", cat }, { 0 } };
