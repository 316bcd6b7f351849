# SPDX-License-Identifier: Apache-2.0
"""`python -m l0rt.interop.torch_device build` compiles the extension ahead of its first use."""

import argparse

from l0rt.interop.torch_device import build


def main():
    parser = argparse.ArgumentParser(prog="python -m l0rt.interop.torch_device", description=__doc__)
    parser.add_argument("command", choices=["build"], help="compile the extension, unless it is compiled already")
    parser.parse_args()
    print(build.folder())  # the package's import has compiled it


if __name__ == "__main__":
    main()
