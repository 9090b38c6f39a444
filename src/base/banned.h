/*
 * banned.h - calls that do not compile here. Included last by base.h.
 *
 * The name that the compiler prints says what to use: docs/CONVENTIONS.md, "Text".
 */
#pragma once

#define BANNED(name) name##_is_banned_see_docs_CONVENTIONS_md

#undef strcpy
#define strcpy(...) BANNED(strcpy)
#undef strcat
#define strcat(...) BANNED(strcat)
#undef strncpy
#define strncpy(...) BANNED(strncpy)
#undef strncat
#define strncat(...) BANNED(strncat)
#undef sprintf
#define sprintf(...) BANNED(sprintf)
#undef vsprintf
#define vsprintf(...) BANNED(vsprintf)
#undef strtok
#define strtok(...) BANNED(strtok)
#undef atoi
#define atoi(...) BANNED(atoi)
#undef atol
#define atol(...) BANNED(atol)
#undef atof
#define atof(...) BANNED(atof)
#undef gets
#define gets(...) BANNED(gets)
#undef system
#define system(...) BANNED(system)
#undef popen
#define popen(...) BANNED(popen)
#undef tmpnam
#define tmpnam(...) BANNED(tmpnam)
#undef alloca
#define alloca(...) BANNED(alloca)
