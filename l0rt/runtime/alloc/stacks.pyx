# SPDX-License-Identifier: Apache-2.0
"""Python stacks: gathered by walking frames, kept once each, and resolved to lines only when somebody asks.

A stack is an array of code objects and instructions. The GIL guards the table.
"""

from cpython.object cimport PyObject
from libc.stdint cimport uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcmp, memcpy

cdef extern from *:
    """
    #if PY_VERSION_HEX < 0x030B0000
    #include <frameobject.h>
    static int l0rt_frame_lasti(PyFrameObject *frame) { return frame->f_lasti * (int)sizeof(_Py_CODEUNIT); }
    #else
    static int l0rt_frame_lasti(PyFrameObject *frame) { return PyFrame_GetLasti(frame); }
    #endif
    #if PY_VERSION_HEX >= 0x030D0000
    #define l0rt_is_ending Py_IsFinalizing
    #else
    #define l0rt_is_ending _Py_IsFinalizing
    #endif
    """
    ctypedef struct PyFrameObject:
        pass
    ctypedef struct PyCodeObject:
        pass
    ctypedef int PyGILState_STATE
    PyFrameObject* PyEval_GetFrame() noexcept nogil
    PyFrameObject* PyFrame_GetBack(PyFrameObject* frame) noexcept nogil
    PyCodeObject* PyFrame_GetCode(PyFrameObject* frame) noexcept nogil
    int PyCode_Addr2Line(PyCodeObject* code, int instruction) noexcept nogil
    void drop_frame "Py_XDECREF" (PyFrameObject* frame) noexcept nogil
    void drop_code "Py_DECREF" (PyCodeObject* code) noexcept nogil
    void keep_code "Py_INCREF" (PyCodeObject* code) noexcept nogil
    void keep_frame "Py_XINCREF" (PyFrameObject* frame) noexcept nogil
    int frame_instruction "l0rt_frame_lasti" (PyFrameObject* frame) noexcept nogil
    int PyGILState_Check() noexcept nogil
    void* PyGILState_GetThisThreadState() noexcept nogil
    PyGILState_STATE PyGILState_Ensure() noexcept nogil
    void PyGILState_Release(PyGILState_STATE state) noexcept nogil
    int Py_IsInitialized() noexcept nogil
    int is_ending "l0rt_is_ending" () noexcept nogil

cdef enum:
    MOST_FRAMES = 256               # of one stack, the innermost ones
    MOST_STACKS = 1 << 20           # what comes then has the number 0
    MOST_NUMBERS = 0xC0000000       # then they begin anew: a thread does not keep one for so long
    FIRST_CAPACITY = 1 << 12

cdef struct l0rt_frame:
    PyCodeObject* code
    uint64_t instruction

cdef struct l0rt_stack:
    uint64_t hash
    uint64_t first                  # in the frames
    uint32_t depth

cdef l0rt_stack* _stacks            # the number 0 is unused
cdef l0rt_frame* _frames
cdef uint32_t* _slots               # open addressing: numbers
cdef uint64_t _slot_mask
cdef uint32_t _count, _capacity
cdef uint32_t _forgotten            # the numbers up to this one had stacks once: those of now come behind
cdef uint64_t _frame_count, _frame_capacity


cdef uint32_t stack_gather(bint waits) noexcept nogil:
    cdef PyGILState_STATE state
    cdef uint32_t stack
    if PyGILState_Check():
        return gather()
    if not waits or not Py_IsInitialized() or is_ending() or PyGILState_GetThisThreadState() == NULL:
        return 0
    state = PyGILState_Ensure()
    stack = gather()
    PyGILState_Release(state)
    return stack


cdef uint32_t gather() noexcept nogil:
    """Walk first and look the stack up afterwards: while frames become objects, other Python code may run, and gather
    too."""
    cdef l0rt_frame[MOST_FRAMES] frames
    cdef PyFrameObject* frame = PyEval_GetFrame()
    cdef PyFrameObject* back
    cdef PyCodeObject* code
    cdef uint64_t hash = 0
    cdef uint32_t depth = 0
    keep_frame(frame)
    while frame != NULL and depth < MOST_FRAMES:
        code = PyFrame_GetCode(frame)
        frames[depth].code = code
        frames[depth].instruction = <uint64_t>frame_instruction(frame)
        hash = ((hash ^ <uint64_t><uintptr_t>code) * <uint64_t>0x9E3779B97F4A7C15) ^ frames[depth].instruction
        hash ^= hash >> 29
        drop_code(code)             # the frame, which the thread is in, has it
        depth += 1
        back = PyFrame_GetBack(frame)
        drop_frame(frame)
        frame = back
    drop_frame(frame)
    return known(frames, depth, hash) if depth != 0 else 0


cdef uint32_t known(l0rt_frame* frames, uint32_t depth, uint64_t hash) noexcept nogil:
    cdef uint64_t at
    cdef l0rt_stack* stack
    if _count + 1 >= _capacity and not grow_stacks():
        return 0
    at = hash & _slot_mask
    while _slots[at] != 0:
        stack = &_stacks[_slots[at]]
        if (stack.hash == hash and stack.depth == depth
                and memcmp(&_frames[stack.first], frames, depth * sizeof(l0rt_frame)) == 0):
            return _forgotten + _slots[at]
        at = (at + 1) & _slot_mask
    return added(frames, depth, hash, at)


cdef uint32_t added(l0rt_frame* frames, uint32_t depth, uint64_t hash, uint64_t at) noexcept nogil:
    global _count, _frame_count, _frame_capacity, _frames
    cdef l0rt_frame* more
    cdef uint64_t capacity = _frame_capacity
    cdef uint32_t i
    while capacity < _frame_count + depth:
        capacity = max(capacity * 2, <uint64_t>FIRST_CAPACITY * 8)
    if capacity != _frame_capacity:
        more = <l0rt_frame*>realloc(_frames, capacity * sizeof(l0rt_frame))
        if more == NULL:
            return 0
        _frames, _frame_capacity = more, capacity
    memcpy(&_frames[_frame_count], frames, depth * sizeof(l0rt_frame))
    for i in range(depth):
        keep_code(frames[i].code)
    _count += 1
    _stacks[_count].hash, _stacks[_count].depth, _stacks[_count].first = hash, depth, _frame_count
    _frame_count += depth
    _slots[at] = _count
    return _forgotten + _count


cdef bint grow_stacks() noexcept nogil:
    """Space for one more stack at least, with slots for twice as many; False if there is none."""
    global _stacks, _slots, _slot_mask, _capacity
    cdef uint32_t capacity = max(_capacity * 2, <uint32_t>FIRST_CAPACITY), i
    cdef uint64_t mask = 2 * <uint64_t>capacity - 1, at
    cdef l0rt_stack* stacks
    cdef uint32_t* slots
    if capacity > MOST_STACKS:
        return False
    slots = <uint32_t*>calloc(mask + 1, sizeof(uint32_t))
    stacks = <l0rt_stack*>realloc(_stacks, capacity * sizeof(l0rt_stack)) if slots != NULL else NULL
    if stacks == NULL:
        free(slots)
        return False
    for i in range(1, _count + 1):
        at = stacks[i].hash & mask
        while slots[at] != 0:
            at = (at + 1) & mask
        slots[at] = i
    free(_slots)
    _stacks, _slots, _slot_mask, _capacity = stacks, slots, mask, capacity
    return True


def forget():
    """Drop all stacks. A thread may have gathered one and not have written its number yet: none is used again."""
    global _stacks, _slots, _slot_mask, _capacity, _count, _frames, _frame_count, _frame_capacity, _forgotten
    cdef l0rt_frame* frames = _frames
    cdef uint64_t count = _frame_count, i
    _forgotten = _forgotten + _count if _forgotten < MOST_NUMBERS else 0
    free(_stacks)
    free(_slots)
    _stacks, _slots, _slot_mask, _capacity, _count = NULL, NULL, 0, 0, 0
    _frames, _frame_count, _frame_capacity = NULL, 0, 0
    for i in range(count):
        drop_code(frames[i].code)   # runs Python: nothing here names it any more
    free(frames)


def frames_of(uint32_t number, dict lines):
    """Return a stack's frames in torch's schema, innermost first; ``lines`` keeps what was resolved, for the next
    call."""
    cdef l0rt_frame* frame
    cdef uint32_t i
    if number <= _forgotten or number - _forgotten > _count:
        return []
    key = -<long>number
    found = lines.get(key)
    if found is None:
        found = []
        number -= _forgotten
        for i in range(_stacks[number].depth):
            frame = &_frames[_stacks[number].first + i]
            found.append(line_of(frame, lines))
        lines[key] = found
    return found


cdef dict line_of(l0rt_frame* frame, dict lines):
    place = (<uintptr_t>frame.code, frame.instruction)
    line = lines.get(place)
    if line is None:
        code = <object><PyObject*>frame.code
        line = {"filename": code.co_filename, "line": PyCode_Addr2Line(frame.code, <int>frame.instruction),
                "name": code.co_name}
        lines[place] = line
    return line
