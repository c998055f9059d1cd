# SPDX-License-Identifier: MIT
"""A crude scheduler, which runs made-up work on made-up GPUs and keeps the records of it.

Only the shape of the records matters here: workers that load and leave, wide tasks that gather
GPUs, limits, crashes, GPUs that drop out, and the reason of each shape that waits.
"""
import collections
import heapq

from lines import SECOND

UNLOAD, PATIENCE = 4 * SECOND, 300 * SECOND  # time to leave; waiting time that evicts a worker
NO_LIMIT = 99


class Work:
    """One batch: tasks of one shape."""

    def __init__(self, number, name, class_, gpus, tasks, at, seats=NO_LIMIT, priority=0, mean=60.0,
                 spread=0.3, limit=3600):
        self.number, self.name, self.class_, self.gpus = number, name, class_, gpus
        self.tasks, self.at, self.seats, self.priority = tasks, at * SECOND, seats, priority
        self.mean, self.spread, self.limit = mean, spread, limit
        self.shape = number
        self.todo = collections.deque((i, 1, self.at) for i in range(1, tasks + 1))
        self.running = self.loading = 0
        self.blocked = None  # since when its first task waits for GPUs
        self.alarm = 0       # when the scheduler next checks its patience


# Reasons as gpud_reason_format and the agent write them (queue/agent/waiting.c).

def seats_text(class_, seats):
    return f"SEATS: max_workers {seats} of class {class_} is reached"


def booting_text(class_):
    return f"BOOTING, class {class_}: a worker of the class starts"


class Running:
    def __init__(self, work, task, attempt, ready, started, gpus):
        self.work, self.task, self.attempt = work, task, attempt
        self.ready, self.started, self.gpus, self.over = ready, started, gpus, False


class World:
    def __init__(self, night, rng, gpus, works, boots, cursed=(), tries=2, mishaps=0.006):
        """boots: seconds that a worker of a class needs to load.  cursed: (batch, task) -> how each
        attempt of it ends: outcome, seconds, status, text."""
        self.night, self.rng, self.boots = night, rng, boots
        self.cursed, self.tries, self.mishaps = dict(cursed), tries, mishaps
        self.names = night.machine(gpus, rng)
        self.free = list(range(gpus))
        self.tenant = [None] * gpus
        self.loads = [None] * gpus   # (work, kind, since, text) while a worker loads or leaves
        self.runs = [None] * gpus
        self.out = [None] * gpus     # (kind, since, text)
        self.kept = {}               # GPU -> (work, since, text)
        self.reasons = {}            # shape -> (word, text, task, since)
        self.works = sorted(works, key=lambda w: (-w.priority, w.at))
        self.events, self.sequence, self.now = [], 0, 0
        for name in boots:
            night.class_(name)
        for w in works:
            needs = f"{w.gpus} GPUs" if w.gpus > 1 else "1 GPU"
            night.shape(w.shape, w.class_, w.gpus, needs)
            night.batch(w.number, w.name, w.tasks, w.at, w.shape, priority=w.priority)
            self.later(w.at, lambda: None)

    def later(self, time, call, *args):
        self.sequence += 1
        heapq.heappush(self.events, (time, self.sequence, call, args))

    # ---- GPUs ----

    def release(self, gpu):
        self.runs[gpu] = self.loads[gpu] = None
        if self.out[gpu] is None:
            self.free.append(gpu)
            self.free.sort()

    def take(self, gpu):
        self.free.remove(gpu)

    def load(self, gpu, work, why):
        """A worker of another class leaves first."""
        old, time = self.tenant[gpu], self.now
        self.take(gpu)
        work.loading += 1
        self.tenant[gpu] = work.class_
        if self.boots.get(old):
            self.tenancy(gpu, "unload", old, time, time + UNLOAD, f"evicted for {work.class_}")
            time += UNLOAD
        self.boot(gpu, work, time, why)

    def boot(self, gpu, work, time, why):
        self.loads[gpu] = (work, "boot", time, why)
        self.later(time + self.boots[work.class_] * SECOND, self.loaded, gpu, self.loads[gpu])

    def loaded(self, gpu, load):
        if self.loads[gpu] is not load:
            return
        work, kind, since, why = load
        work.loading -= 1
        self.tenancy(gpu, kind, work.class_, since, self.now, why)
        self.release(gpu)

    def tenancy(self, gpu, kind, class_, since, until, text):
        self.night.tenancy(self.names[gpu], kind, class_, since, until, text)

    def fail(self, gpu, kind, text, back=None):
        """The GPU drops out; its task goes back to its place."""
        running, load = self.runs[gpu], self.loads[gpu]
        self.out[gpu] = (kind, self.now, text)
        if running:
            self.end(running, "returned", 0, text)
        if load:
            load[0].loading -= 1
            self.tenancy(gpu, load[1], load[0].class_, min(load[2], self.now), self.now, load[3])
            self.loads[gpu] = None
        if gpu in self.free:
            self.take(gpu)
        self.tenant[gpu] = None
        if back:
            self.later(back, self.back, gpu)

    def back(self, gpu):
        kind, since, text = self.out[gpu]
        self.night.out(self.names[gpu], kind, since, self.now, text)
        self.out[gpu] = None
        if not self.runs[gpu] and not self.loads[gpu]:
            self.release(gpu)

    def foreign(self, gpu, text, back):
        """Another user's process is there: no task starts, and a running one goes on."""
        self.out[gpu] = ("foreign", self.now, text)
        if gpu in self.free:
            self.take(gpu)
        self.later(back, self.back, gpu)

    # ---- Tasks ----

    def verdict(self, work, task):
        """How an attempt ends: outcome, seconds, status, text."""
        seconds = self.rng.lognormvariate(0, work.spread) * work.mean
        if (work.number, task) in self.cursed:
            outcome, seconds, status, text = self.cursed[work.number, task]
            return outcome, self.rng.uniform(0.8, 1.2) * seconds, status, text
        if seconds > work.limit:
            return "timeout", work.limit, -9, f"exceeded its time limit of {work.limit} s"
        if self.rng.random() < self.mishaps:
            text = f"exit status 1: KeyError: 'x{task % 7}'"
            return "error", seconds * self.rng.random(), 1, text
        return "ok", seconds, 0, ""

    def start(self, work, gpus):
        task, attempt, ready = work.todo.popleft()
        running = Running(work, task, attempt, ready, self.now, gpus)
        for gpu in gpus:
            self.take(gpu)
            self.runs[gpu] = running
        work.running += 1
        work.blocked = None
        outcome, seconds, status, text = self.verdict(work, task)
        self.later(self.now + int(seconds * SECOND), self.end, running, outcome, status, text)

    def end(self, running, outcome, status, text):
        if running.over:
            return
        work, running.over = running.work, True
        work.running -= 1
        self.night.attempt(work.number, running.task, running.attempt, work.shape,
                           [self.names[g] for g in running.gpus], running.ready, running.started,
                           self.now, outcome, status, text, self.name(work, running.task))
        for gpu in running.gpus:
            self.release(gpu)
        if outcome == "crashed" and self.boots.get(work.class_):
            for gpu in running.gpus:
                if gpu in self.free:
                    self.take(gpu)
                    work.loading += 1
                    self.boot(gpu, work, self.now, "restart")
        if outcome == "returned" or (outcome == "crashed" and running.attempt < self.tries):
            self.night.waits(work.number, running.task)
            work.todo.appendleft((running.task, running.attempt + 1, self.now))

    @staticmethod
    def name(work, task):
        """Every second batch has names."""
        return f"{work.name}-{task:04d}" if work.number % 2 else ""

    # ---- Decisions ----

    def dispatch(self):
        waiting = [w for w in self.works if w.todo and w.at <= self.now]
        kept, why = {}, {}
        for work in waiting:
            while work.todo:
                reason = self.place(work, waiting, kept)
                if reason:
                    why.setdefault(work.shape, (*reason, f"{work.number}.{work.todo[0][0]}"))
                    break
        for gpu in [g for g in self.kept if g not in kept or kept[g] is not self.kept[g][0]]:
            _, since, text = self.kept.pop(gpu)
            self.tenancy(gpu, "kept", "", since, self.now, text)
        for gpu, work in kept.items():
            text = f"{work.number}.{work.todo[0][0]}: held for {work.gpus} GPUs"
            self.kept.setdefault(gpu, (work, self.now, text))
        for shape in [s for s in self.reasons if why.get(s, ())[:1] != self.reasons[s][:1]]:
            word, text, task, since = self.reasons.pop(shape)
            self.night.reason(shape, task, word, since, self.now, text)
        for shape, (word, text, task) in why.items():
            self.reasons.setdefault(shape, (word, text, task, self.now))

    def place(self, work, waiting, kept):
        """Starts the first task, or returns why it waits: word and text."""
        seats = work.seats if len(waiting) > 1 else NO_LIMIT
        if work.running >= seats:
            return "SEATS", seats_text(work.class_, seats)
        if not self.free:
            return self.blocked(work, *self.busy(work))
        free = [g for g in self.free if g not in kept]
        warm = [g for g in free if self.tenant[g] == work.class_]
        if len(warm) >= work.gpus:
            self.start(work, warm[:work.gpus])
            return None
        loading = work.loading // work.gpus
        if work.running + loading >= seats:
            return "BOOTING", booting_text(work.class_)
        patient = work.blocked is None or self.now - work.blocked < PATIENCE
        cold = [g for g in free if g not in warm and not (patient and self.wanted(g, waiting))]
        if len(warm) + len(cold) >= work.gpus and loading < len(work.todo):
            gpus = (warm + cold)[:work.gpus]
            if self.boots[work.class_]:
                for gpu in gpus:
                    if gpu in cold:
                        self.load(gpu, work, "first use")
                return "BOOTING", booting_text(work.class_)
            for gpu in gpus:
                if self.boots.get(self.tenant[gpu]):
                    self.tenancy(gpu, "unload", self.tenant[gpu], self.now, self.now,
                                 f"evicted for {work.class_}")
                self.tenant[gpu] = work.class_
            self.start(work, gpus)
            return None
        if work.gpus > 1:
            for gpu in (warm + cold)[:work.gpus]:
                kept[gpu] = work
        if loading:
            return self.blocked(work, "BOOTING", booting_text(work.class_))
        if warm or cold:
            return self.blocked(work, *self.busy(work))
        if free:
            return self.blocked(work, "MAX_WAIT", f"MAX_WAIT on {self.names[free[0]]}, class "
                                f"{self.tenant[free[0]]}: a worker of the class has work, and "
                                "leaves after max_wait")
        head = kept[self.free[0]]
        return self.blocked(work, "HEAD_HOLDS", f"HEAD_HOLDS on {self.names[self.free[0]]}, class "
                            f"{head.class_}: the place is held for the task, which comes first; "
                            f"task {head.number}.{head.todo[0][0]}")

    def busy(self, work):
        """A worker of its class has another task, or a GPU is busy with a task."""
        own = next((r for r in self.runs if r and r.work.class_ == work.class_), None)
        if self.boots.get(work.class_) and own:
            return "BUSY", (f"BUSY, class {work.class_}: workers of the class have other tasks, or "
                            f"cannot run it; task {own.work.number}.{own.task}")
        gpu = next((i for i, r in enumerate(self.runs) if r), None)
        if gpu is None:
            return "BUSY", (f"BUSY, class {work.class_}: workers of the class have other tasks, or "
                            "cannot run it")
        other = self.runs[gpu]
        return "SHARE", (f"SHARE on {self.names[gpu]}, has 0 of 10000, needs 10000 of 10000, class "
                         f"{other.work.class_}: running tasks have the share of the device; task "
                         f"{other.work.number}.{other.task}")

    def wanted(self, gpu, waiting):
        """The GPU has a worker for which tasks wait."""
        tenant = self.tenant[gpu]
        return bool(self.boots.get(tenant)) and any(w.class_ == tenant for w in waiting)

    def blocked(self, work, word, text):
        if work.blocked is None:
            work.blocked = self.now
        if work.alarm <= self.now < work.blocked + PATIENCE:
            work.alarm = work.blocked + PATIENCE
            self.later(work.alarm, lambda: None)
        return word, text

    # ---- The night ----

    def run(self, until=None):
        """Until no task is left, or until a time.  Returns the time."""
        while self.events and (until is None or self.events[0][0] <= until):
            self.now, _, call, args = heapq.heappop(self.events)
            call(*args)
            while self.events and self.events[0][0] == self.now:
                _, _, call, args = heapq.heappop(self.events)
                call(*args)
            self.dispatch()
            if not any(w.todo or w.running for w in self.works):
                break
        self.now = until or self.now
        self.leave_open()
        return self.now

    def leave_open(self):
        """Rows that go on."""
        for running in {id(r): r for r in self.runs if r}.values():
            work = running.work
            self.night.attempt(work.number, running.task, running.attempt, work.shape,
                               [self.names[g] for g in running.gpus], running.ready,
                               running.started, None, "running", 0, "",
                               self.name(work, running.task))
        for gpu, load in enumerate(self.loads):
            if load and load[2] <= self.now:
                self.tenancy(gpu, load[1], load[0].class_, load[2], None, load[3])
        for gpu, (_, since, text) in self.kept.items():
            self.tenancy(gpu, "kept", "", since, None, text)
        for gpu, out in enumerate(self.out):
            if out:
                self.night.out(self.names[gpu], out[0], out[1], None, out[2])
        for shape, (word, text, task, since) in self.reasons.items():
            self.night.reason(shape, task, word, since, None, text)


class Lanes:
    """Tasks in turn on places, each of which is a list of GPUs: shares of one GPU, or none."""

    def __init__(self, night, rng, places, at=0, tries=1, away=None):
        """away: begin and end of a time in which no agent starts a task."""
        self.night, self.rng, self.tries, self.away = night, rng, tries, away
        self.places = [(at * SECOND, i, list(place)) for i, place in enumerate(places)]
        heapq.heapify(self.places)

    def run(self, batch, shape, tasks, at, verdict, names=lambda task: "", until=None):
        """verdict(task, attempt) -> outcome, seconds, status, text.  A reason goes on while tasks
        wait.  Returns the time of the last end."""
        todo = collections.deque((task, 1, at * SECOND) for task in tasks)
        last = at * SECOND
        while todo:
            free, i, gpus = heapq.heappop(self.places)
            task, attempt, ready = todo.popleft()
            started = max(free, ready)
            if self.away and self.away[0] <= started < self.away[1]:
                started = self.away[1]
            if until is not None and started > until:
                last = started
                break
            outcome, seconds, status, text = verdict(task, attempt)
            ended = started + int(seconds * SECOND)
            goes_on = until is not None and ended > until
            self.night.attempt(batch, task, attempt, shape, gpus, ready, started,
                               None if goes_on else ended, "running" if goes_on else outcome,
                               0 if goes_on else status, "" if goes_on else text, names(task))
            if outcome != "ok" and not goes_on and attempt < self.tries:
                self.night.waits(batch, task)
                todo.append((task, attempt + 1, ended))
            heapq.heappush(self.places, (ended, i, gpus))
            self.started = started
            last = max(last, ended)
        first = min(tasks, default=None)
        waits_on = until is not None and last > until
        if first is not None and (waits_on or self.started > at * SECOND):
            self.reason(shape, f"{batch}.{first}", at * SECOND, None if waits_on else self.started)
        return last

    def reason(self, shape, task, since, until):
        text = "each GPU has a task"
        if self.away and since < self.away[0] and (until is None or until > self.away[0]):
            self.night.reason(shape, task, "BUSY", since, self.away[0], text)
            since = self.away[1]
        self.night.reason(shape, task, "BUSY", since, until, text)
