#!/bin/sh
# Make dockerd answer and check that podman can, on a machine with or without systemd, as root.
# Changes nothing when both do already. The log of a dockerd started here: see LOG below.
set -eu

LOG="${VEGA_IMAGE_DOCKERD_LOG:-/var/log/vega-image-dockerd.log}"
WAIT_SECONDS=60

say() { printf '==> %s\n' "$*" >&2; }
fail() { printf 'start-engines: %s\n' "$*" >&2; exit 1; }

docker_answers() { timeout 10 docker version >/dev/null 2>&1; }

# Wait for dockerd, but not for one that has died ($1: its process number, or empty).
wait_for_docker() {
  left=$((WAIT_SECONDS * 2))
  while [ "$left" -gt 0 ]; do
    docker_answers && return 0
    if [ -n "$1" ] && ! kill -0 "$1" 2>/dev/null; then
      return 1
    fi
    left=$((left - 1))
    sleep 0.5
  done
  return 1
}

# A bare VM may have mounted nothing here, and dockerd refuses to start without.
mount_cgroups() {
  if [ -n "$(ls -A /sys/fs/cgroup 2>/dev/null)" ]; then
    return 0
  fi
  say 'mounting cgroup2 on /sys/fs/cgroup'
  mount -t cgroup2 cgroup2 /sys/fs/cgroup
}

start_dockerd() {
  setsid dockerd "$@" >"$LOG" 2>&1 </dev/null &
  wait_for_docker "$!"
}

start_docker() {
  if docker_answers; then
    return 0
  fi
  command -v dockerd >/dev/null || fail 'dockerd is not installed: apt-get install docker.io'
  [ "$(id -u)" -eq 0 ] || fail 'dockerd does not answer, and only root can start it'
  if [ -d /run/systemd/system ]; then
    say 'systemctl start docker'
    systemctl start docker
    wait_for_docker '' || fail 'docker.service does not answer: journalctl -u docker'
    return 0
  fi
  mount_cgroups
  # The pid file of a dockerd that was killed keeps the next one from starting.
  if [ -f /var/run/docker.pid ] && ! kill -0 "$(cat /var/run/docker.pid)" 2>/dev/null; then
    rm -f /var/run/docker.pid
  fi
  say "starting dockerd, log: $LOG"
  start_dockerd && return 0
  if grep -qi 'iptables\|nf_tables\|bridge' "$LOG"; then
    # Stages have no network, so a kernel without NAT is enough for us.
    say 'once more, without a bridge: this kernel has no usable iptables'
    start_dockerd --iptables=false --bridge=none && return 0
  fi
  tail -n 20 "$LOG" >&2
  fail "dockerd does not answer within $WAIT_SECONDS s, log: $LOG"
}

check_podman() {
  command -v podman >/dev/null || fail 'podman is not installed: apt-get install podman'
  if ! podman info >/dev/null 2>&1; then
    if [ "$(id -u)" -ne 0 ] || [ -e /etc/containers/storage.conf ]; then
      podman info
    fi
    say 'podman cannot use overlay here: writing /etc/containers/storage.conf with vfs'
    printf '[storage]\ndriver = "vfs"\ngraphroot = "/var/lib/containers/storage"\nrunroot = "/run/containers/storage"\n' \
      >/etc/containers/storage.conf
    podman info >/dev/null
  fi
}

start_docker
check_podman
say "docker $(docker version --format '{{.Server.Version}}'), $(podman --version)"
