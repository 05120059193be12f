"""Where a run's results are on the Hub: the commit that a published number names as its source.

In: a run and its results dataset. Out: the run's address there at one commit, once the Hub has said that this very run
is in it.
"""

from __future__ import annotations

from huggingface_hub import HfApi

from builder.dataset.digests import DIGESTS_NAME
from builder.errors import BadInput
from builder.hub.client import patiently
from builder.hub.place import HubPlace
from builder.hub.remote import read_head
from eval.exports.chosen import ChosenRun
from eval.hub.index import run_path


def results_source(api: HfApi, place: HubPlace, *, run: ChosenRun) -> str:
    """Return the address of a run in a results dataset, at the commit that its revision is now.

    Raises:
        BadInput: the Hub cannot be read, or the dataset does not hold this very run at that commit.
    """
    folder = run_path(run.run_id)
    path = f"{folder}{DIGESTS_NAME}"
    head = patiently(str(place), lambda: read_head(api, place.repo, revision=place.revision))
    if path not in head.files:
        raise BadInput(f"{place}: expected {path}, found none; publish the run there first")
    if not head.files[path].holds((run.folder / DIGESTS_NAME).read_bytes()):
        raise BadInput(f"{place}: {path} is not that of {run.folder}; fetch the published run, and use that")
    return f"{api.endpoint}/datasets/{place.repo}/tree/{head.commit}/{folder.removesuffix('/')}"
