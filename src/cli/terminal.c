#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

static struct termios saved;
static bool is_saved, is_raw;

bool terminal_size(uint16_t *rows, uint16_t *cols)
{
	struct winsize ws;

	if (ioctl(STDIN_FILENO, TIOCGWINSZ, &ws) < 0)
		return false;
	*rows = ws.ws_row;
	*cols = ws.ws_col;
	return true;
}

void terminal_restore(void)
{
	if (is_raw)
		tcsetattr(STDIN_FILENO, TCSADRAIN, &saved);
	is_raw = false;
}

void terminal_raw(void)
{
	if (!is_saved) {
		if (tcgetattr(STDIN_FILENO, &saved) < 0)
			return;
		is_saved = true;
		atexit(terminal_restore);
	}
	struct termios raw = saved;

	cfmakeraw(&raw);
	is_raw = tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
}
