#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# newer_loaders.sh: the driver in the loaders of other Debian releases: `newer_loaders.sh suite library out`. Their
# packages are fetched by apt, unpacked under `out` and used from there, with their own C library.
set -e
suite=$1 library=$2 out=$3/$1
here=$(dirname "$(realpath "$0")")
root=$out/root
mkdir -p "$out/lists/partial" "$out/archives/partial" "$root"
if ! ls "$out"/libze1_*.deb >/dev/null 2>&1; then
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $suite main" \
    >"$out/sources.list"
  : >"$out/status"
  apt="apt-get -qq -o Dir::Etc::sourcelist=$out/sources.list -o Dir::Etc::sourceparts=/dev/null
    -o Dir::State::lists=$out/lists -o Dir::State::status=$out/status -o Dir::Cache=$out -o Debug::NoLocking=1"
  if ! { $apt update && cd "$out" && $apt download libze1 libc6 libstdc++6 libgcc-s1; } >"$out/apt.log" 2>&1; then
    echo "loader of $suite: NOT RUN: its packages cannot be fetched, see $out/apt.log"
    exit 0
  fi
fi
cd "$out"
for package in *.deb; do dpkg-deb -x "$package" root; done
rm -rf "$root/usr/share"
linker=$(find "$root" -name ld-linux-x86-64.so.2 | head -n 1)
for program in hosted stranger; do
  cc -std=gnu11 -D_GNU_SOURCE -pthread -I"$here/../../../include" -I"$here/.." -DKERNELS="\"$here/kernels\"" "$here/$program.c" -o "$program" \
    -lze_loader -Wl,--allow-shlib-undefined,--disable-new-dtags \
    -Wl,--dynamic-linker="$linker",-rpath,"$root/usr/lib/x86_64-linux-gnu"
  for layer in 0 1; do
    ZE_ENABLE_ALT_DRIVERS=$library L0RT_CPU_DEVICES=2 ZE_ENABLE_VALIDATION_LAYER=$layer \
      ZE_ENABLE_PARAMETER_VALIDATION=$layer "./$program" >/dev/null
  done
done
cp "$library" second.so
for program in hosted stranger; do
  ZE_ENABLE_ALT_DRIVERS=$library,$out/second.so L0RT_CPU_DEVICES=2 "./$program" >/dev/null
done
echo "loader of $suite: ok ($(basename "$(ls libze1_*.deb)" .deb))"
