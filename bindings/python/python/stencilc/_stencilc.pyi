from collections.abc import Callable
from typing import Any

Told = tuple[int, int, float | None, bool | None, int, int]

class Native:
    name: str
    text: str | None
    target: str
    params: list[str]
    scalars: list[tuple[str, str | None]]
    fields: list[tuple[str, str, Any, int]]
    def __new__(
        cls, name: str, text: str, options: list[str], cache: str | None
    ) -> Native: ...
    @staticmethod
    def load(plan: str, code: bytes, name: str) -> Native: ...
    def run(
        self,
        values: dict[str, Any],
        steps: int | None,
        first_step: int,
        in_place: bool,
        out: dict[str, Any] | None,
        stream: Any,
        progress: Callable[[int, int], object] | None,
    ) -> tuple[dict[str, Any], Told]: ...
    def level(self, level: str, sizes: dict[str, int] | None) -> str: ...
    def report(self, json: bool, sizes: dict[str, int] | None) -> str: ...
    def check_parts(self, first_step: int, every: int | None) -> None: ...

def check_options(options: list[str]) -> None: ...
def is_reserved(name: str) -> bool: ...
def png(
    shape: tuple[int, int], cells: bytes, colors: str, range: tuple[float, float] | None
) -> bytes: ...
