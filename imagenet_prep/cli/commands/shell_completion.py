"""completion: the script that completes commands and options in a shell."""

from __future__ import annotations

import click

from imagenet_prep.cli.base_command import Command
from imagenet_prep.cli.command_outcome import CommandOutcome
from imagenet_prep.cli.option_types import OneOf
from imagenet_prep.cli.terminal import say


@click.command(cls=Command)
@click.argument("shell", type=OneOf(["bash", "zsh", "fish"]))
def completion(shell: str, quiet: bool) -> CommandOutcome:
    """Print the script that lets your shell complete commands, options and paths; save it where the
    shell looks.

    \b
    imagenet-prep completion bash >> ~/.bash_completion
    imagenet-prep completion zsh > ~/.zfunc/_imagenet-prep  (~/.zfunc is in fpath)
    imagenet-prep completion fish > ~/.config/fish/completions/imagenet-prep.fish
    """
    from click.shell_completion import get_completion_class

    shell_class = get_completion_class(shell)
    assert shell_class is not None
    context = click.get_current_context()
    whole_command = context.find_root().command
    completer = shell_class(whole_command, {}, "imagenet-prep", "_IMAGENET_PREP_COMPLETE")
    script = completer.source()
    say(*script.split("\n"))
    return CommandOutcome({"shell": shell, "script": script})
