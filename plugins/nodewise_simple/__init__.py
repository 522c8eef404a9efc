"""Rules of one line: what a job does at another scale, by no more than arithmetic on its runs."""
