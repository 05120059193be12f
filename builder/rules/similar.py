"""Find near-duplicate prompts with MinHash and locality-sensitive hashing (datasketch), without comparing all pairs.

In: texts. Out: the pairs whose similarity reaches `THRESHOLD`, and whether a cap left any out. The similarity is the
Jaccard index of the texts' sets of three-word sequences; words are case-folded runs of letters, digits and `_`, and
each character of scripts written without spaces (Han, kana, Hangul) is a word.
Not done here: finding equal texts (the caller leaves repeats out), deciding what a pair means.

Two texts are compared when one of 26 bands of 5 MinHash values is equal in both (Leskovec, Rajaraman, Ullman, Mining of
Massive Datasets, section 3.4), so a pair of similarity s is found with probability 1 - (1 - s^5)^26: 99.2% at 0.7,
99.997% at 0.8. A similarity given is not an estimate, it is counted on the sets; the seeds are fixed, so the same texts
give the same pairs (datasketch 1 and 2 draw differently). The bands are taken in two halves, because an index of all of
them would need twice the memory.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final
from zlib import crc32

import numpy as np
from datasketch import MinHash, MinHashLSH
from numpy.typing import NDArray

THRESHOLD: Final = 0.7
MAX_PAIRS: Final = 1000
"""How many pairs are given back: the most similar ones."""
MAX_CANDIDATES: Final = 1_000_000
"""How many pairs are compared; a tree of one template in many dresses has billions."""
MAX_COMPARED: Final = 200_000_000
"""How many members the sets compared may have together, about ten seconds of work."""
CROWD: Final = 300
"""A text that is to be compared with so many before it is not compared with those after it."""

_WORDS: Final = 3
_SEEDS: Final = (1, 2)
_BANDS: Final = 13  # for each seed
_ROWS: Final = 5
_BATCH: Final = 10_000
_SPACELESS: Final = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
_WORD: Final = re.compile(rf"[{_SPACELESS}]|[^\W{_SPACELESS}]+")


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


class SimilarTexts:
    """Take texts one at a time, keep four bytes a word, and give the near-duplicate pairs at the end."""

    def __init__(self) -> None:
        """Start with no text."""
        self._members = array("I")
        self._ends = array("q", [0])

    def add(self, text: str) -> None:
        """Take the next text."""
        found = words(text)
        starts = range(max(1, len(found) - _WORDS + 1) if found else 0)  # a text of fewer words is one sequence
        self._members.extend({crc32(" ".join(found[i : i + _WORDS]).encode()) for i in starts})
        self._ends.append(len(self._members))

    def near(self) -> Near:
        """Return the near-duplicate pairs of the texts so far."""
        candidates, capped = self._candidates()
        sizes = np.diff(np.array(self._ends))
        affordable = int(np.searchsorted(sizes[candidates].sum(axis=1).cumsum(), MAX_COMPARED, side="right"))
        pairs = list(self._compared(candidates[:affordable]))
        best = sorted(pairs, key=lambda pair: (-pair.similarity, pair.case_a, pair.case_b))[:MAX_PAIRS]
        best.sort(key=lambda pair: (pair.case_a, pair.case_b))
        return Near(tuple(best), len(pairs), capped or affordable < len(candidates))

    def _of(self, text: int) -> array[int]:
        return self._members[self._ends[text] : self._ends[text + 1]]

    def _candidates(self) -> tuple[NDArray[np.int64], bool]:
        """Return the pairs that share a band, one a row in order, and whether a cap left any out."""
        texts = [text for text in range(len(self._ends) - 1) if self._ends[text] < self._ends[text + 1]]
        found: set[int] = set()  # a pair is one number, a quarter of the memory of a tuple
        capped = False
        for seed in _SEEDS:
            index = MinHashLSH(num_perm=_BANDS * _ROWS, params=(_BANDS, _ROWS))
            start = MinHash(num_perm=_BANDS * _ROWS, seed=seed, hashfunc=int)
            for text in texts:
                minhash = self._minhash(text, start)
                met = index.query(minhash)
                found.update(other * len(self._ends) + text for other in met)
                if len(met) < CROWD:
                    index.insert(text, minhash, check_duplication=False)
                else:
                    capped = True
                if len(found) >= MAX_CANDIDATES:
                    return self._pairs(found), True
        return self._pairs(found), capped

    def _minhash(self, text: int, start: MinHash) -> MinHash:
        minhash, members = start.copy(), self._of(text)
        for i in range(0, len(members), _BATCH):  # datasketch holds all permutations of what it is given
            minhash.update_batch(members[i : i + _BATCH])
        return minhash

    def _pairs(self, found: set[int]) -> NDArray[np.int64]:
        numbers = np.sort(np.fromiter(found, np.int64, len(found)))
        return np.stack(np.divmod(numbers, len(self._ends)), axis=1)

    def _compared(self, candidates: NDArray[np.int64]) -> Iterator[Pair]:
        for a, b in candidates.tolist():
            first, second = set(self._of(a)), self._of(b)
            both = len(first.intersection(second))
            similarity = both / (len(first) + len(second) - both)
            if similarity >= THRESHOLD:
                yield Pair(a, b, similarity)


def near_duplicates(texts: Iterable[str]) -> Near:
    """Return the near-duplicate pairs among texts."""
    similar = SimilarTexts()
    for text in texts:
        similar.add(text)
    return similar.near()


def words(text: str) -> list[str]:
    """Return the words that similarity is measured on, case-folded."""
    return _WORD.findall(text.casefold())
