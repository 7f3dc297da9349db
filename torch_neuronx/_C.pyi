# The binary layer. Its functions are documented where they are defined, in csrc/python/.
from typing import Any

def __getattr__(name: str) -> Any: ...
