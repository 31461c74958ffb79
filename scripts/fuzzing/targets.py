"""The fuzz targets: each hands bytes to a parser of the package, and lets pass what that parser
documents, no more.

What is left is a finding: any other exception, an assertion that does not hold, or a cost above the
bounds (bounds.py). Formats that are files are read from a file, by the function that the package
itself calls.
"""

import of_data
import of_state
from target import TARGETS

__all__ = ["TARGETS", "of_data", "of_state"]
