# Source this file: `import torch` then autoloads the package from this source tree, without installing it.
# The entry points are taken from pyproject.toml.
_neuron_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
_neuron_entry=$_neuron_root/build/entry_points
mkdir -p "$_neuron_entry/torch_neuronx-0.dev.dist-info"
printf 'Metadata-Version: 2.1\nName: torch-neuronx\nVersion: 0.dev\n' > "$_neuron_entry/torch_neuronx-0.dev.dist-info/METADATA"
awk '/^\[project.entry-points/ { match($0, /"[^"]+"/); print "[" substr($0, RSTART + 1, RLENGTH - 2) "]"; inside = 1; next }
     /^\[/ { inside = 0 } inside && NF { gsub(/"/, ""); print }' "$_neuron_root/pyproject.toml" \
  > "$_neuron_entry/torch_neuronx-0.dev.dist-info/entry_points.txt"
case ":${PYTHONPATH:-}:" in
  *":$_neuron_root:"*) ;;
  *) export PYTHONPATH=$_neuron_root:$_neuron_entry${PYTHONPATH:+:$PYTHONPATH} ;;
esac
unset _neuron_root _neuron_entry
