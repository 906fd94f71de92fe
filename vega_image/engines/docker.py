"""One adapter over the Docker API, for dockerd >= 20.10 and for podman >= 4.0's socket.

The only importer of the SDK. Where the two engines differ, `DIALECTS` says so; nothing else
asks which one it is.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from typing import IO, Any, Self, cast

import docker  # noqa: TID251 - this is its one place
import docker.errors  # noqa: TID251
import requests
import urllib3

from vega_image.engines.base import Artifact, Work
from vega_image.engines.container import LABEL, ContainerSpec, Started, State
from vega_image.engines.context import Reader
from vega_image.engines.createbody import Machine, create_body
from vega_image.engines.dialect import DIALECTS
from vega_image.engines.dockerfile import BASE_ARG
from vega_image.engines.events import clean, lines_of
from vega_image.engines.limits import PROCESSES, hard_limit
from vega_image.engines.owner import OWNER_LABEL, Owner
from vega_image.engines.stage import build_stage
from vega_image.errors import EngineError
from vega_image.plan import Step
from vega_image.rootfs.tarread import ByteSource

ANSWER_SECONDS = 60
GONE_SECONDS = 15.0
CONFLICT = 409
_LOADED = re.compile(r"^Loaded image(?:\(s\))?(?: ID)?: (\S+)", re.MULTILINE)


class DockerEngine:
    """An engine behind a Docker-API socket; implements `Engine` and `ContainerHost`.

    `address` is a URL such as `unix:///run/docker.sock`. Use as a context manager.
    """

    def __init__(self, name: str, address: str) -> None:
        self._name = name
        self._address = address
        self._dialect = DIALECTS[name]
        self._owner = Owner.current()
        self._attached: dict[str, ExitStack] = {}
        with _engine_errors(name, "connecting"):
            self._api = docker.APIClient(
                base_url=address, version="auto", timeout=ANSWER_SECONDS
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        for attached in self._attached.values():
            attached.close()
        self._api.close()

    @property
    def name(self) -> str:
        """What `--engine` calls this engine."""
        return self._name

    @property
    def owner(self) -> str:
        """The label value of everything this process makes."""
        return str(self._owner)

    def version(self) -> str:
        """Ask the engine for its version, e.g. `20.10.24+dfsg1`."""
        with self._errors("asking for the version"):
            return str(self._api.version()["Version"])

    def product(self) -> str:
        """Tell `podman` behind Docker's socket from `docker`."""
        with self._errors("asking for the version"):
            parts = self._api.version().get("Components") or []
            names = " ".join(str(part.get("Name")) for part in parts)
            return "podman" if "podman" in names.lower() else "docker"

    def data_folder(self) -> str:
        """Ask where the engine keeps its images, a path on its machine."""
        with self._errors("asking for its data folder"):
            return str(self._api.info()["DockerRootDir"])

    def build(self, step: Step, work: Work) -> Artifact:
        """Build a stage on its parent's tree; see engines/stage.py for what it raises."""
        return build_stage(self, step, work, owner_label=OWNER_LABEL)

    def load_image(
        self, archive: Iterable[bytes], *, progress: Callable[[int], None] = lambda _bytes: None
    ) -> str:
        """Load a docker-archive stream (uncompressed layers) and return the image id.

        `progress` is told the bytes sent so far. Raises EngineError LOAD_FAILED.
        """
        with self._errors("loading an image", code="LOAD_FAILED"), self._patient() as api:
            answer = cast(
                "Iterable[Mapping[str, object]]",
                api.load_image(_counted(archive, progress)),  # type: ignore[no-untyped-call]
            )
            said = "".join(_said(event) for event in answer).strip()
            found = _LOADED.search(said)
            if found is None:
                msg = f"{self.name}: the image could not be loaded: {said}"
                raise EngineError("LOAD_FAILED", msg, hint="vega-image doctor")
            return self._image_id(found.group(1))

    def build_image(
        self,
        context: Iterable[bytes],
        *,
        base: str,
        on_event: Callable[[Mapping[str, object]], None],
    ) -> None:
        """Build a context on `base` without network; every event goes to `on_event`.

        Whatever ends this call also ends the build: the connection is closed, and dockerd
        kills the running stage.
        """
        with self._errors("building a stage"), self._patient() as api:
            for event in api.build(
                fileobj=cast("IO[bytes]", context),
                custom_context=True,
                nocache=True,
                rm=True,
                forcerm=True,
                decode=True,
                buildargs={BASE_ARG: base},
                network_mode=self._dialect.no_network,
                use_config_proxy=False,
            ):
                on_event(event)

    @contextmanager
    def saved(self, image: str) -> Iterator[ByteSource]:
        """Open an image's archive for reading."""
        with self._errors("saving an image"), self._patient() as api:
            chunks = cast("Generator[bytes]", api.get_image(image))
            with closing(chunks):
                yield Reader(chunks)

    def has_image(self, image: str) -> bool:
        """Whether the engine holds this image id or name."""
        with self._errors("looking for an image"):
            try:
                self._image_id(image)
            except docker.errors.ImageNotFound:
                return False
            return True

    def start_container(self, spec: ContainerSpec) -> Started:
        """Create and start; raises EngineError CONTAINER_FAILED when the engine refuses."""
        with self._errors(f"starting {spec.name}", code="CONTAINER_FAILED"):
            labels = {LABEL: spec.label, OWNER_LABEL: self.owner}
            machine = Machine(processes=hard_limit(PROCESSES), opened=self._dialect.opened)
            body = create_body(spec, labels, machine=machine)
            created = self._api.create_container_from_config(body, spec.name)  # type: ignore[no-untyped-call]
            container = str(created["Id"])
            try:
                return self._started(container)
            except BaseException:
                self.remove(container)
                raise

    def state(self, container: str) -> State | None:
        """Look a container (id or name) up; None when there is none."""
        with self._errors("looking for a container"):
            try:
                told = self._api.inspect_container(container)["State"]
            except docker.errors.NotFound:
                return None
            running = bool(told["Running"])
            return State(
                running=running,
                exit_code=None if running else int(told["ExitCode"]),
                oom_killed=bool(told.get("OOMKilled")),
            )

    def wait(self, container: str) -> State | None:
        """Wait for a container's end; podman says `running` a moment longer than it is."""
        with self._errors("waiting for a container"), self._patient() as api:
            try:
                api.wait(container)
            except docker.errors.NotFound:
                return None
        return self.state(container)

    def stop(self, container: str, *, grace_seconds: int = 5) -> None:
        """TERM, a grace period, KILL; nothing to do when it is gone or has ended."""
        with self._errors("stopping a container"):
            try:
                self._api.stop(container, timeout=grace_seconds)
            except docker.errors.NotFound:
                return

    def remove(self, container: str) -> None:
        """Kill if needed and remove with its volumes; nothing to do when it is gone."""
        self._attached.pop(container, ExitStack()).close()
        with self._errors("removing a container"):
            try:
                self._api.remove_container(container, v=True, force=True)
            except docker.errors.NotFound:
                return
            except docker.errors.APIError as error:
                if error.status_code != CONFLICT:
                    raise
                self._wait_gone(container)

    def remove_image(self, image: str) -> None:
        """Remove an image by id or name; nothing to do when it is gone."""
        with self._errors("removing an image"):
            try:
                self._api.remove_image(image, force=True)
            except docker.errors.NotFound:
                return

    def sweep(self, label: str | None = None) -> list[str]:
        """Remove what dead processes of ours left: running containers, images.

        `label` narrows it to one value of LABEL. Returns the names. What a living
        vega-image made stays.
        """
        wanted = LABEL if label is None else f"{LABEL}={label}"
        names: list[str] = []
        for row in self._containers(wanted):
            if self._is_left_over(row):
                self.remove(row["Id"])
                names.append(str((row.get("Names") or [row["Id"]])[0]).lstrip("/"))
        images = [row for row in self._images(wanted) if self._is_left_over(row)]
        found = [str(row["Id"]) for row in images]
        kept = self._drop_images(found)
        return names + [image for image in found if image not in kept]

    def clear(self, labels: Mapping[str, str]) -> None:
        """Remove every container and image that carries all these labels, LABEL among them."""
        # Asked for one label only: podman 4.3 finds no image by two.
        key = f"{LABEL}={labels[LABEL]}"
        for row in _carrying(labels, self._containers(key)):
            self.remove(row["Id"])
        found = [str(row["Id"]) for row in _carrying(labels, self._images(key))]
        kept = self._drop_images(found)
        if kept:
            msg = f"{self.name}: cannot remove {', '.join(kept)}: in use"
            raise EngineError("ENGINE_FAILED", msg, hint=f"{self.name} image prune")

    def _image_id(self, image: str) -> str:
        told = self._api.inspect_image(image)  # type: ignore[no-untyped-call]
        text = str(told["Id"])
        # Podman leaves the algorithm out.
        return text if ":" in text else f"sha256:{text}"

    def _started(self, container: str) -> Started:
        # Attached before it starts: the engine keeps no log to read the first lines from.
        with ExitStack() as stack:
            api = stack.enter_context(self._patient())
            stream = api.attach(container, stream=True, logs=False, demux=True)
            stack.callback(_hang_up, stream.close)
            self._api.start(container)
            self._attached[container] = stack.pop_all()
        return Started(id=container, lines=lines_of(stream))

    @contextmanager
    def _patient(self) -> Iterator[docker.APIClient]:
        """Open a client that waits as long as the work takes; its connections end with it."""
        responses: list[requests.Response] = []
        endless = cast("int", None)
        with closing(
            docker.APIClient(
                base_url=self._address, version=self._api.api_version, timeout=endless
            )
        ) as api:
            api.hooks["response"].append(lambda answer, **_k: responses.append(answer))
            try:
                yield api
            finally:
                for response in responses:
                    response.close()

    def _containers(self, label: str) -> list[dict[str, Any]]:
        with self._errors("listing containers"):
            return cast(
                "list[dict[str, Any]]",
                self._api.containers(all=True, filters={"label": label}),
            )

    def _images(self, label: str) -> list[dict[str, Any]]:
        with self._errors("listing images"):
            return cast(
                "list[dict[str, Any]]", self._api.images(all=True, filters={"label": label})
            )

    def _drop_images(self, images: list[str]) -> list[str]:
        """Remove images, children before parents, in whatever order; return what is left."""
        left = images
        while left:
            refused = [image for image in left if not self._drop_image(image)]
            if len(refused) == len(left):
                break
            left = refused
        return left

    def _drop_image(self, image: str) -> bool:
        with self._errors("removing an image"):
            try:
                self._api.remove_image(image, force=True)
            except docker.errors.NotFound:
                return True
            except docker.errors.APIError as error:
                if error.status_code != CONFLICT:
                    raise
                return False
            return True

    def _is_left_over(self, row: Mapping[str, Any]) -> bool:
        text = (row.get("Labels") or {}).get(OWNER_LABEL)
        owner = Owner.parse(text) if text else None
        return owner is not None and owner.surely_dead(self._owner)

    def _wait_gone(self, container: str) -> None:
        """Another removal is under way; wait for it."""
        waiter = threading.Event()
        for _attempt in range(int(GONE_SECONDS * 10)):
            if self.state(container) is None:
                return
            waiter.wait(0.1)
        msg = f"{self.name}: container {container[:12]} does not go away"
        hint = f"{self.name} rm -f {container[:12]}"
        raise EngineError("ENGINE_FAILED", msg, hint=hint)

    @contextmanager
    def _errors(self, doing: str, *, code: str = "ENGINE_FAILED") -> Iterator[None]:
        with _engine_errors(self._name, doing, code=code):
            yield


@contextmanager
def _engine_errors(name: str, doing: str, *, code: str = "ENGINE_FAILED") -> Iterator[None]:
    try:
        yield
    except (
        docker.errors.DockerException,
        requests.RequestException,
        urllib3.exceptions.HTTPError,
    ) as error:
        told = getattr(error, "explanation", None) or error
        msg = f"{name}: {doing}: {clean(str(told))}"
        raise EngineError(code, msg, hint="vega-image doctor") from error


def _hang_up(close: Callable[[], None]) -> None:
    """Close a stream whose other end may have closed it already."""
    with suppress(OSError):
        close()


def _counted(archive: Iterable[bytes], progress: Callable[[int], None]) -> Iterator[bytes]:
    sent = 0
    for chunk in archive:
        sent += len(chunk)
        yield chunk
        progress(sent)


def _said(event: Mapping[str, object]) -> str:
    detail = event.get("errorDetail")
    if isinstance(detail, Mapping):
        raise docker.errors.APIError(str(detail.get("message")))
    return str(event.get("stream") or "")


def _carrying(
    labels: Mapping[str, str], rows: Iterable[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    for row in rows:
        if labels.items() <= (row.get("Labels") or {}).items():
            yield row
