#!/usr/bin/env bash
# Copyright The Crosswatch Authors
# SPDX-License-Identifier: Apache-2.0
#
# Puts the named binaries of the control plane into bin/k8s:
#
#   hack/controlplane/build.sh etcd kube-apiserver kubectl [kube-controller-manager]
#
# What is there in the right version stays. Otherwise the published envtest
# binaries are downloaded if that works within seconds, and whatever they don't
# hold is built from the Go modules that go.mod beside this script names.
#
#   CONTROLPLANE=build     never downloads
#   CONTROLPLANE=download  never builds what can be downloaded
#   KUBEBUILDER_ASSETS     a folder of the caller's own binaries: only a
#                          kube-controller-manager that it lacks is built
set -euo pipefail

kubernetes_version=v1.37.2 # of k8s.io/kubernetes in go.mod, for the binaries to report
envtest_version=1.37.0     # the nearest that is published
envtest_index=https://raw.githubusercontent.com/kubernetes-sigs/controller-tools/v0.23.0/envtest-releases.yaml
download_seconds=15

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
bin=$root/bin/k8s
mode=${CONTROLPLANE:-}
work=
child=

say() { echo "controlplane: $*"; }

die() {
	echo "controlplane: $*" >&2
	exit 1
}

# Nothing that this script started outlives it, however it ends.
cleanup() {
	if [[ -n $child ]]; then kill "$child" 2>/dev/null || true; fi
	if [[ -n $work ]]; then rm -rf "$work"; fi
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# What the stamp of a binary holds; git hashes alike on every platform.
build_stamp="build $(cat "$here/go.mod" "$here/go.sum" | git hash-object --stdin)"
download_stamp="download $envtest_version"

# A binary is current if its stamp is one that the mode accepts.
current() { # name
	local stamp
	[[ -x $bin/$1 && -f $bin/.stamp/$1 ]] || return 1
	stamp=$(<"$bin/.stamp/$1")
	case $stamp in
	"$build_stamp") [[ $mode != download || $1 == kube-controller-manager ]] ;;
	"$download_stamp") [[ $mode != build ]] ;;
	*) return 1 ;;
	esac
}

stamp() { # name, stamp
	mkdir -p "$bin/.stamp"
	echo "$2" >"$bin/.stamp/$1"
}

package_of() {
	case $1 in
	etcd) echo go.etcd.io/etcd/server/v3 ;;
	kube-apiserver | kube-controller-manager | kubectl) echo "k8s.io/kubernetes/cmd/$1" ;;
	*) die "unknown binary \"$1\": choose from etcd, kube-apiserver, kubectl and kube-controller-manager" ;;
	esac
}

# Waits for $child at most as long as it is told, and says every 15 seconds what
# it waits for; 124 if time ran out.
attend() { # seconds (0: no limit), doing, log
	local began=$SECONDS said=$SECONDS
	while kill -0 "$child" 2>/dev/null; do
		if (($1 > 0 && SECONDS - began >= $1)); then
			kill "$child" 2>/dev/null || true
			wait "$child" 2>/dev/null || true
			child=
			return 124
		fi
		if ((SECONDS - said >= 15)); then
			said=$SECONDS
			say "$2: $((SECONDS - began))s so far, $(grep -vc '^go: ' "$3" || true) packages"
		fi
		sleep 0.2
	done
	local status=0
	wait "$child" || status=$?
	child=
	return "$status"
}

build() { # name
	local package log=$work/$1.log began=$SECONDS minor=${kubernetes_version#v1.}
	package=$(package_of "$1")
	local version=k8s.io/component-base/version
	say "building $1 from $package"
	CGO_ENABLED=0 go build -C "$here" -v -trimpath \
		-ldflags="-s -w -X $version.gitVersion=$kubernetes_version -X $version.gitMajor=1 -X $version.gitMinor=${minor%.*}" \
		-o "$bin/$1" "$package" >"$log" 2>&1 &
	child=$!
	attend 0 "building $1" "$log" || {
		tail -n 20 "$log" >&2
		die "building $1 failed: see above"
	}
	stamp "$1" "$build_stamp"
	say "built $1 in $((SECONDS - began))s"
}

# Fetches etcd, kube-apiserver and kubectl; setup-envtest verifies the archive
# against the checksum in the index, whose version is pinned as well.
download() {
	local log=$work/download.log found name
	(cd "$root" && exec go tool -modfile=hack/tools/go.mod -n setup-envtest) >"$work/setup-envtest" 2>"$log" &
	child=$!
	attend 0 "building setup-envtest" "$log" || {
		say "setup-envtest does not build$(reason "$log")"
		return 1
	}
	say "downloading the envtest binaries $envtest_version, ${download_seconds}s at most"
	"$(<"$work/setup-envtest")" use "$envtest_version" \
		--bin-dir "$bin/.envtest" --index "$envtest_index" -p path >"$work/found" 2>"$log" &
	child=$!
	attend "$download_seconds" downloading "$log" || {
		say "the download does not work$(reason "$log")"
		return 1
	}
	found=$(<"$work/found")
	for name in etcd kube-apiserver kubectl; do
		install -m 0755 "$found/$name" "$bin/$name"
		stamp "$name" "$download_stamp"
	done
	say "downloaded etcd, kube-apiserver and kubectl"
}

reason() { # log
	local last
	last=$(grep -v '^[[:space:]]*$' "$1" | tail -n 1 || true)
	[[ -z $last ]] || echo ": ${last:0:200}"
}

missing() { # names
	local name
	for name; do
		current "$name" || echo "$name"
	done
}

main() {
	local todo=() name
	case $mode in
	'' | build | download) ;;
	*) die "CONTROLPLANE=$mode: set it to build or to download, or leave it unset" ;;
	esac
	for name; do package_of "$name" >/dev/null; done
	[[ $# -gt 0 ]] || die "name the binaries wanted, for instance: $0 etcd kube-apiserver kubectl"

	mkdir -p "$bin"
	if [[ -n ${KUBEBUILDER_ASSETS:-} && ! $KUBEBUILDER_ASSETS -ef $bin ]]; then
		# Theirs are taken as they are; a controller manager is seldom among them.
		[[ " $* " == *" kube-controller-manager "* && ! -x $KUBEBUILDER_ASSETS/kube-controller-manager ]] || return 0
		set -- kube-controller-manager
	fi

	read -r -d '' -a todo < <(missing "$@") || true
	[[ ${#todo[@]} -gt 0 ]] || return 0
	work=$(mktemp -d)

	if [[ $mode != build && ${todo[*]} != kube-controller-manager ]]; then
		if download; then
			read -r -d '' -a todo < <(missing "$@") || true
		elif [[ $mode == download ]]; then
			die "CONTROLPLANE=download: allow access to github.com, or unset it to build from source"
		fi
	fi
	[[ ${#todo[@]} -gt 0 ]] || return 0

	say "${#todo[@]} to build from source: about ten minutes for all on two cores, once"
	for name in "${todo[@]}"; do build "$name"; done
	say "ready in bin/k8s after ${SECONDS}s"
}

main "$@"
