/*
 * terminal.h - the caller's terminal in raw mode, and back in every case.
 */
#pragma once

#include "base/base.h"

bool terminal_size(uint16_t *rows, uint16_t *cols); /* false: no terminal */
void terminal_raw(void); /* standard input; restored by terminal_restore() and at exit */
void terminal_restore(void);
