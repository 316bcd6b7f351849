# SPDX-License-Identifier: Apache-2.0
"""`PlainMemory`: a memory that knows no device."""

from helpers import build_loops

PlainMemory = build_loops.load("plainmemory").PlainMemory
