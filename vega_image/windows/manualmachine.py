"""Commands of the operator's page for a machine that runs: inventory, build, verdict. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from vega_image.windows.parts import VIRTIO, Job
from vega_image.windows.spec import Platform

_TASK = r"-TaskPath '\VegaImage\' -TaskName SelfTest"


def inventory_lines(job: Job) -> Iterator[str]:
    """Yield an inventory of one machine, unless there is one, and the first word with it."""
    target = job.target
    rows = (
        "windows:",
        "  children:",
        "    windows_ssh:",
        "      hosts:",
        "        '$HOST':",
        f"          vega_expected_gpu: '{target.first_boot.cards[0]}'",
        f"          ansible_user: {target.administrator}",
    )
    yield 'if [ ! -e "$OFFICE/office.yaml" ]; then'
    yield '  mkdir -p "$OFFICE"'
    yield '  cp -r "$TREE/inventory/group_vars" "$OFFICE/"'
    yield '  cp "$KEY" "$OFFICE/controller-key"'
    yield '  ssh-keyscan -t ed25519 "$HOST" > "$OFFICE/known_hosts"'
    # Without a host key there must be no inventory: the block could not be run again.
    yield "  test -s \"$OFFICE/known_hosts\" && printf '%s\\n' \\"
    yield from (f'    "{row}" \\' for row in rows)
    yield '    > "$OFFICE/office.yaml"'
    yield "fi"
    yield 'cd "$TREE/playbooks"'
    yield 'ansible --inventory "$OFFICE/office.yaml" -m ansible.windows.win_ping windows'


def provision_lines(job: Job) -> Iterator[str]:
    """Yield what brings the files of the lock to the machine and builds there."""
    folder = '"$TREE/media/vega/installers'
    files = [item.file for item in job.payload() if item.name != VIRTIO]
    if files:
        yield f'mkdir -p {folder}"'
        yield f"for FILE in {' '.join(shlex.quote(file) for file in files)}; do"
        yield f'  cp "$PAYLOAD/$FILE" {folder}/"'
        yield "done"
    if job.platform is Platform.METAL:
        yield 'vega-image selftest pack --output "$TREE/media/vega/vega-selftest.pyz"'
    yield 'cd "$TREE/playbooks"'
    tree = '{\\"vega_tree\\": \\"$TREE\\", \\"vega_native_build\\": true}'
    yield 'ansible-playbook --inventory "$OFFICE/office.yaml" \\'
    yield f'  --extra-vars "{tree}" windows.yaml'


def verdict_lines(job: Job) -> Iterator[str]:
    """Yield the self-test's start, its end and its answer, asked for over ssh.

    No double quote reaches the other side: its sshd hands the words to PowerShell in such.
    """
    known = '-o UserKnownHostsFile="\\"$OFFICE/known_hosts\\""'
    yield "ask() {"
    yield '  ssh -F none -i "$KEY" -o StrictHostKeyChecking=yes -o ServerAliveInterval=15 \\'
    yield f'    {known} {job.target.administrator}@"$HOST" "$1"'
    yield "}"
    wait = f"(Get-ScheduledTask {_TASK}).State -eq 'Running'"
    for words in (
        f"Start-ScheduledTask {_TASK}; do {{ Start-Sleep -Seconds 10 }} while ({wait})",
        "Get-Content \\$env:ProgramData/VegaImage/selftest/verdict.json",
        "Get-WinEvent -ProviderName VegaImage -MaxEvents 5 | Format-List TimeCreated, Message",
    ):
        yield f'ask "{words}"'
