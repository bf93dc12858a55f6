from agora.app.memory import Memory as Memory
from agora.errors import AgoraError as AgoraError

__version__: str
__all__ = ["AgoraError", "Memory", "__version__"]
