/* SPDX-License-Identifier: MIT */
/* out.h - what is printed: tables for people, JSON for programs, and whether it has arrived. */
#ifndef OUT_H
#define OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Makes descriptors 0, 1 and 2 exist, so that no other file takes their numbers; writing to one
 * that was closed fails. */
void out_guard(void);

/* Sends what was printed. EXIT_OK, also where the reader has gone: it had what it
 * wanted. EXIT_FAILED after saying why. */
int out_flush(void);
bool out_reader_gone(void);

bool out_terminal(void); /* whether escape codes are in order */
size_t out_width(void);  /* characters of a line of the terminal; 0: not known, or none */

/* ---- words ---- */

char *bytes_text(uint64_t bytes, char text[static 24]); /* "1.5 GiB" */
char *duration_text(uint64_t ns, char text[static 24]); /* "12 ms" */
void put_plain(const char *text);                       /* what steers a terminal as \x1b */

/* ---- a table: columns as wide as their widest cell ---- */

#define COLUMNS_MAX 16u

struct column {
    const char *head;
    bool right;          /* aligned, as numbers are */
    unsigned char spare; /* left out where a line is too short, the highest first; 0: never */
};

struct table {
    const struct column *column;
    size_t columns, cells, room, notes, note_room;
    size_t most; /* characters of a line: the last column is cut to it; 0 = no limit */
    char **cell; /* a row after another */
    struct note {
        size_t row; /* below which it is printed */
        char text[192];
    } * note;
};

void table_init(struct table *t, const struct column *column, size_t columns);
void table_cell(struct table *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* below the row that was ended last */
void table_note(struct table *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* and frees */
void table_print(struct table *t);

/* ---- a JSON document (RFC 8259), on one line ---- */

/* Each value is preceded by its key in an object; key NULL in an array. */
void doc_open(const char *key, char bracket);
void doc_close(char bracket);
void doc_end(void); /* of the document */
/* NULL: null.  Bytes that are no UTF-8 become U+FFFD */
void doc_text(const char *key, const char *text);
void doc_number(const char *key, uint64_t number);
void doc_decimal(const char *key, double number);
void doc_bool(const char *key, bool truth);
void doc_null(const char *key);

#endif
