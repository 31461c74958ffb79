"""In the place of an agent of a machine of Ray: says that it serves at no port, as Ray's own one does
where Ray is installed without its dashboard, and ends with the machine.

Ray starts it, by lean_ray: with the names of its ports and the words for Ray's own. It imports
nothing, where each of Ray's own takes a second of a processor.
"""

import sys

options = dict(word.split("=", 1) for word in sys.argv[1:] if "=" in word)
names = [word for word in sys.argv[1:] if word.endswith("_port")]
for name in names:
    with open(f"{options['--session-dir']}/{name}_{options['--node-id']}", "w") as file:
        file.write("-1")
sys.stdin.read()  # to its end, when the machine has gone
