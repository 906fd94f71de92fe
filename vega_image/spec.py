"""What a user asks for: images/<target>.yaml as values. Nothing here reads a file."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    Field,
    PlainSerializer,
    StringConstraints,
    model_validator,
)
from pydantic_core import PydanticCustomError

from vega_image.model import Model
from vega_image.wsl.spec import Wsl, misfits

Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9.+-]*$", max_length=100)]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


Gpu = Annotated[str, StringConstraints(pattern=r"^gfx[0-9a-f]{3,5}$")]


def _absolute(path: str) -> str:
    if not path.startswith("/"):
        msg = "a path inside the container starts with /"
        raise ValueError(msg)
    _relative(path[1:])
    return path


def _relative(path: str) -> str:
    parts = path.split("/")
    if "\0" in path or any(part in {"", ".", ".."} for part in parts):
        msg = "a path inside the image is relative, without `.`, `..` or double slashes"
        raise ValueError(msg)
    return path


RootPath = Annotated[str, AfterValidator(_relative)]
ContainerPath = Annotated[str, AfterValidator(_absolute)]
Names = Annotated[frozenset[Name], PlainSerializer(sorted, list[str], when_used="json")]


MISFIT = "kind_misfit"
"""Type of the complaint about sections that a target's kind wants or cannot have."""


class TargetKind(StrEnum):
    """The shape of what is handed over."""

    OCI = "oci"
    WSL = "wsl"
    WINDOWS = "windows"


class Pin(Model):
    """One apt preference stanza."""

    packages: tuple[str, ...] = Field(description="package or `src:` names, as in apt pins")
    pin: str = Field(description="e.g. `version 7.2.4*` or `release a=experimental`")
    priority: int


class DebianSource(Model):
    """Packages of Debian suites, resolved by apt and locked file by file."""

    kind: Literal["debian"]
    suites: tuple[Name, ...] = Field(min_length=1)
    components: tuple[Name, ...] = ("main",)
    architecture: Name = "amd64"
    packages: Names = Field(min_length=1, description="what apt is asked for")
    essential: bool = Field(default=False, description="add Debian's essential packages")
    pins: tuple[Pin, ...] = ()
    accept_expired_release: bool = Field(
        default=False, description="go on with a Release file past its Valid-Until; recorded"
    )


class ArchiveSource(Model):
    """One file from an address."""

    kind: Literal["archive"]
    url: str
    size: int = Field(gt=0, description="bytes")
    sha256: Sha256


Commit = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")]
FileName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$")]


class GitSource(Model):
    """One commit of a repository; while nobody knows the commit, the branch it is to be of."""

    kind: Literal["git"]
    url: str
    commit: Commit | None = None
    branch: str | None = Field(default=None, min_length=1)

    @model_validator(mode="after")
    def _names_something(self) -> GitSource:
        if self.commit is None and self.branch is None:
            msg = "a git source wants a commit, or at least a branch"
            raise ValueError(msg)
        return self


class IsoSource(Model):
    """An installation medium the user brings; nothing downloads it.

    `iso` names one of the known media, or size, digest and editions are given here.
    """

    kind: Literal["iso"]
    iso: Name | None = Field(default=None, description="a medium of the table of known ISOs")
    size: int | None = Field(default=None, gt=0, description="bytes")
    sha256: Sha256 | None = None
    editions: dict[int, str] = Field(default_factory=dict, description="image index -> name")

    @model_validator(mode="after")
    def _is_one_of_both(self) -> IsoSource:
        own = (self.size, self.sha256)
        if self.iso is None and None in own:
            msg = "an iso source wants `iso`, or both `size` and `sha256`"
            raise ValueError(msg)
        if self.iso is not None and (own != (None, None) or self.editions):
            msg = "`iso` names a known medium, so `size`, `sha256` and `editions` are its own"
            raise ValueError(msg)
        return self


class FileSource(Model):
    """A file the office brings: an installer, a closed library. Nothing downloads it.

    Without size and digest the lock holds it as `unresolved`, until somebody locks a copy.
    """

    kind: Literal["file"]
    file: FileName
    version: str | None = Field(default=None, min_length=1)
    size: int | None = Field(default=None, gt=0, description="bytes")
    sha256: Sha256 | None = None
    where: str = Field(default="", description="who publishes it, in words")


Source = Annotated[
    DebianSource | ArchiveSource | GitSource | IsoSource | FileSource,
    Field(discriminator="kind"),
]


class User(Model):
    """A line of /etc/passwd and its group of the same name and number."""

    name: Name
    uid: int = Field(ge=0, le=65534)
    home: str = "/"


class RootMethod(StrEnum):
    """How package content becomes a tree."""

    EXTRACT = "extract"
    INSTALL = "install"


class Root(Model):
    """The package content of the image."""

    source: Name = Field(description="a `debian` source of this spec")
    method: RootMethod = RootMethod.EXTRACT
    omit: dict[Name, str] = Field(
        default_factory=dict, description="packages of the closure left out: name -> why"
    )
    exclude: tuple[str, ...] = Field(
        default=(),
        description="globs of paths left out, matched against `usr/...`; `*` crosses /",
    )
    include: tuple[str, ...] = Field(default=(), description="globs kept in spite of `exclude`")
    links: dict[RootPath, str] = Field(
        default_factory=dict, description="symlinks to add: path -> target"
    )
    users: tuple[User, ...] = ()
    files: dict[RootPath, str] = Field(
        default_factory=dict, description="small text files to add: path -> content"
    )


class Stage(Model):
    """One stage run by an engine: a recipe of templates/stages/ and its options."""

    name: Name
    recipe: Name
    options: dict[str, str] = Field(default_factory=dict)
    sources: tuple[Name, ...] = Field(default=(), description="sources placed in its context")


class Slim(Model):
    """Which GPU architectures stay in device code."""

    keep: tuple[Gpu, ...] = Field(min_length=1)


class Census(Model):
    """What the device code of the finished tree must show."""

    arch: Gpu = "gfx906"
    libraries: tuple[str, ...] = Field(
        default=(), description="globs; each must match a library with code for `arch`"
    )
    kernel_files: dict[str, int] = Field(
        default_factory=dict, description="glob -> least number of files that must match"
    )


class Layer(Model):
    """One layer: the packages it holds, or `rest: true` for whatever no other one names."""

    name: Name
    packages: tuple[str, ...] = Field(default=(), description="globs of owners")
    rest: bool = False


class Codec(StrEnum):
    """How layers are compressed."""

    ZSTD = "zstd"
    GZIP = "gzip"


GZIP_MAX_LEVEL = 9


class Compression(Model):
    """Fixed, so that a rebuild gives the same bytes."""

    codec: Codec = Codec.ZSTD
    level: int = Field(default=9, ge=1, le=22, description="gzip has 1 to 9")
    window_log: int | None = Field(default=None, ge=17, le=27, description="zstd only")

    @model_validator(mode="after")
    def _fits_its_codec(self) -> Compression:
        if self.codec is Codec.GZIP and (self.level > GZIP_MAX_LEVEL or self.window_log):
            msg = f"gzip has levels 1 to {GZIP_MAX_LEVEL} and no window_log"
            raise ValueError(msg)
        return self


class ImageConfig(Model):
    """The OCI image configuration."""

    user: str
    entrypoint: tuple[str, ...] = ()
    cmd: tuple[str, ...] = ()
    env: dict[str, str] = Field(default_factory=dict)
    workdir: str = "/"
    labels: dict[str, str] = Field(default_factory=dict)


class Serve(Model):
    """How `run` starts the image's server; carried in a label, so an image explains itself."""

    protocol: Literal["llama-server"]
    socket: ContainerPath = Field(description="unix socket inside the container")
    model: ContainerPath = Field(description="where the model is mounted")
    args: tuple[str, ...] = ()
    gpu_args: tuple[str, ...] = Field(description="added with the GPU; must forbid a fall-back")
    cpu_args: tuple[str, ...] = Field(description="added under --cpu")
    gpu_device: str = Field(description="the name the server gives the GPU, e.g. ROCm0")


class FindDbProfile(StrEnum):
    """What MIOpen may choose: proven records and the fallback, proven ones only, anything."""

    SAFE = "safe"
    STRICT = "strict"
    UPSTREAM = "upstream"


class FindDbSource(Model):
    """A find-db as a locked package holds it."""

    package: Name = Field(description="a package of the root's source; `root.omit` may name it")
    path: RootPath = Field(description="of the text find-db in that package")


class FindDb(Model):
    """The MIOpen find-db of an image.

    Its records come from images/TARGET.finddb/, where `finddb bake` puts them. Without that
    folder they are made from `database`: without evidence, so of fallback solvers only.
    """

    profile: FindDbProfile = FindDbProfile.SAFE
    database: FindDbSource | None = None


class Target(Model):
    """One file under images/."""

    schema_version: Literal[1] = Field(alias="schema")
    name: Name
    kind: TargetKind
    version: Annotated[str, StringConstraints(pattern=r"^[0-9A-Za-z][0-9A-Za-z._-]*$")]
    title: str
    description: str
    gpu: Gpu = "gfx906"
    epoch: int | None = Field(
        default=None, ge=0, description="seconds since 1970; default: date of the Release file"
    )
    licenses: str
    sources: dict[Name, Source]
    root: Root
    stages: tuple[Stage, ...] = ()
    slim: Slim | None = None
    census: Census | None = None
    layers: tuple[Layer, ...] = Field(default=(), description="kind oci")
    compression: Compression = Compression()
    image: ImageConfig | None = Field(default=None, description="kind oci")
    serve: Serve | None = None
    finddb: FindDb | None = None
    wsl: Wsl | None = Field(default=None, description="kind wsl")

    @model_validator(mode="after")
    def _has_the_sections_of_its_kind(self) -> Target:
        found = [f"{key}: {what}" for key, what in misfits(self.kind.value, self._said())]
        if found:
            raise PydanticCustomError(MISFIT, "{found}", {"found": "; ".join(found)})
        return self

    def _said(self) -> frozenset[str]:
        empty = (None, ())
        return frozenset(k for k in self.model_fields_set if getattr(self, k) not in empty)

    @property
    def config(self) -> ImageConfig:
        """The configuration of an image; only a target of kind oci has one."""
        assert self.image is not None
        return self.image
