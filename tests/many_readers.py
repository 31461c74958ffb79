"""A script's beginning: the digest of some records of a set,
taken in this process, in a fork, and by 8 threads.
"""

DIGESTS = """
import hashlib, json, os, pickle, random, resource, sys
from concurrent.futures import ThreadPoolExecutor

def digest(found):
    numbers = random.Random(7).sample(range(len(found)), COUNT)
    kept = [found[number] for number in numbers]
    return hashlib.sha256(b"".join(bytes(record.data) for record in kept)).hexdigest()

def digest_in_a_fork(found):
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.write(writing, digest(found).encode())
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    return os.read(reading, 64).decode()

def digests_of_threads(found):
    with ThreadPoolExecutor(8) as threads:
        return list(threads.map(digest, [found] * 8))
"""
"""It takes COUNT, how many records are read."""
