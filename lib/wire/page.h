/* SPDX-License-Identifier: MIT */
/*
 * page.h - the status page: the memory that one worker shares with the host (and, for a few words,
 * with its keeper).  All data that must survive the worker's death are here.
 *
 * There is one page per slot.  It holds a header, one cell per task in flight, and the table of
 * granules of the slot's result arena.
 *
 * Sending: the host fills a cell, writes its index into `order` at the send number, stores the
 * claim word, then raises `sent_number`.  Ending: the worker completes the end record, then stores
 * the end word.  A side that is awake finds these stores by polling.  Doorbells: a side that is
 * about to sleep stores its `..._sleeps` word, checks once more, and then waits at its pipe.  After
 * each store above, the other side loads that word and rings if it can take it back to 0.  Both
 * stores precede both checks in one total order (sequentially consistent fences), so no wake-up is
 * lost.
 *
 * These words are no locks: no process ever waits on them.  Each word has one writer, except the
 * claim word and the sleeps words, which atomic exchange decides, and `progress_pending`.  With
 * option start_events the host clears a cell's `started_at` before it sends a task in that cell.
 *
 * The host does not trust a worker: it reads each of the worker's words once, into a copy, and
 * checks the copy (C17).
 */
#ifndef GPI_WIRE_PAGE_H
#define GPI_WIRE_PAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GPI_PAGE_MAGIC 0x44555047u /* "GPUD" */
#define GPI_PAGE_VERSION 1u
#define GPI_CELLS 64u
#define GPI_INLINE_SIZE 4096u
#define GPI_LABEL_SIZE 64u     /* with the terminating zero; the label precedes the task's data */
#define GPI_FAIL_TEXT_SIZE 256u
#define GPI_PROGRESS_TEXT_SIZE 96u
#define GPI_LOG_LINES 16u
#define GPI_LOG_TEXT_SIZE 200u
#define GPI_DEVICE_SIZE 512u   /* names of a worker's devices, comma-separated */
#define GPI_DEVICES 16u         /* of a worker, at most */
#define GPI_DEVICE_NAME_SIZE 32u
#define GPI_DEVICE_UUID_SIZE 96u
#define GPI_NAME_SIZE 64u      /* of a definition's name, with the terminating zero */
#define GPI_KEEPER_WORDS 4096u /* room for the keeper's words: a memory page */
#define GPI_GRANULE 65536u     /* unit of the result arena */
/* a worker pins arenas in pieces of this size; no block that fits into a piece crosses two */
#define GPI_PIN_PIECE ((uint64_t)1 << 30)

/* Claim word: (send number << 2) | state.  A slot never reuses a send number, so a stale frame
 * claims nothing. */
enum gpi_claim { GPI_SENT = 0, GPI_CLAIMED = 1, GPI_RECALLED = 2, GPI_CANCELLED = 3 };

/* End word: (send number << 8) | end. */
enum gpi_end {
    GPI_END_NONE = 0,
    GPI_END_OK = 1,
    GPI_END_FAILED = 2,
    GPI_END_EXPIRED = 3 /* the task was not started */
};

/* A canary makes a context, runs a small kernel and compares its result.  The host requests one
 * before setup, on GPUs and fakes. */
enum gpi_canary {
    GPI_CANARY_NO,
    GPI_CANARY_FIRST /* then setup, if the canary passes */,
    GPI_CANARY_ONLY /* then the worker exits */
};
enum gpi_canary_done { GPI_CANARY_NOT_YET, GPI_CANARY_PASSED, GPI_CANARY_FAILED };

#define GPI_NO_KEEPER "the keeper process ended before the worker started"

/* exit status of a worker that leaves because `fault` has ended its use of CUDA */
#define GPI_EXIT_FAULT 77

/* The place of a result. */
enum gpi_place { GPI_PLACE_NONE = 0, GPI_PLACE_CELL = 1, GPI_PLACE_ARENA = 2 };

#define GPI_CELL_EXPIRED 1u /* the alarm flag was seen; for diagnosis, no judgement uses it */
#define GPI_CELL_TEXT 2u    /* fail_text belongs to this attempt */
#define GPI_CELL_FIRST 4u   /* the task was the first member of its batch */
/* from this bit on: the number of members of its batch; 0 for a task that ran alone */
#define GPI_CELL_BATCH 8

#define GPI_ALONE 0x80u /* in `order`, beside the cell: the task must not share a batch */
#define GPI_LAST 0x40u  /* in `order`: no further task follows, so a batch need not wait */

/* A task in flight.  The host writes the first line, the worker the second. */
struct gpi_cell {
    _Alignas(64) _Atomic uint64_t claim;
    uint64_t task_id;
    uint64_t tag;
    uint64_t limit;     /* ns, UINT64_MAX = never */
    /* in the input arena; before the claim the worker reads it to prefetch the task's data */
    _Atomic uint64_t data_off;
    uint64_t data_size;
    uint32_t attempt;
    uint16_t has_label; /* at data_off - GPI_LABEL_SIZE */
    uint16_t stalls;    /* the task has a stall_limit */
    uint64_t expires_at; /* the worker must not start the task from then on; 0 = never */

    _Alignas(64) _Atomic uint64_t end;
    _Atomic uint64_t started_at;
    uint64_t ended_at;
    uint64_t stopped;     /* time within the attempt for which the keeper saw the worker stopped */
    uint64_t result_off;  /* in the result arena, if result_place is ARENA */
    uint64_t result_size;
    int32_t code;
    uint16_t result_place;
    uint16_t flags;
    _Atomic uint64_t stopped_before; /* stopped_ns when the attempt began */
};

/* The rest of a cell, beside its two hot lines.  It has 71 cache lines: an odd number, so that the
 * same field of neighbouring cells does not fall into the same cache set. */
struct gpi_cell_extra {
    _Alignas(64) _Atomic uint32_t progress_seq; /* odd while the worker writes */
    uint32_t reserved;
    _Atomic uint64_t progress; /* bits of a double */
    char progress_text[GPI_PROGRESS_TEXT_SIZE];
    char fail_text[GPI_FAIL_TEXT_SIZE];
    uint64_t stall_limit; /* written by the host; the worker reads it when the cell has `stalls` */
    /* when the ended attempt exceeded its stall limit, 0 = it did not; written only with
     * `stalls` */
    uint64_t stalled_at;
    char pad[448u - 32u - GPI_PROGRESS_TEXT_SIZE - GPI_FAIL_TEXT_SIZE]; /* seven lines together */
    unsigned char result[GPI_INLINE_SIZE];
};

struct gpi_log_line {
    uint32_t level;
    char text[GPI_LOG_TEXT_SIZE];
};

/* A granule of the result arena is free when used == freed.  The worker writes `used`, the host
 * `freed`. */
struct gpi_granule {
    _Atomic uint32_t used;
    _Atomic uint32_t freed;
};

struct gpi_page {
    /* written by the host before the first start */
    uint32_t magic;
    uint32_t version;
    uint32_t slot;
    uint32_t definition; /* index among the definitions of gpud_init */
    uint64_t seed;
    uint64_t setup_off; /* in the input arena, or in memory of its own */
    uint64_t setup_size;
    uint64_t input_size;  /* of the arenas, in bytes */
    uint64_t result_size;
    char device[GPI_DEVICE_SIZE];
    /* of the definition, for an executed worker; "" = its only definition */
    char name[GPI_NAME_SIZE];
    uint32_t device_kind;     /* enum gpud_device_kind: of all its devices */
    uint32_t cuda;            /* bits of enum gpud_cuda */
    char uuid[GPI_DEVICES][GPI_DEVICE_UUID_SIZE]; /* of its devices, in order */

    /* written by the host at any time */
    _Alignas(64) _Atomic uint32_t incarnation;
    _Atomic uint32_t log_read;
    _Atomic uint64_t share;  /* bytes of the result arena the worker may use */
    _Atomic uint64_t cancel; /* bit per cell: the host cancels the task that runs in it */
    uint64_t first_number;   /* the first send number of this incarnation */
    uint32_t canary;         /* enum gpi_canary: whether this incarnation runs one before setup */
    uint32_t fake_fails;     /* of a fake device: 1 = its script lets the canary fail now */
    uint64_t fake_boot;      /* ns that its canary and boot take before setup */
    uint64_t batch_wait;     /* ns; before the first start */
    uint32_t max_batch;
    _Atomic uint32_t closing; /* 1 = the worker must stop waiting for room */
    uint64_t result_wait;     /* ns; before the first start */
    /* enum gpud_visible: the form of CUDA_VISIBLE_DEVICES for this incarnation.  AUTO: numbers,
     * unless there is an MPS daemon; the keeper's child replaces AUTO by one of the other values
     * before it becomes a worker or program */
    uint32_t visible;
    uint32_t number[GPI_DEVICES]; /* of its GPUs, see device/numbers.h */
    uint32_t start_events; /* 1 = a start rings for a host that sleeps; before the first start */

    _Alignas(64) _Atomic uint64_t sent_number; /* of the newest task sent */
    _Atomic uint32_t host_cpu; /* the CPU from which the host last sent */
    /* the cell of send number n, with ALONE and LAST, at n % 64; the claim of a stale one fails */
    _Atomic uint8_t order[GPI_CELLS];

    _Alignas(64) _Atomic uint32_t worker_sleeps;
    _Atomic uint32_t worker_wants_room; /* it sleeps within a task until the arena has room */
    _Alignas(64) _Atomic uint32_t host_sleeps;

    /* written by the keeper; a page of its own, which the worker can only read */
    _Alignas(GPI_KEEPER_WORDS) _Atomic uint64_t stopped_ns; /* this incarnation's ended stops */
    _Atomic uint64_t stopped_since; /* 0 = not stopped now */
    _Atomic uint32_t stops;
    _Atomic uint32_t continues;

    /* written by the worker */
    _Alignas(GPI_KEEPER_WORDS) _Atomic uint32_t log_written;
    _Atomic uint32_t log_dropped;
    _Atomic uint32_t granules_used; /* one more than the highest index it ever took */
    /* bytes of the result that waits for room; valid with NEWS_ROOM */
    _Atomic uint64_t room_wanted;
    _Atomic uint32_t setup_done; /* 1 = ready, 2 = failed */
    _Atomic uint32_t cleanup_done;
    /* enum gpi_canary_done; FAILED, like setup, also where the devices could not be opened */
    _Atomic uint32_t canary_done;
    char canary_text[GPI_FAIL_TEXT_SIZE]; /* why the canary failed */
    /* 1 = the driver counts otherwise: under its number CUDA has no GPU, or another one */
    _Atomic uint32_t miscounted;
    /* CUDA's code of an error that ends the worker, 0 = none; stored before the end of the task
     * that is charged with it */
    _Atomic uint32_t fault;
    char fault_text[GPI_FAIL_TEXT_SIZE]; /* name and text of that error */
    int32_t setup_code;
    char setup_text[GPI_FAIL_TEXT_SIZE];
    char leave_text[GPI_FAIL_TEXT_SIZE]; /* why the worker exited on its own; or "" */
    struct gpi_log_line log[GPI_LOG_LINES];
    /* of the call that runs, if it has a stall limit */
    _Atomic uint64_t progress_at;      /* the last progress; before the first one, the start */
    _Atomic uint64_t progress_stopped; /* stopped_ns at that time */
    _Atomic uint64_t stalled_at;       /* when the call exceeded its stall limit, 0 = it has not */

    /* bit per cell: the worker sets it, and rings only if it was clear */
    _Alignas(64) _Atomic uint64_t progress_pending;

    struct gpi_cell cell[GPI_CELLS];
    struct gpi_cell_extra extra[GPI_CELLS];
    struct gpi_granule granule[]; /* result_size / GPI_GRANULE of them */
};

_Static_assert(sizeof(struct gpi_cell) == 128, "two lines a cell");
_Static_assert(sizeof(struct gpi_cell_extra) == (size_t)71 * 64, "an odd number of lines");

static inline uint64_t gpi_claim_word(uint64_t number, enum gpi_claim state)
{
    return number << 2 | (uint64_t)state;
}

static inline uint64_t gpi_end_word(uint64_t number, enum gpi_end end)
{
    return number << 8 | (uint64_t)end;
}

/* Bytes of a page whose result arena has `result_size` bytes. */
size_t gpi_page_size(uint64_t result_size);

/* Call it after a store that the other side must see: returns whether to ring its doorbell. */
bool gpi_page_must_ring(_Atomic uint32_t *sleeps);

/* Moves a sent task to `to`.  The side that gets true decides the task's fate. */
bool gpi_cell_take(struct gpi_cell *c, uint64_t number, enum gpi_claim to);

/* A checked copy of the end record that the worker wrote for an attempt. */
struct gpi_ending {
    enum gpi_end end;
    uint64_t started_at, ended_at, stopped;
    uint64_t result_off, result_size;
    enum gpi_place result_place;
    int32_t code;
    uint32_t batch;  /* members of its batch, itself included */
    bool first;      /* the first member */
    bool has_text;
    bool expired; /* the alarm flag was seen; no judgement uses it */
    /* 0 = the stall limit held; set by gpi_cell_stalled, for tasks with a stall limit */
    uint64_t stalled_at;
};

enum gpi_look { GPI_LOOK_NOT_YET, GPI_LOOK_ENDED, GPI_LOOK_BAD };

/* Reads a cell's end record.  `sent_at` and `now` bound its times, `result_arena` its places.
 * Returns BAD if no correct worker can have written the record. */
static inline enum gpi_look gpi_cell_look(const struct gpi_cell *c, uint64_t number,
                                          uint64_t sent_at, uint64_t now, uint64_t result_arena,
                                          struct gpi_ending *ret);
/* The same for a record whose times or places need a second look. */
enum gpi_look gpi_ending_check(struct gpi_ending *e, uint64_t sent_at, uint64_t now,
                               uint64_t result_arena);

/* Reads when an ended attempt exceeded its stall limit, 0 = it did not.  Returns false if the time
 * is impossible. */
bool gpi_cell_stalled(const struct gpi_cell_extra *x, uint64_t stall_limit, struct gpi_ending *e);

/* Records a failed setup, in a worker or in a process that was to become one; the caller exits. */
void gpi_page_setup_failed(struct gpi_page *p, int code, const char *text);

/* Copies a zero-terminated text of at most `size` - 1 bytes out of shared memory. */
void gpi_page_text(char *to, const char *from, size_t size);

/* Reads progress and its text.  Returns false while the worker writes them, or outside 0 to 1. */
bool gpi_cell_progress(const struct gpi_cell_extra *x, double *ret_fraction, char *text);

/* Returns true if the attempt has ended as most do: well, and without a result, a text, a batch or
 * a stop.  Then its times are left to check. */
static inline bool gpi_cell_ended_plainly(const struct gpi_cell *c, uint64_t number)
{
    const uint64_t word = atomic_load_explicit(&c->end, memory_order_acquire);

    return word == (number << 8 | GPI_END_OK) &&
           (*(const volatile uint64_t *)&c->stopped | *(const volatile uint64_t *)&c->result_size |
            *(const volatile uint16_t *)&c->result_place |
            *(const volatile uint16_t *)&c->flags) == 0;
}

/* By a copy: so the caller's record can stay in registers. */
static inline enum gpi_look gpi_ending_look(struct gpi_ending *e, uint64_t sent_at, uint64_t now,
                                            uint64_t result_arena)
{
    struct gpi_ending copy = *e;
    const enum gpi_look look = gpi_ending_check(&copy, sent_at, now, result_arena);

    *e = copy;
    return look;
}

/* Inline: one for each task. */
static inline enum gpi_look gpi_cell_look(const struct gpi_cell *c, uint64_t number,
                                          uint64_t sent_at, uint64_t now, uint64_t result_arena,
                                          struct gpi_ending *ret)
{
    const uint64_t word = atomic_load_explicit(&c->end, memory_order_acquire);
    const uint32_t end = word & 255;
    uint16_t flags;

    if (word >> 8 != number)
        return GPI_LOOK_NOT_YET;
    if (end < GPI_END_OK || end > GPI_END_EXPIRED)
        return GPI_LOOK_BAD;
    flags = *(const volatile uint16_t *)&c->flags;
    *ret = (struct gpi_ending){
        .end = (enum gpi_end)end,
        .started_at = atomic_load_explicit(&c->started_at, memory_order_relaxed),
        .ended_at = *(const volatile uint64_t *)&c->ended_at,
        .stopped = *(const volatile uint64_t *)&c->stopped,
        .result_off = *(const volatile uint64_t *)&c->result_off,
        .result_size = *(const volatile uint64_t *)&c->result_size,
        .result_place = (enum gpi_place) * (const volatile uint16_t *)&c->result_place,
        .code = *(const volatile int32_t *)&c->code,
        .has_text = (flags & GPI_CELL_TEXT) != 0,
        .expired = (flags & GPI_CELL_EXPIRED) != 0,
        .first = (flags & GPI_CELL_FIRST) != 0,
        .batch = flags >> GPI_CELL_BATCH,
    };
    ret->batch += ret->batch == 0;
    if (ret->started_at >= sent_at && ret->ended_at >= ret->started_at && ret->ended_at <= now &&
        ret->batch <= GPI_CELLS && ret->stopped == 0 &&
        (ret->result_size | ret->result_place) == 0)
        return GPI_LOOK_ENDED;
    return gpi_ending_look(ret, sent_at, now, result_arena);
}

#endif
