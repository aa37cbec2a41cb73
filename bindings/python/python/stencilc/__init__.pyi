import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, overload

__version__: str

class Error(Exception): ...

class CompileError(Error):
    place: tuple[str, int, int] | None

class ArgumentError(Error, ValueError): ...
class DeviceError(Error, RuntimeError): ...
class Cancelled(Error): ...
class InternalError(Error): ...

class Result(dict[str, Any]):
    steps: int
    launches: int
    seconds: float | None
    met: bool | None
    copies: int
    copied_bytes: int
    history: dict[str, Any] | None
    def __getattr__(self, name: str) -> Any: ...

class Kernel:
    name: str
    target: Literal["cuda", "cpu", "reference", "sim"]
    fields: dict[str, tuple[str, Any, int]]
    scalars: dict[str, str | None]
    params: list[str]
    ptx: str
    plan: dict[str, Any]
    def __call__(
        self,
        *,
        steps: int | None = None,
        first_step: int = 0,
        in_place: bool = False,
        out: Mapping[str, Any] | Any | None = None,
        stream: Any = None,
        progress: Callable[[int, int], object] | Literal[True] | None = None,
        every: int | None = None,
        keep: Iterable[str] | None = None,
        params: Mapping[str, Any] | None = None,
        **values: Any,
    ) -> Result: ...
    def source(self, level: str = "stencil", **sizes: int) -> str: ...
    @overload
    def report(self, *, as_dict: Literal[False] = False, **sizes: int) -> str: ...
    @overload
    def report(self, *, as_dict: Literal[True], **sizes: int) -> dict[str, Any]: ...

class Field:
    name: str
    element: str
    rank: int
    def __class_getitem__(cls, arguments: tuple[Any, int]) -> Any: ...
    def __getitem__(self, offsets: int | tuple[int, ...]) -> Any: ...
    def __setitem__(self, box: Any, value: Any) -> None: ...
    def __getattr__(self, name: str) -> Any: ...
    @staticmethod
    def temp(like: Any, name: str | None = None) -> Any: ...

class Function:
    __name__: str
    def __call__(self, *arrays: Any, **values: Any) -> Result: ...
    def kernel(self, **values: Any) -> Kernel: ...
    def source(self, level: str | None = None, **values: Any) -> str: ...

def compile(
    program: str | os.PathLike[str],
    *,
    target: Literal["auto", "cuda", "cpu", "reference", "sim"] = "auto",
    define: Mapping[str, int] | None = None,
    cache: str | os.PathLike[str] | Literal[False] | None = None,
    **options: bool | int | str | Sequence[int] | None,
) -> Kernel: ...
def load(
    plan: str | os.PathLike[str], code: str | os.PathLike[str] | None = None
) -> Kernel: ...
@overload
def function(
    traced: Callable[..., Any], *, steps: int = 1, boundary: Mapping[str, Any] | None = None,
    **options: Any,
) -> Function: ...
@overload
def function(
    traced: None = None, *, steps: int = 1, boundary: Mapping[str, Any] | None = None,
    **options: Any,
) -> Callable[[Callable[..., Any]], Function]: ...
def where(condition: Any, yes: Any, no: Any) -> Any: ...
def reduction(operation: str, value: Any, box: Any = None) -> Any: ...
def picture(
    array: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    colors: str = "viridis",
    range: tuple[float, float] | None = None,
) -> bytes: ...
def load_ipython_extension(ipython: Any) -> None: ...
