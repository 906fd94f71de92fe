"""spec -> lock -> plan -> render touches nothing: with bombs for the world it still runs."""

from __future__ import annotations

import builtins
import socket
import subprocess
import time
from typing import NoReturn

import pytest

from tests.factory import RECIPES, lock, target
from tests.windowstree import texts, tree
from vega_image.lockfile import check_lock, decode_lock, encode_lock
from vega_image.plan import StepKind, make_plan
from vega_image.render import Texts, render_stage, render_target

TEXTS = Texts(dockerfile="FROM scratch\nUSER {{ user }}\n", service="{{ name }}", script="x")


def bomb(*_args: object, **_kwargs: object) -> NoReturn:
    msg = "a pure module touched the world"
    raise AssertionError(msg)


def walk() -> dict[str, bytes]:
    spec = target()
    locked = decode_lock(encode_lock(lock(spec)), at="lock")
    check_lock(locked, spec, tools={"libzstd": "1.5.7"})
    makers = dict.fromkeys(StepKind, "sha256:" + "0" * 64)
    make_plan(spec, locked, makers=makers, recipes=RECIPES)
    recipe = {
        "recipe.yaml": b"",
        "Dockerfile.j2": b"ARG BASE\nFROM ${BASE}\nRUN {{ option.word }}\n",
    }
    stage = render_stage(spec.stages[0], recipe, epoch=locked.epoch, gpu=spec.gpu)
    return render_target(spec, locked, texts=TEXTS, stages={"greet": stage})


def test_a_windows_tree_is_made_of_values_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = tree()  # texts, the table of media and the modules are read now
    assert texts()
    with monkeypatch.context() as world:
        world.setattr(subprocess, "Popen", bomb)
        world.setattr(socket, "socket", bomb)
        world.setattr(builtins, "open", bomb)
        world.setattr(time, "time", bomb)
        assert tree() == expected


def test_the_first_half_of_the_line_is_pure(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = walk()  # the modules behind it are loaded now
    with monkeypatch.context() as world:
        world.setattr(subprocess, "Popen", bomb)
        world.setattr(socket, "socket", bomb)
        world.setattr(builtins, "open", bomb)
        world.setattr(time, "time", bomb)
        assert walk() == expected
    assert expected["stages/greet/Dockerfile"].endswith(b"RUN hello\n")
