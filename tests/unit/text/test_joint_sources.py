"""The source tokenizers of an ensemble's members, side by side."""

import pickle

from softsearch.text.joint_sources import JointSources
from tests.support.written import tokenizers


def test_worker_processes_get_all_members() -> None:
    joint = JointSources(tokenizers())
    copy = pickle.loads(pickle.dumps(joint))
    assert type(copy) is JointSources
    assert copy.fingerprint == joint.fingerprint
    assert [t.model for t in copy.tokenizers] == [t.model for t in joint.tokenizers]
