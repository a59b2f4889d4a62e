"""What holds for every test: none asserts time, so Hypothesis has no deadline."""

from hypothesis import settings

settings.register_profile("stirred", deadline=None)
settings.load_profile("stirred")
