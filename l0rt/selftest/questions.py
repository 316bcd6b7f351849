# SPDX-License-Identifier: Apache-2.0
"""The questions of the self-test, as data: number, question, how it is answered, the source of its importance."""

from dataclasses import dataclass, field

SPEC = "Level Zero specification"
NEO = "Intel's driver, by its source"
TORCH = "torch"
CUDA = "CUDA, by its manual"
L0RT = "l0rt"


@dataclass(frozen=True)
class Question:
    """A question. ``group``: those of one group share a child process; ``name``: the quirk's, where it is one."""

    id: str
    text: str
    how: str
    source: str
    group: str
    subject: str = "driver"  # at fault if the answer is bad: the driver, which l0rt copes with, or l0rt
    name: str = ""
    dangerous: bool = False  # may crash or hang or use a GPU up: answered by rule there, unless --provoke
    untestable: str = ""  # why this cannot be answered from outside
    executes: bool = True  # needs a device that executes what it is given


@dataclass
class Answer:
    """An answer; ``figures`` are plain values."""

    state: str  # works, fails, lacking; present, absent; measured; untestable
    detail: str = ""
    by: str = "test"  # or rule
    figures: dict = field(default_factory=dict)


BAD = ("fails", "present")
MARK = "l0rt-selftest:"  # before a child's answers: a driver may write to stdout too
GROUPS = {
    "capabilities": "Capabilities, used for real",
    "quirks": "Quirks of drivers",
    "traps": "Known traps",
    "measurements": "Measurements",
    "programs": "Random programs against a model",
}


def _capability(number, text, how, source=L0RT, group="capabilities", **options):
    return Question(f"C{number}", text, how, source, group, "l0rt", **options)


def _quirk(number, name, text, how, source, **options):
    return Question(f"Q{number}", text, how, source, "quirks", "driver", name, **options)


def _trap(number, text, how, source=SPEC, subject="l0rt", **options):
    return Question(f"T{number}", text, how, source, "traps", subject, **options)


def _measure(number, text, how, **options):
    return Question(f"M{number}", text, how, "l0rt's parameters", "measurements", "driver", **options)


def _nobody(number, text, why, source=SPEC):
    return Question(f"T{number}", text, "not from outside", source, "traps", "driver", untestable=why)


QUESTIONS = (
    _capability(1, "Is the work of one stream done in order?", "64 rounds of a long fill, a short fill and a copy"),
    _capability(2, "Do streams wait for each other's events?", "a chain of copies across eight streams"),
    _capability(3, "Is a record complete after its work only?", "events behind fills, queried and waited for"),
    _capability(4, "Do timed events agree with the host's clock?", "elapsed_time around 30 ms of the host's"),
    _capability(5, "Do copies of each kind arrive?", "device, host, shared, pageable, registered; odd sizes"),
    _capability(6, "Does the copy engine copy?", "the copy stream, both ways, ordered against the compute engine"),
    _capability(7, "Does virtual memory hold data, and give it back?", "grow, fill, trim and grow again, compared"),
    _capability(8, "Does an event reach another process?", "interprocess event: recorded here, waited for there"),
    _capability(9, "Is running out of memory an error, and is there work after it?", "a limit of l0rt's"),
    _capability(10, "Does the driver itself recover from running out?", "allocate until it refuses, free, work again",
                dangerous=True),
    _capability(11, "Do kernels run?", "SPIR-V that adds vectors: sizes, streams, and what comes behind a launch"),
    _capability(12, "Are graphs replayed?", "launches and copies of two streams, captured once, replayed 20 times"),
    _capability(15, "Does a change of a graph's node count from the next replay on?",
                "a launch's factor and a fill's byte, changed 20 times between replays"),
    _capability(16, "Does a wait for the device end behind all its streams?",
                "copies to pinned memory on 8 streams and on the copy stream, then one wait"),
    _quirk(1, "unflushed_counters", "Does host memory read stale after a queried counter-based event?",
           "300 small copies to host memory, read at once after the query", NEO),
    _quirk(2, "no_vm_bind", "Does a map only list the memory, so that running out shows at a later append?",
           "map more than there is, then append", "i915 of Linux has no VM_BIND", dangerous=True),
    _quirk(3, "untyped_mappings", "Is mapped memory of unknown type?", "zeMemGetAllocProperties of a mapped pointer",
           "oneDNN pull 3656"),
    _quirk(4, "raw_event_handles", "Is an event's handle only a descriptor's number?",
           "another process opens the handle and signals", NEO),
    _quirk(5, "racing_maps", "Do appends of copies race with maps in their reservation?",
           "one thread copies while another maps and unmaps", NEO, dangerous=True),
    _quirk(6, "racing_queries", "Do two threads that query one event race?",
           "four threads query and wait for one event", NEO, dangerous=True),
    _quirk(7, "outlasting_waits", "Does a wait for a counter-based event outlast its time-out?",
           "a wait of 20 ms for what comes after 250 ms", NEO),
    _quirk(8, "single_device_imports", "Is imported memory unknown to the second device?",
           "the second device copies from it", NEO),
    _quirk(9, "peer_counters", "Does a wait for a peer's counter-based event abort the process?",
           "the second device waits for the first one's event", NEO, dangerous=True),
    _quirk(10, "raw_memory_handles", "Is the handle of memory only a descriptor's number?",
           "another process opens the handle and compares", NEO),
    _quirk(11, "early_graphs", "Are the driver's graphs those from before their extension was final?",
           "record a fill, and replay it", NEO, dangerous=True),
    _quirk(12, "unjoined_captures", "Does a list leave a recording once it was waited for?",
           "two lists wait for each other in turn, and are replayed", NEO, dangerous=True),
    _quirk(13, "fast_link", "Is the link more than twice as fast as one thread copies?",
           "64 MiB of pinned memory, to the device and by the host", "l0rt's parameters"),
    _quirk(14, "cached_imports", "Is imported memory handed out again once it was freed?",
           "import 64 KiB, free them, and allocate host memory of that size", NEO, dangerous=True),
    _quirk(15, "listed_symbols", "Does a module list a kernel that its code does not have?",
           "the names of the kernels of random numbers, beside those in their SPIR-V",
           "Intel's driver 26.27, run"),
    _quirk(16, "fatal_enqueues", "Does building a kernel that enqueues others end a process that handles SIGSEGV?",
           "SPIR-V with one, and a handler", "Intel's compiler 2.40, run", dangerous=True),
    _quirk(17, "uncounted_signals", "Does a wait for a list end before a fill that signals an event?",
           "a long fill that signals, and a wait for its list", "Intel's driver 26.27, run"),
    _trap(1, "Are optional functions missing?", "look each up in the library", subject="driver", executes=False),
    _trap(2, "Is the in-order flag accepted and ignored?", "bare in-order list: long fill, then a copy of its end",
          NEO, "driver", name="unordered_lists"),
    _trap(3, "Do extension functions refuse a loader's handles?", "call one through the translated handle",
          "loader 1.x with two drivers", executes=False),
    _trap(4, "Is a function there that refuses its work?", "call what the library exports", subject="driver",
          executes=False),
    _trap(5, "Are timestamps wrong in bits, wrap or rate?", "the device's clock beside the host's for 50 ms",
          "chipStar issue 128, oneDNN pull 4499", "driver"),
    _trap(6, "Is an elapsed time told of events without one?", "unrecorded, unfinished and untimed events", TORCH),
    _trap(7, "Does recording anew disturb those who wait?", "record again while another stream waits", CUDA),
    _trap(8, "Does an event that is dropped in flight take its work along?", "drop 200 events at once"),
    _trap(9, "Does a stream that is given back lose its work?", "leases that end with work pending"),
    _trap(10, "Does a wait for an unrecorded event hang?", "a stream and the host wait for one", CUDA),
    _trap(11, "Does running out show later than in the call that asked?", "use memory beyond the device's",
          subject="driver", dangerous=True),
    _trap(12, "Do sizes of 0, overflowing sizes or alignments go wrong?", "allocate them"),
    _trap(13, "Does a size above the driver's limit fail for its description?", "the limit plus 2 MiB, relaxed", NEO,
          dangerous=True),
    _trap(14, "Is physical memory of whole pages refused?", "64 KiB, 2 MiB and 3 MiB", NEO, "driver"),
    _trap(15, "Does a map that failed leave something behind?", "map twice at one address, then take all down", NEO,
          "driver"),
    _trap(16, "Are foreign and interior pointers or double frees mistaken?", "ask and free them"),
    _trap(17, "Is memory reused before another stream has done with it?", "drop and allocate under work"),
    _trap(18, "Is a use recorded on a stream forgotten when another thread frees?", "free in a thread, refill", TORCH),
    _trap(19, "Does a free inside garbage collection deadlock?", "finalisers that free while others append", L0RT),
    _trap(20, "Are counters wrong under threads?", "four threads allocate and free", L0RT),
    _trap(21, "Does a forked child use the parent's device?", "fork, and try"),
    _trap(22, "Does exit with pending work crash or talk?", "a process that ends with live objects",
          "Level Zero issue 123, compute-runtime issue 675"),
    _nobody(23, "Does a lost device not stay lost?", "needs a device that gets lost"),
    _trap(24, "Can Ctrl-C not end a wait?", "a signal during a wait that does not end", L0RT),
    _nobody(25, "Does an append that blocks hold the GIL?", "needs a shim that slows an append", L0RT),
    _nobody(26, "Is a pool of no events asked for?", "needs a shim that watches the calls"),
    _trap(27, "Are fill patterns of some sizes wrong?", "1 to 16 bytes, on the compute and the copy engine"),
    _trap(28, "Does a copy of memory to itself go wrong?", "copy a buffer onto itself"),
    _trap(29, "Is a stale or wrong handle of an event accepted?", "garbage, and the handle of an event that is gone"),
    _trap(30, "Do affinity masks and hierarchies miscount?", "count devices in other processes", executes=False),
    _trap(31, "Is all memory called free?", "what system management says while some is in use", "Level Zero issue 133",
          "driver"),
    _trap(32, "Are two ways of system management mixed?", "ZES_ENABLE_SYSMAN=1 in another process", executes=False),
    _trap(33, "Does memory stay behind after trimming?", "allocate, free, trim, look", TORCH),
    _nobody(34, "Does the free-threaded build race?", "needs a thread sanitizer", L0RT),
    _trap(35, "Do arguments of one kernel race between threads?", "four threads launch one kernel with their own"),
    _trap(36, "Do many streams and events use up the process's mappings?", "2,000 lists and events",
          "intel/llvm pull 21340"),
    _trap(37, "Is a variable that comes too late ignored in silence?", "set L0RT_DISABLE after opening", L0RT,
          executes=False),
    _nobody(38, "Is memory made resident on other devices than its owner?", "needs a shim that watches the calls"),
    _trap(39, "Does the memory history grow without bound?", "record more than it may keep", L0RT, executes=False),
    _trap(40, "Does a foreign list suffer from being adopted?", "adopt a bare list, drop it, use it on"),
    _measure(1, "What is this machine?", "kernel driver, build, BAR, type of a mapped pointer", executes=False),
    _measure(2, "What do create, map and unmap cost?", "2, 16 and 128 MiB, idle and busy"),
    _measure(3, "What does each piece of a range cost?", "a copy and a map with 16, 128 and 1,024 pieces"),
    _measure(4, "What do an allocation and its residency cost?", "2, 16 and 128 MiB"),
    _measure(5, "What do launch, barrier and copy cost on 1, 2 and 32 lists?", "appends in turn"),
    _measure(6, "What do record, query and wait cost?", "per kind of event and scope"),
    _measure(7, "How long does a wake-up take?", "from the work's end to the waiting host"),
    _measure(8, "How fast are copies?", "4 bytes to 256 MiB; pageable, staged, pinned; each engine"),
    _measure(9, "How long do maps stall other threads?", "the longest append of ordinary memory's copies beside maps"),
    _measure(10, "Which call reports that memory is out?", "allocate and map beyond what there is", dangerous=True),
    _capability(13, "Do random programs agree with the model?", "copies, fills, events, waits and frees on 8 streams",
                group="programs"),
    _capability(14, "Do they agree on several threads?", "four programs at once on shared streams", group="programs"),
)  # fmt: skip
BY_ID = {question.id: question for question in QUESTIONS}
