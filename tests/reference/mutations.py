"""Files changed at random, and what comes of reading them."""


def outcome(function, *arguments):
    """Return what a function returns, or the text of the ValueError that it raises."""
    try:
        return function(*arguments)
    except ValueError as error:
        return str(error)


def mutated(data, rng, alphabet):
    """Return bytes changed in one place: a bit, some letters, a cut, a part removed, doubled, or lines exchanged."""
    changed = bytearray(data)
    at, length = int(rng.integers(len(data))), int(rng.integers(1, 20))
    if rng.random() < 0.5:  # most of the structure is at the beginning
        at = int(rng.integers(min(len(data), 3000)))
    match int(rng.integers(7)):
        case 0:
            changed[at] ^= 1 << int(rng.integers(8))
        case 1:
            changed[at : at + length] = rng.bytes(length)
        case 2:
            changed[at : at + int(rng.integers(1, 3))] = bytes(rng.choice(list(alphabet), size=length))
        case 3:
            del changed[at:]
        case 4:
            del changed[at : at + length]
        case 5:
            changed[at:at] = changed[at : at + length]
        case 6:
            lines = data.split(b"\n")
            i, j = rng.integers(len(lines), size=2)
            lines[i], lines[j] = lines[j], lines[i]
            return b"\n".join(lines)
    return bytes(changed)
