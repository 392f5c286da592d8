"""_library.py - libpmixfab itself: loading it, calling it, and what it hands out as Python's values."""
import enum
import functools
import logging
import threading
from typing import Any, Callable, Dict, Optional, Tuple, Type

import numpy

from pmixfab import _header
from pmixfab._types import ErrorCode

SONAME = "libpmixfab.so.0"
NONE = 0xffffffff
ffi: Any = _header.ffi

try:
    lib: Any = ffi.dlopen(SONAME)
except OSError as error:
    raise ImportError(f"{error}: install libpmixfab0, or say in LD_LIBRARY_PATH where it is") from None

libc: Any = ffi.dlopen(None)
NO_PATH: int = lib.PMIXFAB_NO_PATH
VERSION: str = ffi.string(lib.pmixfab_version()).decode()
VERSION_NUMBER: int = lib.PMIXFAB_VERSION_NUMBER


def known(kind: Any, number: int) -> int:
    """A member of an enumeration; of a later library, which has more of them, the number."""
    try:
        return kind(number)
    except ValueError:
        return number


class Error(Exception):
    """A call failed. `code` says why, for programs; the text, for people."""

    def __init__(self, code: int, text: str):
        super().__init__(text)
        self.code = known(ErrorCode, code)

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), (self.code, str(self))


class NotFound(Error, LookupError):
    """There is no such plane, device, host, switch or file."""


class InvalidArgument(Error, ValueError):
    """A number is out of range, or a text is empty."""


CLASSES: Dict[int, Type[Error]] = {ErrorCode.NOTFOUND: NotFound, ErrorCode.INVAL: InvalidArgument}

# ---- log ---------------------------------------------------------------------------------------------

log = logging.getLogger("pmixfab")
log.addHandler(logging.NullHandler())
LEVELS = (logging.ERROR, logging.WARNING, logging.INFO, logging.DEBUG)
said = threading.local()


@ffi.callback("pmixfab_log_fn")
def on_log(level: int, line: Any, _: Any) -> None:
    """The library's log: the last error is the text of the exception that follows."""
    text = ffi.string(line).decode(errors="replace")
    if level == 0:
        said.error = text
    log.log(LEVELS[level], "%s", text)


lib.pmixfab_set_log(on_log, ffi.NULL)


def call(function: Callable[..., int], *args: Any) -> None:
    """Call it; an error of it is raised."""
    said.error = None
    code = function(*args)
    if code != 0:
        text = said.error or ffi.string(lib.pmixfab_strerror(code)).decode()
        raise CLASSES.get(code, Error)(code, text)


# ---- values ------------------------------------------------------------------------------------------

def text_of(pointer: Any) -> str:
    """Names may be any bytes: what is no UTF-8 goes through as Python's file names do."""
    return ffi.string(pointer).decode("utf-8", "surrogateescape")


def bytes_of(text: Optional[str]) -> Any:
    """The same the other way; None is NULL."""
    return ffi.NULL if text is None else text.encode("utf-8", "surrogateescape")


def reader_of(kind: Any) -> Callable[[Any], Any]:
    """What makes a member of a C struct into what the named tuple says of it."""
    if kind is str:
        return text_of
    if kind == Optional[int]:
        return lambda raw: None if raw == NONE else raw
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return lambda raw: known(kind, raw)
    if hasattr(kind, "_fields"):
        return lambda raw: struct_of(raw, kind)
    return kind if kind in (int, bool) else tuple


@functools.lru_cache(maxsize=None)
def readers_of(kind: Any) -> Tuple[Tuple[str, Callable[[Any], Any]], ...]:
    """The same for all members of a named tuple."""
    return tuple((name, reader_of(member)) for name, member in kind.__annotations__.items())


def struct_of(raw: Any, kind: Any, **more: Any) -> Any:
    """A C struct as a named tuple; `more`: members that are made otherwise."""
    return kind(*(more[name] if name in more else read(getattr(raw, name)) for name, read in readers_of(kind)))


def filled(name: str, function: Callable[..., int], *args: Any) -> Any:
    """The struct that such a function fills, which is told its size."""
    out = ffi.new(f"struct {name} *")
    call(function, *args, out, ffi.sizeof(out[0]))
    return out


class Memory:
    """Numbers that the library holds, for numpy, which keeps this and so the owner of the memory."""

    def __init__(self, pointer: Any, shape: tuple, dtype: str, owner: Any, writable: bool = False):
        self.owner = owner
        self.__array_interface__ = {"version": 3, "shape": shape, "typestr": numpy.dtype(dtype).str,
                                    "data": (int(ffi.cast("uintptr_t", pointer)), not writable)}


def array_of(pointer: Any, shape: tuple, dtype: str, owner: Any, writable: bool = False) -> numpy.ndarray:
    """An array over the library's memory, without a copy."""
    if 0 in shape:
        return numpy.empty(shape, dtype)
    return numpy.asarray(Memory(pointer, shape, dtype, owner, writable))


def cells_of(array: numpy.ndarray) -> Any:
    """The numbers of a contiguous array of numpy.uint16, where they are."""
    return ffi.from_buffer("uint16_t[]", array)
