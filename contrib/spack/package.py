# Spack's recipe of fabricd: put it into packages/fabricd/ of a repository of your own. Its variants are the options of the
# build (docs/building.md).
from spack.package import *


class Fabricd(CMakePackage):
    """A current map of a cluster's fabric for PMIx: distances, faults and changes for schedulers, jobs and operators."""

    homepage = "https://fabricd.example"
    git = "https://fabricd.example/fabricd.git"

    license("BSD-3-Clause")

    version("main", branch="main")

    variant("daemon", default=True, description="fabricd")
    variant("pmix", default=True, description="fabricd-pmix, the PMIx server of fabricd")
    variant("host", default=True, description="fabric-host, a PMIx host of one user")
    variant("ctl", default=True, description="fabricctl")
    variant("report", default=True, when="+ctl", description="the page of fabricctl report")
    variant("scotch", default=False, when="+ctl", description="the mapping of fabricctl run by Scotch")
    variant("lib", default=True, description="libpmixfab")
    variant("components", default=False, description="components of the PMIx library; need its private headers")
    variant("guard", default=False, description="libpmix-guard; needs the PMIx library's private headers")
    variant("python", default=False, description="the Python package pmixfab")
    variant("probes", default=True, when="+daemon", description="probes that need libraries of their own")

    depends_on("c", type="build")
    depends_on("cmake@3.22:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    generator("ninja")

    depends_on("pmix@4.2:")
    depends_on("xxhash")
    depends_on("uthash")
    for part in ("+daemon", "+pmix", "+host"):
        for library in ("sqlite", "libevent", "jansson", "libyaml", "nettle", "munge"):
            depends_on(library, when=part)
    depends_on("libseccomp", when="+pmix")
    depends_on("jansson", when="+ctl")
    depends_on("util-linux", when="+ctl")  # libsmartcols
    depends_on("scotch@7:~int64", when="+scotch")
    for part in ("+components", "+guard"):
        depends_on("libevent", when=part)
    depends_on("jansson", when="+components")
    depends_on("munge", when="+guard")
    with when("+python"):
        extends("python")
        depends_on("py-cffi", type=("build", "run"))
        depends_on("py-numpy", type="run")
    with when("+probes"):
        for library in ("rdma-core", "hwloc", "libfabric", "ucx"):
            depends_on(library)

    def cmake_args(self):
        names = ("daemon", "pmix", "host", "ctl", "report", "scotch", "lib", "components", "guard", "python")
        args = [self.define(f"FABRICD_{name.upper()}", self.spec.satisfies(f"+{name}")) for name in names]
        args += [self.define("BUILD_TESTING", False), self.define("CMAKE_INSTALL_LIBDIR", "lib")]
        if self.spec.satisfies("+python"):
            args.append(self.define("PYTHON_PACKAGES", python_platlib.replace(f"{self.prefix}/", "")))
        return args
