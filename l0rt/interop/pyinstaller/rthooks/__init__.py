# SPDX-License-Identifier: Apache-2.0
"""What runs in a frozen program before the program itself."""
