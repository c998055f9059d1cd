/* SPDX-License-Identifier: MIT */
/* script_text.h - the script that the fakes of the driver's libraries follow. */
#ifndef FAKE_SCRIPT_TEXT_H
#define FAKE_SCRIPT_TEXT_H

/* What the file FAKE_SCRIPT holds, else FAKE_SCRIPT_TEXT itself, else nothing; the caller frees it.
 */
__attribute__((visibility("hidden"))) char *fake_script_text(void);

#endif
