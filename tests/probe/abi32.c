/*
 * abi32.c - a whole program for i386: asks for its pid and exits with 42.
 *
 * Built with -m32 -nostdlib, so that no 32-bit C library is needed.
 */
void _start(void);

void _start(void)
{
	int r;

	__asm__ volatile("int $0x80" : "=a"(r) : "a"(20));
	__asm__ volatile("int $0x80" : : "a"(1), "b"(r > 0 ? 42 : 1));
	__builtin_unreachable();
}
