/* SPDX-License-Identifier: MIT */
/*
 * event.h - the words between the core and its caller: states of a slot, events, actions, ends.
 *
 * Each list stands here once.  Enumerators, texts, the log, its parser and the scripts of
 * tests/sched come from it.  An event or action is a row of numbers: which of its fields count is
 * the third column, and what `how` and `what` mean is the words behind it.  Words that are bits are
 * separated by '+' in a log.
 */
#ifndef GPI_SCHED_EVENT_H
#define GPI_SCHED_EVENT_H

#include <stdint.h>

#define GPI_NOWHERE UINT32_MAX /* no slot, no device */

/* ---- the fields ---- */

enum gpi_sched_field {
    GPI_F_SLOT = 1,        /* s=  */
    GPI_F_INCARNATION = 2, /* i=  which worker of the slot, from 1 */
    GPI_F_TASK = 4,        /* t=  the task's record, a number below settings.tasks */
    GPI_F_DEVICE = 8,      /* d=  */
    GPI_F_CELL = 16,       /* c=  the task's place at its worker, below 64 */
    GPI_F_HOW = 32,        /* how=  a word of the first list; '+' between words that are bits */
    GPI_F_WHAT = 64,       /* what= one word of the second list */
    GPI_F_AT = 128         /* at=  ns on the caller's clock; "never" */
};
#define GPI_SCHED_FIELDS(X) \
    X(SLOT, slot, "s") X(INCARNATION, incarnation, "i") X(TASK, task, "t") \
    X(DEVICE, device, "d") X(CELL, cell, "c") X(HOW, how, "how") X(WHAT, what, "what") \
    X(AT, at, "at")

/* ---- states ---- */

/*
 * The life of a slot.  Every slot is in one of these states; docs/explain/core.md has the table of
 * what each event does in each state.
 */
#define GPI_LIFE_MAP(X) \
    X(OFF)      /* a slot that was never wanted */ \
    X(WAIT)     /* wants a worker; lacks its keeper, its devices' memory, or its turn */ \
    X(BOOT)     /* START is sent, the executed program has not called gpud_init */ \
    X(SETUP)    /* canary and setup run */ \
    X(UP)       /* takes tasks */ \
    X(LEAVE)    /* takes no task; its worker ends when it has none */ \
    X(END)      /* END is sent, cleanup runs */ \
    X(DOOMED)   /* a kill is ordered for a task's limit; the keeper may still spare the worker */ \
    X(KILL)     /* a kill is ordered for good, or the keeper kills on its own */ \
    X(SWEEP)    /* the worker is dead, the processes that it started are being killed */ \
    X(LOST)     /* the keeper is gone with its worker; KEEPER_GONE is awaited */ \
    X(BACKOFF)  /* waits for the time of its next start */ \
    X(PARKED)   /* its devices do not let it have a worker */ \
    X(FAILED)   /* given up: no worker until the user returns its device */ \
    X(STUCK)    /* its worker survived SIGKILL: out of use for good */ \
    X(STOPPED)  /* the dispatcher is closed, and the slot has no worker */ \
    X(REMOVED)  /* its device is removed; WANT revives it */
#define GPI_X_LIFE(name) GPI_LIFE_##name,
enum gpi_life { GPI_LIFE_MAP(GPI_X_LIFE) GPI_LIVES };
#undef GPI_X_LIFE

/* ---- events: facts that the caller has checked ---- */

/* X(NAME, fields, words of how, whether these are bits, words of what)
 *
 * Slot, keeper, spawner:
 *   WANT          the slot is to have a worker: at create, and when its devices are added
 *   KEEPER_UP     the slot has a keeper that can be asked; answer of MAKE
 *   KEEPER_NO     no keeper could be made; answer of MAKE
 *   KEEPER_LOST   the keeper can no longer be asked: it has died, is stopped, or a send failed.
 *                 Its worker, if it has one, is dying.  KEEPER_GONE follows, or silence
 *   KEEPER_GONE   the keeper and everything that it had started is gone.  UNFIT: it could not
 *                 begin to work; VAIN: it was stopped and has started no worker.  With a worker
 *                 this is its death: the drain comes before it, as before EXITED
 *   SPAWNER_GONE  no keeper can be made any more.  The drain of every slot in LOST comes before it
 *
 * Worker (each with the slot's incarnation; one of an earlier worker is counted and dropped):
 *   START_NO      the keeper could not start a worker
 *   ANSWERED      the executed program has called gpud_init
 *   SETUP_OK      setup has succeeded, and the keeper has reported the start.  PASSED: so has the
 *                 canary
 *   EXITED        the worker is reaped, and all that it started is swept.  BY_US: the keeper's kill
 *                 at a limit ended it.  PASSED, FAILED: its canary.  FAULT: it reported a sticky
 *                 error of its device.  SPOILT: it had overwritten its page.  The drain comes
 *                 before: ends of ended tasks, CAME_BACK of unclaimed ones; the rest was running
 *   SWEEPING      the worker is dead, the sweep takes longer
 *   SPARED        the task of a KILL_AT had ended in time, and the keeper has not killed
 *   OVERDUE       the worker was stopped for stop_limit, and its keeper kills it
 *   STILL         YES: the worker is stopped or has ended, and must get no task; NO: it goes on
 *   BROKE         its page or a frame cannot be: a kill
 *
 * Tasks and limits:
 *   CAME_BACK     the worker had not claimed the task, and no longer can.  Answer of RECALL and
 *                 HOLD; also unasked, and in a drain
 *   CLAIMED       answer of RECALL: the worker has the task
 *   RUNNING       answer of LOOK and HOLD, for each running task: at = when its soft limit passes
 *   LOOKED        ends the answer of LOOK; at = when to look again at tasks that do not run
 *   HELD          ends the answer of HOLD: no task is left that could still begin
 *   CANCEL        the user cancels the task
 *
 * Answers:
 *   SURVIVED      of GIVE_UP: the worker is still there.  The drain comes before it
 *   UNSENT        of START, END: the send failed.  KEEPER_LOST or a kill is the consequence
 *   BEGUN         of MAKE, START, END, KILL, KILL_AT: sent, and `now` is when
 *
 * Devices (an answer of JUDGE, and of readings):
 *   DEVICE        how it may be used now, and what is to happen to its workers.  DOUBT: a canary
 *                 first; OUT: canaries bring it back; DEAD: only a reading can
 *   DRAIN, RETURN, REMOVE   the user's wish
 *   TRY           a canary is due on a device that is OUT
 *   MEMORY        the memory of the slot's devices is free again, or nobody can tell
 *
 * Dispatcher:
 *   CLOSE         intake ends; at = the close limit
 *   SOURCE        a source feeds tasks: while it does, no close is complete
 *   TIME          due has come, and all that was to be heard was heard
 */
#define GPI_EVENT_MAP(X) \
    X(WANT, GPI_F_SLOT, "", 0, "") \
    X(KEEPER_UP, GPI_F_SLOT, "", 0, "") \
    X(KEEPER_NO, GPI_F_SLOT, "", 0, "") \
    X(KEEPER_LOST, GPI_F_SLOT, "", 0, "") \
    X(KEEPER_GONE, GPI_F_SLOT | GPI_F_HOW, "plain unfit vain", 0, "") \
    X(SPAWNER_GONE, 0, "", 0, "") \
    X(START_NO, GPI_F_SLOT | GPI_F_INCARNATION, "", 0, "") \
    X(ANSWERED, GPI_F_SLOT | GPI_F_INCARNATION, "", 0, "") \
    X(SETUP_OK, GPI_F_SLOT | GPI_F_INCARNATION | GPI_F_HOW, "passed", 1, "") \
    X(EXITED, GPI_F_SLOT | GPI_F_INCARNATION | GPI_F_HOW, "passed failed by_us fault spoilt", 1, \
      "") \
    X(SWEEPING, GPI_F_SLOT | GPI_F_INCARNATION, "", 0, "") \
    X(SPARED, GPI_F_SLOT | GPI_F_INCARNATION, "", 0, "") \
    X(OVERDUE, GPI_F_SLOT | GPI_F_INCARNATION, "", 0, "") \
    X(STILL, GPI_F_SLOT | GPI_F_INCARNATION | GPI_F_HOW, "no yes", 0, "") \
    X(BROKE, GPI_F_SLOT, "", 0, "") \
    X(CAME_BACK, GPI_F_TASK, "", 0, "") \
    X(CLAIMED, GPI_F_TASK, "", 0, "") \
    X(RUNNING, GPI_F_SLOT | GPI_F_TASK | GPI_F_AT, "", 0, "") \
    X(LOOKED, GPI_F_SLOT | GPI_F_AT, "", 0, "") \
    X(HELD, GPI_F_SLOT, "", 0, "") \
    X(CANCEL, GPI_F_TASK | GPI_F_HOW, "soft hard", 0, "") \
    X(SURVIVED, GPI_F_SLOT, "", 0, "") \
    X(UNSENT, GPI_F_SLOT, "", 0, "") \
    X(BEGUN, GPI_F_SLOT, "", 0, "") \
    X(DEVICE, GPI_F_DEVICE | GPI_F_HOW | GPI_F_WHAT, "ok doubt out dead", 0, "none leave kill") \
    X(DRAIN, GPI_F_DEVICE, "", 0, "") \
    X(RETURN, GPI_F_DEVICE, "", 0, "") \
    X(REMOVE, GPI_F_DEVICE, "", 0, "") \
    X(TRY, GPI_F_DEVICE, "", 0, "") \
    X(MEMORY, GPI_F_SLOT, "", 0, "") \
    X(CLOSE, GPI_F_HOW | GPI_F_AT, "all running now", 0, "") \
    X(SOURCE, GPI_F_HOW, "no yes", 0, "") \
    X(TIME, 0, "", 0, "")
#define GPI_X_EVENT(name, fields, how, bits, what) GPI_EV_##name,
enum gpi_sched_event_kind { GPI_EVENT_MAP(GPI_X_EVENT) GPI_EVENTS };
#undef GPI_X_EVENT

enum gpi_gone { GPI_GONE_PLAIN, GPI_GONE_UNFIT, GPI_GONE_VAIN };
enum gpi_exited {
    GPI_EXITED_PASSED = 1, GPI_EXITED_FAILED = 2, GPI_EXITED_BY_US = 4, GPI_EXITED_FAULT = 8,
    GPI_EXITED_SPOILT = 16
};
enum gpi_may { GPI_MAY_OK, GPI_MAY_DOUBT, GPI_MAY_OUT, GPI_MAY_DEAD };
enum gpi_use { GPI_USE_NONE, GPI_USE_LEAVE, GPI_USE_KILL };
enum gpi_soft { GPI_CANCEL_SOFT, GPI_CANCEL_HARD };
enum gpi_close { GPI_CLOSE_ALL, GPI_CLOSE_RUNNING, GPI_CLOSE_NOW };

/* ---- actions: what the caller performs, in this order ---- */

/* X(NAME, fields, words of how, whether these are bits)
 *
 *   MAKE         asks the spawner for a keeper.  Answer: BEGUN or KEEPER_NO; later KEEPER_UP, _NO
 *   DISMISS      ends the keeper.  Later: KEEPER_GONE
 *   START        asks the keeper for a worker.  FIRST: a canary precedes its setup; ONLY: there is
 *                nothing but the canary.  Answer: BEGUN or UNSENT
 *   RECALL       takes an unclaimed task back.  Answer: CAME_BACK, CLAIMED, or its end
 *   LOOK         reads the cells.  Answer: ends, then RUNNING for each, then LOOKED
 *   HOLD         first takes back all that is unclaimed.  Answer: ends, CAME_BACK for each, RUNNING
 *                for each, HELD
 *   ALARM        interrupts the running task, which is cancelled.  No answer
 *   KILL, KILL_AT   orders the keeper to kill the worker: now, or at a time unless the task has
 *                ended by then.  Answer: BEGUN or KEEPER_LOST
 *   END          tells the worker to run cleanup and exit.  Answer: BEGUN or UNSENT
 *   GIVE_UP      the kill limit has passed.  Answer: KEEPER_LOST if the host finds only now that
 *                the keeper is stopped; else the drain, and SURVIVED
 *   READ_MEMORY  watches the memory of the slot's devices.  Answer, also later: MEMORY
 *   JUDGE        reports to the health of the slot's devices.  Answer: DEVICE for each that changed
 *   DROP_SPAWNER   it does not reply: hang up.  Answer: the drains, and SPAWNER_GONE
 *   LIFE         the slot has entered a state
 *   NOTE         something for the user: the host writes the text
 */
#define GPI_ACTION_MAP(X) \
    X(MAKE, GPI_F_SLOT, "", 0) \
    X(DISMISS, GPI_F_SLOT, "", 0) \
    X(START, GPI_F_SLOT | GPI_F_INCARNATION | GPI_F_HOW, "plain first only", 0) \
    X(RECALL, GPI_F_SLOT | GPI_F_TASK, "", 0) \
    X(LOOK, GPI_F_SLOT, "", 0) \
    X(HOLD, GPI_F_SLOT, "", 0) \
    X(ALARM, GPI_F_SLOT | GPI_F_TASK, "", 0) \
    X(KILL, GPI_F_SLOT | GPI_F_HOW, GPI_WHY_WORDS, 0) \
    X(KILL_AT, GPI_F_SLOT | GPI_F_TASK | GPI_F_AT, "", 0) \
    X(END, GPI_F_SLOT, "", 0) \
    X(GIVE_UP, GPI_F_SLOT, "", 0) \
    X(READ_MEMORY, GPI_F_SLOT, "", 0) \
    X(JUDGE, GPI_F_SLOT | GPI_F_HOW, GPI_JUDGE_WORDS, 0) \
    X(DROP_SPAWNER, 0, "", 0) \
    X(LIFE, GPI_F_SLOT | GPI_F_HOW, GPI_LIFE_WORDS, 0) \
    X(NOTE, GPI_F_SLOT | GPI_F_DEVICE | GPI_F_HOW, GPI_NOTE_WORDS, 0)
#define GPI_WHY_WORDS "no setup limit cancel cleanup protocol close device stopped"
#define GPI_JUDGE_WORDS "killed fault deaths passed failed survived"
#define GPI_NOTE_WORDS "setup_failed died_idle given_up survived drained removed"
#define GPI_LIFE_WORDS \
    "OFF WAIT BOOT SETUP UP LEAVE END DOOMED KILL SWEEP LOST BACKOFF PARKED FAILED STUCK STOPPED " \
    "REMOVED"
#define GPI_X_ACTION(name, fields, how, bits) GPI_ACT_##name,
enum gpi_sched_action_kind { GPI_ACTION_MAP(GPI_X_ACTION) GPI_ACTIONS };
#undef GPI_X_ACTION

/* Why a worker is being killed. */
enum gpi_why {
    GPI_WHY_NO, GPI_WHY_SETUP, GPI_WHY_LIMIT, GPI_WHY_CANCEL, GPI_WHY_CLEANUP, GPI_WHY_PROTOCOL,
    GPI_WHY_CLOSE, GPI_WHY_DEVICE, GPI_WHY_STOPPED /* by its keeper, at stop_limit */
};
enum gpi_start_kind { GPI_START_PLAIN, GPI_START_FIRST, GPI_START_ONLY };
enum gpi_judge {
    GPI_JUDGE_KILLED, GPI_JUDGE_FAULT, GPI_JUDGE_DEATHS, GPI_JUDGE_PASSED, GPI_JUDGE_FAILED,
    GPI_JUDGE_SURVIVED
};
enum gpi_sched_note {
    GPI_NOTE_SETUP_FAILED,   /* setup, or the start of a worker or keeper */
    GPI_NOTE_DIED_IDLE,      /* the worker died between tasks */
    GPI_NOTE_GIVEN_UP,       /* the slot starts no worker any more */
    GPI_NOTE_SURVIVED,
    GPI_NOTE_DRAINED,        /* the device's last worker has ended */
    GPI_NOTE_REMOVED         /* the device's last slot has ended */
};

/* ---- the records ---- */

struct gpi_sched_event {
    uint64_t now; /* never smaller than the one before */
    uint64_t at;
    uint32_t kind; /* enum gpi_sched_event_kind */
    uint32_t slot, incarnation, task, device, cell, how, what;
};

struct gpi_sched_action {
    uint64_t at;
    uint32_t kind; /* enum gpi_sched_action_kind */
    uint32_t slot, incarnation, task, device, cell, how, what;
};

/* How a task ended: not in the ring, since a close may end all at once. */
struct gpi_sched_end {
    uint32_t task;
    uint32_t outcome; /* enum gpud_outcome */
    uint32_t phase;   /* enum gpud_phase */
    uint32_t why;     /* enum gpi_why of the kill, if one ended it */
    uint32_t attempts;
};

#endif
