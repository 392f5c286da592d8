"""_library.py - loading libpmixfab, calling it, and its results as Python values."""
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
    raise ImportError(f"{error}: install libpmixfab0, or add its folder to LD_LIBRARY_PATH") from None

libc: Any = ffi.dlopen(None)
NO_PATH: int = lib.PMIXFAB_NO_PATH
VERSION: str = ffi.string(lib.pmixfab_version()).decode()
VERSION_NUMBER: int = lib.PMIXFAB_VERSION_NUMBER


def known(kind: Any, number: int) -> int:
    """Return the member of an enumeration; if only a later library has it, the number."""
    try:
        return kind(number)
    except ValueError:
        return number


class Error(Exception):
    """A call failed. `code` is the cause for programs, the text is the message for people."""

    def __init__(self, code: int, text: str):
        super().__init__(text)
        self.code = known(ErrorCode, code)

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), (self.code, str(self))


class NotFound(Error, LookupError):
    """The plane, device, host, switch or file does not exist."""


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
    """Receive a log line of the library. The last error becomes the text of the next exception."""
    text = ffi.string(line).decode(errors="replace")
    if level == 0:
        said.error = text
    log.log(LEVELS[level], "%s", text)


lib.pmixfab_set_log(on_log, ffi.NULL)


def call(function: Callable[..., int], *args: Any) -> None:
    """Call the function, and raise its error."""
    said.error = None
    code = function(*args)
    if code != 0:
        text = said.error or ffi.string(lib.pmixfab_strerror(code)).decode()
        raise CLASSES.get(code, Error)(code, text)


# ---- values ------------------------------------------------------------------------------------------

def text_of(pointer: Any) -> str:
    """Return a name as text. Names may be any bytes: other bytes than UTF-8 are kept, as in Python's file names."""
    return ffi.string(pointer).decode("utf-8", "surrogateescape")


def bytes_of(text: Optional[str]) -> Any:
    """Return a text as bytes; None is NULL."""
    return ffi.NULL if text is None else text.encode("utf-8", "surrogateescape")


def reader_of(kind: Any) -> Callable[[Any], Any]:
    """Return the function that converts a member of a C struct to its type in the named tuple."""
    if kind is str:
        return text_of
    if kind == Optional[int]:
        return lambda raw: None if raw == NONE else raw
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return lambda raw: known(kind, raw)
    if hasattr(kind, "_fields"):
        return lambda raw: struct_of(raw, kind)
    return kind if kind in (int, bool, float) else tuple


@functools.lru_cache(maxsize=None)
def readers_of(kind: Any) -> Tuple[Tuple[str, Callable[[Any], Any]], ...]:
    """Return these functions for all members of a named tuple."""
    return tuple((name, reader_of(member)) for name, member in kind.__annotations__.items())


def struct_of(raw: Any, kind: Any, **more: Any) -> Any:
    """Return a C struct as a named tuple; `more`: members with values from elsewhere."""
    return kind(*(more[name] if name in more else read(getattr(raw, name)) for name, read in readers_of(kind)))


def filled(name: str, function: Callable[..., int], *args: Any) -> Any:
    """Return a new struct that a function with a size argument (pmixfab_..._sized) has filled."""
    out = ffi.new(f"struct {name} *")
    call(function, *args, out, ffi.sizeof(out[0]))
    return out


class Memory:
    """Numbers in the library's memory, for numpy. The array keeps this object, and so the owner of the memory."""

    def __init__(self, pointer: Any, shape: tuple, dtype: str, owner: Any, writable: bool = False):
        self.owner = owner
        self.__array_interface__ = {"version": 3, "shape": shape, "typestr": numpy.dtype(dtype).str,
                                    "data": (int(ffi.cast("uintptr_t", pointer)), not writable)}


def array_of(pointer: Any, shape: tuple, dtype: str, owner: Any, writable: bool = False) -> numpy.ndarray:
    """Return an array over the library's memory, without a copy."""
    if 0 in shape:
        return numpy.empty(shape, dtype)
    return numpy.asarray(Memory(pointer, shape, dtype, owner, writable))


def cells_of(array: numpy.ndarray) -> Any:
    """Return a pointer to the numbers of a contiguous array of numpy.uint16."""
    return ffi.from_buffer("uint16_t[]", array)
