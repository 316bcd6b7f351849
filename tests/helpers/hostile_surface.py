# SPDX-License-Identifier: Apache-2.0
"""What can be called: every public name of l0rt with its parameters, found by looking, so that new names join."""

import importlib
import inspect
import pkgutil
import re
from dataclasses import dataclass, field

import l0rt
import l0rt.accelerator
import l0rt.runtime.current.stream

PARTNERS = {"dask", "dpctl", "mpi", "ray", "tinygrad", "torch", "torch_device", "torch_memory"}  # need other packages
INNER = {"bench", "config", "memory", "profiler", "telemetry"}  # packages whose modules are their own affair
# Not called, or not with every value; each with its reason.
EXCLUDED = {
    "l0rt.config.freeze": "says that the process has read a setting: no test could change it afterwards",
    "l0rt.config.on_change": "a listener stays for good and its exceptions are the next setter's",
    "l0rt.debug.dump_on_signal": "replaces a handler of the test's own process",
    "l0rt.kernels.sleep": "keeps the device busy for as long as it is told, which may be centuries",
    "l0rt.logs.begin": "logs to stderr, where silence is what is checked",
    "l0rt.memory.enable_leak_report": "the same, at exit",
    "l0rt.interface.register_guard_impl": "takes the address of a table of functions: the caller's word",
    "l0rt.memory.StatisticsAdaptor": "what it allocates is known to it alone",
    "l0rt.memory.LimitingAdaptor": "the same",
    "l0rt.memory.TrackingAdaptor": "the same",
    "l0rt.memory.LoggingAdaptor": "the same",
    "l0rt.memory.FailureCallbackAdaptor": "the same",
    "l0rt.sanitizer.Access": "a record of the sanitizer, which only it makes",
    "l0rt.sanitizer.Memory": "a record of the sanitizer, which only it makes",
    "l0rt.sanitizer.Sanitizer": "the sanitizer's own state; `start` makes the one that there is",
}
# An int given for one of these is the address of code or of a driver's object: the caller's word.
ADDRESSES = {"handle", "data_ptr", "alloc", "free", "table", "dst", "src"}
SPECIAL = {
    "__call__", "__contains__", "__copy__", "__deepcopy__", "__enter__", "__exit__", "__getitem__", "__init__",
    "__iter__", "__l0_stream__", "__len__", "__reduce__", "__setstate__",
}  # fmt: skip


@dataclass(frozen=True)
class Target:
    """One thing to do: a function, a constructor, a method or an attribute of a class."""

    path: str
    kind: str  # function, new, raw_new, subclass, method or attribute
    function: object
    owner: type | None = None
    parameters: tuple | None = None  # None: nobody says

    @property
    def name(self):
        return self.path.rpartition(".")[2]


@dataclass
class Surface:
    """All targets, and the classes whose objects have some."""

    targets: list = field(default_factory=list)
    classes: dict = field(default_factory=dict)  # class -> its targets
    seen: set = field(default_factory=set)

    def add(self, path, value):
        if path in EXCLUDED or id(value) in self.seen:
            return
        if isinstance(value, type):
            if not issubclass(value, BaseException):
                self.seen.add(id(value))
                self.add_class(path, value)
        elif callable(value):
            self.seen.add(id(value))
            self.targets.append(Target(path, "function", value, None, parameters_of(value)))
        elif type(value).__module__.startswith("l0rt"):
            self.meet(type(value))

    def add_class(self, path, cls):
        found = [Target(f"{path}.__new__", "raw_new", cls, cls, ()), Target(path, "new", cls, cls, parameters_of(cls))]
        found.append(Target(f"{path}()", "subclass", cls, cls, parameters_of(cls)))
        for name in sorted(set(dir(cls))):
            value = inspect.getattr_static(cls, name)
            if name.startswith("_") and name not in SPECIAL or value is getattr(tuple, name, None):
                continue
            if isinstance(value, type):
                if value.__module__.startswith("l0rt"):
                    self.add(f"{path}.{name}", value)
            elif isinstance(value, (staticmethod, classmethod)):
                bound = getattr(cls, name)
                found.append(Target(f"{path}.{name}", "function", bound, None, parameters_of(bound)))
            elif callable(value):
                ours = parameters_of(value)
                if ours and ours[0].name in ("self", "cls"):
                    ours = ours[1:]
                found.append(Target(f"{path}.{name}", "method", value, cls, ours))
            elif inspect.isdatadescriptor(value):
                found.append(Target(f"{path}.{name}", "attribute", None, cls, ()))
        found = [target for target in found if target.path not in EXCLUDED]
        self.classes[cls] = found
        self.targets += found

    def meet(self, cls):
        """Join the class of an object that some call returned."""
        if cls not in self.classes and id(cls) not in self.seen and not issubclass(cls, BaseException):
            self.seen.add(id(cls))
            self.add_class(f"{cls.__module__}.{cls.__qualname__}", cls)


def parameters_of(function):
    """Return the parameters of a callable; None if it does not say."""
    try:
        return tuple(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        found = re.match(r"\w+(\(.*\))", (inspect.getdoc(function) or "").partition("\n")[0])
    if not found:
        return None
    made = {}
    exec(f"def function{found[1]}: pass", {}, made)
    return tuple(inspect.signature(made["function"]).parameters.values())


def modules():
    """Return the public modules: what `l0rt` names, and what these have below them."""
    found = [l0rt]
    for name in l0rt.__all__:
        value = getattr(l0rt, name)
        if inspect.ismodule(value):
            found.append(value)
            for below in pkgutil.iter_modules([] if name in INNER else getattr(value, "__path__", [])):
                if not below.name.startswith("_") and below.name not in PARTNERS:
                    found.append(importlib.import_module(f"{value.__name__}.{below.name}"))
    return found


def names(module):
    """Return the public names of a module."""
    if hasattr(module, "__all__"):
        return module.__all__
    own = [name for name in vars(module) if not name.startswith("_")]
    return [name for name in own if getattr(getattr(module, name), "__module__", None) == module.__name__]


def surface():
    """Return everything that there is to call."""
    found = Surface()
    for module in modules():
        for name in names(module):
            value = getattr(module, name, None)
            if not inspect.ismodule(value):
                found.add(f"{module.__name__}.{name}", value)
    return found
