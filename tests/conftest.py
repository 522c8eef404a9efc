"""For all tests: what holds for our processes holds for those of the tests."""

from nodewise.runtime.blas import one_thread_each

one_thread_each()
