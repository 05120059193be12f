"""Count what the examples of a file hold, for its mirror's card.

In: examples in order. Out: numbers: examples, criteria by the sign of their points, turns, tags, labels, canaries.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from builder.healthbench.objects import Example


@dataclass(slots=True)
class ExampleCounts:
    """What was counted so far.

    `turns` maps a number of turns to the examples that have so many; `example_tags` and `item_tags` map a tag to the
    examples and items that carry it; `canaries` are the distinct ones in the order met.
    """

    examples: int = 0
    items: int = 0
    positive: int = 0
    negative: int = 0
    zero: int = 0
    unscorable: int = 0
    ideal: int = 0
    references: int = 0
    physician: int = 0
    labels: int = 0
    labels_true: int = 0
    physicians: set[str] = field(default_factory=set)
    turns: Counter[int] = field(default_factory=Counter)
    example_tags: Counter[str] = field(default_factory=Counter)
    item_tags: Counter[str] = field(default_factory=Counter)
    canaries: dict[str, None] = field(default_factory=dict)

    def add(self, example: Example) -> None:
        """Count the next example."""
        points = [item["points"] for item in example["rubric_items"] if item["points"] is not None]
        self.examples += 1
        self.items += len(example["rubric_items"])
        self.positive += sum(value > 0 for value in points)
        self.negative += sum(value < 0 for value in points)
        self.zero += sum(value == 0 for value in points)
        self.unscorable += bool(points) and not any(value > 0 for value in points)
        self.ideal += example["ideal_completion"] is not None
        self.references += bool(example["ideal_completions_ref_completions"])
        self.physician += example.get("physician_response") is not None
        self.labels += len(example.get("binary_labels", ()))
        self.labels_true += sum(example.get("binary_labels", ()))
        self.physicians.update(example.get("anonymized_physician_ids", ()))
        self.turns[len(example["prompt"])] += 1
        self.example_tags.update(example["example_tags"])
        self.item_tags.update(tag for item in example["rubric_items"] for tag in item["tags"])
        if example["canary"]:
            self.canaries[example["canary"]] = None
