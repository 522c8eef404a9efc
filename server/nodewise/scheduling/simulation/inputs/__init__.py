"""Jobs from files and from chance: Gavel's traces, Pollux' workloads, Philly's arrivals, our own tables, generators.

Readers take text streams; what is wrong in one is told with its line and column.
"""
