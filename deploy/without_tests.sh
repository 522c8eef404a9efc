#!/bin/sh
# Remove the tests that packages ship from an environment, a seventh of its size: without_tests.sh ENVIRONMENT.
set -eu
find "$1"/lib/python*/site-packages -type d -name tests -prune -exec rm -rf {} +
