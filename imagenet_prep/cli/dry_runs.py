"""conclude_dry_run: prints the space that a command requires."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from imagenet_prep.cli.command_outcome import CommandOutcome
from imagenet_prep.cli.figures import needs_figures
from imagenet_prep.cli.printing.raw_data_text import print_needs
from imagenet_prep.cli.terminal import say

if TYPE_CHECKING:
    from imagenet_prep.storage.space import Need


def conclude_dry_run(needs: Sequence[Need]) -> CommandOutcome:
    """Print the needs; report an error if they do not fit."""
    from imagenet_prep.storage.space import refuse_lack

    print_needs(needs)
    refuse_lack(needs)
    say("It fits.", colour="green")
    figures = needs_figures(needs)
    return CommandOutcome(figures)
