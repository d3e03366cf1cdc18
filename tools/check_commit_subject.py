"""Check the subject of a commit: imperative, at most 72 characters, no period at its end.

pre-commit calls it with the file that has the message. It reads a few signs and not English: the first word has a
capital, and is not a verb with an ending that an imperative does not have.
"""

from __future__ import annotations

import sys
from pathlib import Path

LONGEST = 72
MADE_BY_GIT = ("Merge ", "Revert ", "fixup! ", "squash! ", "amend! ")
# Imperatives in spite of their endings, and words that begin a sentence about the code instead of a command.
IMPERATIVES = {"Alias", "Bias", "Bring", "Embed", "Focus", "Ping", "Shed", "String", "Swing"}
NO_VERBS = {"A", "An", "How", "It", "The", "There", "This", "We", "What", "Where", "Why"}


def subject_of(message: str) -> str:
    """Return the first line of a message that is no comment."""
    return next((line for line in message.splitlines() if line.strip() and not line.startswith("#")), "")


def complaints(subject: str) -> list[str]:
    """Return what is wrong with a subject; nothing if it is sound, or git's own."""
    if subject.startswith(MADE_BY_GIT):
        return []
    if not subject.strip():
        return ["there is none: say what the commit does"]
    found = []
    if len(subject) > LONGEST:
        found.append(f"it has {len(subject)} characters, at most {LONGEST} are right: move the rest to the body")
    if subject != subject.strip():
        found.append("it begins or ends with a space")
    if subject.rstrip().endswith("."):
        found.append("it ends with a period")
    first = subject.split()[0]
    if not first[0].isupper():
        found.append(f"its first word {first!r} has no capital")
    elif not is_imperative(first):
        found.append(f"its first word {first!r} is not an imperative: 'Add', not 'Added', 'Adding' or 'Adds'")
    return found


def is_imperative(word: str) -> bool:
    """Return whether a word may be an imperative, as far as its ending tells."""
    if word in IMPERATIVES:
        return True
    ended = word.endswith("ing") or (word.endswith("ed") and not word.endswith("eed"))
    return not (ended or word in NO_VERBS or (word.endswith("s") and not word.endswith("ss")))


def main(arguments: list[str]) -> int:
    """Check the message in a file and return the exit code."""
    if len(arguments) != 1:
        print("usage: check_commit_subject.py FILE", file=sys.stderr)
        return 2
    subject = subject_of(Path(arguments[0]).read_text(encoding="utf-8"))
    found = complaints(subject)
    for complaint in found:
        print(f"error: the commit's subject: {complaint}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
