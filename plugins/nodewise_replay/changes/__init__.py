"""Changes of the recorded job: other links, worlds and buckets as other durations or another graph."""
