# Sourced by tools/quickstart, tools/test and tools/deploy/Dockerfile: what they
# install and how they show progress. Debian 12, root or sudo; packages from
# Debian and PyPI only.
# shellcheck shell=bash

LATHE_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# Objects of one checkout serve another: paths under the root count as relative.
export CCACHE_BASEDIR=$LATHE_ROOT CCACHE_NOHASHDIR=1
export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime

# What a build of the server alone needs (preset runtime), what every build
# needs, what only the tests need, and what a server needs to run.
SERVER_BUILD_PACKAGES=(cmake ninja-build ccache pkg-config clang-19
  libboost1.81-dev libcli11-dev libexpected-dev libflatbuffers-dev
  flatbuffers-compiler-dev flatbuffers-compiler libfmt-dev libpcre2-dev
  libspdlog-dev libssl-dev libutf8proc-dev libzstd-dev nlohmann-json3-dev
  prometheus-cpp-dev)
BUILD_PACKAGES=("${SERVER_BUILD_PACKAGES[@]}"
  lld-19 llvm-19-dev libmlir-19-dev mlir-19-tools libclang-19-dev
  liblld-19-dev python3 python3-pip unzip)
TEST_PACKAGES=(chromium clang-format-19 clang-tidy-19 libbenchmark-dev
  libclang-rt-19-dev libgmock-dev libgtest-dev llvm-19-tools python3-numpy
  python3-venv python3-yaml valgrind)
SERVER_PACKAGES=(libfmt9 libpcre2-8-0 libprometheus-cpp-core1.0 libspdlog1.10
  libssl3 libstdc++6 libzstd1)

die() {
  echo "${0##*/}: $*" >&2
  exit 1
}

# progress TEXT: one line that replaces itself on a terminal, lines elsewhere
# only when the text changes in kind.
progress_kind=
progress() {
  if [ -t 2 ]; then
    printf '\r\033[K%s' "$1" >&2
  elif [ "${1%% [0-9]*}" != "$progress_kind" ]; then
    progress_kind=${1%% [0-9]*}
    echo "$1" >&2
  fi
}

progress_done() {
  if [ -t 2 ]; then printf '\r\033[K' >&2; fi
}

# install_packages PACKAGE...: those that are missing.
install_packages() {
  local missing=() package
  for package in "$@"; do
    dpkg-query -W -f='${db:Status-Abbrev}' "$package" 2>/dev/null |
      grep -q '^ii' || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  command -v apt-get >/dev/null ||
    die "needs Debian 12 or a relative of it; missing: ${missing[*]}"
  local as_root=()
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null ||
      die "needs root or sudo to install: ${missing[*]}"
    as_root=(sudo)
  fi
  progress "[1/4] installing ${#missing[@]} packages"
  local log
  log=$(mktemp)
  if ! { "${as_root[@]}" apt-get update -qq &&
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
      apt-get install -y -qq --no-install-recommends "${missing[@]}"; } \
    >"$log" 2>&1; then
    progress_done
    tail -n 20 "$log" >&2
    die "could not install: ${missing[*]}"
  fi
  rm -f "$log"
}

# build_targets DIR TESTS TARGET...: configures if needed, with the tests if
# TESTS is ON, and builds, with the share of the build steps as progress; the
# log only if something fails. A build with tests stays one.
build_targets() {
  local dir=$1 tests=$2
  shift 2
  local log=$dir/build.log
  mkdir -p "$dir"
  if [ ! -f "$dir/build.ninja" ] || { [ "$tests" = ON ] &&
    grep -qs '^LATHE_BUILD_TESTS:BOOL=OFF' "$dir/CMakeCache.txt"; }; then
    progress "[2/4] configuring"
    cmake -S "$LATHE_ROOT" --preset release -B "$dir" \
      -D LATHE_BUILD_TESTS="$tests" >"$log" 2>&1 || {
      progress_done
      tail -n 20 "$log" >&2
      die "cmake failed; the whole log is $log"
    }
  fi
  (NINJA_STATUS='%f %t ' ninja -C "$dir" "$@" 2>&1 || echo 'FAILED: ninja') |
    while read -r at total rest; do
      echo "$at $total $rest" >>"$log"
      case $at in
        '' | *[!0-9]*)
          [ "$at $total" != 'FAILED: ninja' ] || exit 1
          ;;
        *) progress "[2/4] building $at of $total" ;;
      esac
    done || {
    progress_done
    grep -A 12 'FAILED' "$log" | head -n 40 >&2
    die "the build failed; the whole log is $log"
  }
  progress_done
}
