"""HealthBench's own words and numbers: its grader, its scores over tags, its meta-evaluation."""
