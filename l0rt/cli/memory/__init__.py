# SPDX-License-Identifier: Apache-2.0
"""`l0rt memory`: what a snapshot of memory says, as a page, in a terminal, and beside another snapshot."""
