"""Find near-duplicate prompts: an exact all-pairs join by prefix filtering, without comparing all pairs.

In: texts. Out: the pairs whose similarity reaches a threshold, and whether a cap left any out. The similarity is the
Jaccard index of the texts' sets of three-word sequences; words are case-folded runs of letters, digits and `_`, and
each character of scripts written without spaces (Han, kana, Hangul) is a word.
Not done here: finding equal texts (the caller leaves repeats out), deciding what a pair means.

Method (Chaudhuri, Ganti, Kaushik, ICDE 2006; Bayardo, Ma, Srikant, WWW 2007): order every set by how rare its members
are. Two sets of Jaccard index >= t share a member within the first n - ceil(t n) + 1 of each, so only texts that share
one of those rare members are compared. Unlike with MinHash no pair is missed by chance below the caps, and it is five
times as fast. Members are kept as 40-bit hashes; a collision would move a similarity by one member.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

THRESHOLD: Final = 0.7
MAX_PAIRS: Final = 1000
"""How many pairs are given back: the most similar ones."""
MAX_MEETINGS: Final = 4_000_000
"""How often two texts may meet in a rare member; a tree of one template in many dresses has billions of meetings."""
MAX_COMPARED: Final = 200_000_000
"""Members looked at in comparing sets (each pair costs as much as 500 besides): about ten seconds of work."""

_COST_OF_A_PAIR: Final = 500
_WORDS: Final = 3
_CHUNK: Final = 1 << 20
_LOWER: Final = bytes(ord(chr(c).lower()) if chr(c).isalnum() or c == 0x5F else 0x20 for c in range(128)) + bytes(
    range(128, 256)
)
_SYMBOL: Final = re.compile(r"[^\w\0-\x7f]")
_SPACELESS: Final = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)  # odd; any such number spreads the hashes
# A chunk is sorted by one number: text (20 bits), how often its member was met (4, a logarithm), the member (40).
_MEMBER_BITS: Final = np.uint64(40)
_TEXT_BITS: Final = np.uint64(44)
_OFTEN: Final = np.uint32(1) << np.arange(1, 15, dtype=np.uint32)

Hashes = NDArray[np.uint64]
Positions = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two texts, by their 0-based positions in the order they came, and their similarity (threshold to 1)."""

    case_a: int
    case_b: int
    similarity: float


@dataclass(frozen=True, slots=True)
class Near:
    """The most similar pairs in the order of the texts; `n_found` in all; `capped` if some were never compared."""

    pairs: tuple[Pair, ...]
    n_found: int
    capped: bool


@dataclass(frozen=True, slots=True)
class _Sets:
    """The members of every text's set, rarest first; those of text i are `members[ends[i]:ends[i + 1]]`."""

    members: Hashes
    shared: NDArray[np.bool_]
    ends: Positions

    def sizes(self) -> Positions:
        return np.diff(self.ends)

    def of(self, text: int) -> Hashes:
        return self.members[self.ends[text] : self.ends[text + 1]]


class SimilarTexts:
    """Take texts one at a time, keep four bytes a word, and give the near-duplicate pairs at the end."""

    def __init__(self) -> None:
        """Start with no text."""
        self._words = array("I")
        self._ends = array("q", [0])

    def add(self, text: str) -> None:
        """Take the next text."""
        hashes = list(map(crc32, words(text)))
        if hashes:  # a text of fewer words is one sequence all the same
            hashes += [0] * (_WORDS - len(hashes))
        self._words.extend(hashes)
        self._ends.append(len(self._words))

    def near(self, *, threshold: float = THRESHOLD) -> Near:
        """Return the near-duplicate pairs of the texts so far."""
        sets = _sets(np.frombuffer(self._words, np.uint32), np.frombuffer(self._ends, np.int64))
        candidates, capped = _candidates(sets, threshold)
        work = np.cumsum(sets.sizes()[candidates].sum(axis=1) + _COST_OF_A_PAIR)
        affordable = int(np.searchsorted(work, MAX_COMPARED, side="right"))
        pairs = list(_compared(sets, candidates[:affordable], threshold))
        best = sorted(pairs, key=lambda pair: (-pair.similarity, pair.case_a, pair.case_b))[:MAX_PAIRS]
        best.sort(key=lambda pair: (pair.case_a, pair.case_b))
        return Near(tuple(best), len(pairs), capped or affordable < len(candidates))


def near_duplicates(texts: Iterable[str], *, threshold: float = THRESHOLD) -> Near:
    """Return the near-duplicate pairs among texts."""
    similar = SimilarTexts()
    for text in texts:
        similar.add(text)
    return similar.near(threshold=threshold)


def words(text: str) -> list[bytes]:
    """Return the words that similarity is measured on, case-folded."""
    if not text.isascii():
        text = _SPACELESS.sub(r" \g<0> ", _SYMBOL.sub(" ", text.casefold()))
    return text.encode(errors="surrogatepass").translate(_LOWER).split()


def _sets(hashes: NDArray[np.uint32], ends: Positions) -> _Sets:
    chunks = list(_chunks(ends))
    # How often members of a slot came, in all texts; a slot met once holds a member that no other text has.
    met = np.zeros(1 << min(24, max(10, (2 * len(hashes)).bit_length())), np.uint32)
    for chunk in chunks:
        np.add.at(met, _slot(_sequences(hashes, chunk)[0], met), np.uint32(1))  # another type is 17 times slower
    parts = [_rarest_first(*_sequences(hashes, chunk), met, len(chunk) - 1) for chunk in chunks]
    sizes = _joined([part[2] for part in parts], np.int64)
    return _Sets(
        members=_joined([part[0] for part in parts], np.uint64),
        shared=_joined([part[1] for part in parts], np.bool_),
        ends=np.concatenate([np.zeros(1, np.int64), sizes.cumsum()]),
    )


def _joined(parts: list[NDArray[Any]], dtype: type) -> NDArray[Any]:
    return np.concatenate([np.zeros(0, dtype), *parts])


def _chunks(ends: Positions) -> Iterator[Positions]:
    """Yield the bounds of texts with about a million words together, so that memory stays flat."""
    first = 0
    while first < len(ends) - 1:
        last = max(first + 1, int(np.searchsorted(ends, ends[first] + _CHUNK, side="right")) - 1)
        last = min(last, first + _CHUNK)
        yield ends[first : last + 1]
        first = last


def _sequences(hashes: NDArray[np.uint32], ends: Positions) -> tuple[Hashes, Positions]:
    """Return a hash of every run of three words, and the text (0 is the chunk's first) that each is of."""
    texts = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
    inside = texts[: 1 - _WORDS] == texts[_WORDS - 1 :]
    chunk = hashes[ends[0] : ends[-1]].astype(np.uint64)
    mixed = np.zeros(len(inside), np.uint64)
    for i in range(_WORDS):
        mixed = ((mixed ^ mixed >> np.uint64(29)) + chunk[i : i + len(inside)]) * _MIX
    return (mixed ^ mixed >> np.uint64(32))[inside] >> (np.uint64(64) - _MEMBER_BITS), texts[: len(inside)][inside]


def _rarest_first(
    members: Hashes, texts: Positions, met: NDArray[np.uint32], n_texts: int
) -> tuple[Hashes, NDArray[np.bool_], Positions]:
    """Return the sets of a chunk, each by rarity; whether another text may hold the member; the sets' sizes."""
    often = np.searchsorted(_OFTEN, met[_slot(members, met)], side="right").astype(np.uint64)
    keys = np.sort(texts.astype(np.uint64) << _TEXT_BITS | often << _MEMBER_BITS | members)
    keys = keys[np.append(True, keys[1:] != keys[:-1])] if len(keys) else keys
    sizes = np.bincount((keys >> _TEXT_BITS).astype(np.int64), minlength=n_texts)
    often = keys >> _MEMBER_BITS & np.uint64(15)
    return keys & (np.uint64(1) << _MEMBER_BITS) - np.uint64(1), often > 0, sizes


def _slot(members: Hashes, met: NDArray[np.uint32]) -> Positions:
    return (members & np.uint64(len(met) - 1)).astype(np.int64)


def _candidates(sets: _Sets, threshold: float) -> tuple[Positions, bool]:
    """Return the pairs that may reach the threshold, one a row in order, and whether a cap left any out."""
    sizes = sets.sizes()
    prefix = sizes - np.ceil(threshold * sizes - 1e-9).astype(np.int64) + 1
    texts = np.repeat(np.arange(len(sizes)), sizes)
    early = np.arange(len(texts)) - sets.ends[texts] < prefix[texts]
    chosen = np.flatnonzero(early & sets.shared)
    order = chosen[np.argsort(sets.members[chosen], kind="stable")]
    meetings, capped = _meetings(sets.members[order], texts[order])
    pairs = np.stack(np.divmod(np.unique(meetings[:, 0] * len(sizes) + meetings[:, 1]), max(1, len(sizes))), axis=1)
    a, b = sizes[pairs[:, 0]], sizes[pairs[:, 1]]
    return pairs[np.minimum(a, b) >= threshold * np.maximum(a, b) - 1e-9], capped


def _meetings(members: Hashes, texts: Positions) -> tuple[Positions, bool]:
    """Return the pairs of texts under each member (members are sorted), rarest members first, up to the cap."""
    starts = np.flatnonzero(np.concatenate([np.ones(min(1, len(members)), np.bool_), members[1:] != members[:-1]]))
    sizes = np.diff(np.append(starts, len(members)))
    found, left = [np.zeros((0, 2), np.int64)], MAX_MEETINGS
    for size in np.unique(sizes[sizes > 1]).tolist():
        at = starts[sizes == size][:, None]
        reach = min(size - 1, left // (len(at) * size))  # under the cap every pair, at it only near neighbours
        if len(at) * size * (size - 1) // 2 <= left:
            reach = size - 1
        for step in range(1, reach + 1):
            i = np.arange(size - step)
            found.append(np.stack([texts[at + i].ravel(), texts[at + i + step].ravel()], axis=1))
            left -= len(found[-1])
        if reach < size - 1:
            return np.concatenate(found), True
    return np.concatenate(found), False


def _compared(sets: _Sets, candidates: Positions, threshold: float) -> Iterator[Pair]:
    for a, b in candidates.tolist():
        first, second = sets.of(a), sets.of(b)
        both = len(np.intersect1d(first, second, assume_unique=True))
        similarity = both / (len(first) + len(second) - both)
        if similarity >= threshold:
            yield Pair(a, b, similarity)
