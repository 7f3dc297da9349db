"""``python -m torch_neuronx doctor`` and ``collect_env``: what is installed, what it found, and what is wrong.

``facts`` gathers and judges nothing, ``problems`` judges and gathers nothing, ``report`` writes both down. ``self_test``
runs in a process of its own, so that a crash is an answer too.
"""
